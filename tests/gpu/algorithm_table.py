"""Every way cuDNN can run a grid of forward convolutions, beside each other: kernels, error, time.

    python3 algorithm_table.py --out table.jsonl [--only 'half-nhwc-*'] [--budget 240]

For each problem every legacy algorithm with its math types, every engine with its default knobs and
every configuration that the heuristics suggest is run once for correctness and a few times for its
time. One JSON line per candidate:

    problem, shape      name and fields of the problem
    candidate           legacy:ALGO:MATH, engine:INDEX, instant:RANK or fallback:RANK
    engine, knobs       what a graph candidate is ({knob type: value}, the knobs as read back)
    step, status, text  what refused it (status 0: it ran)
    workspace           bytes; build_ms: building the plan
    numerical, behaviour  notes of the engine
    error               max|y - reference| / max|reference|, reference in float64 without cuDNN
    ms                  median time of one run on the device, inputs hot in cache
    kernels             names in order of start, as the profiler saw them
    same_as             an earlier candidate with the same engine and knobs: its results stand here

On stdout at the end: per problem, the kernels of each legacy algorithm and of each engine. With
--library and --device-json nothing runs and no GPU is needed: what can be planned is listed.
"""
import argparse
import dataclasses
import fnmatch
import itertools
import json
import math
import statistics
import sys
import time

import cudnn_direct as direct
from cudnn_direct import CudnnError, Problem

LARGE = dict(n=32, c=64, h=56, w=56, k=64)
FILTERS = {
    "3x3": dict(LARGE, r=3, s=3, pad=1),
    "1x1": dict(LARGE, r=1, s=1),
    "5x5": dict(LARGE, r=5, s=5, pad=2),
    "3x3s2": dict(LARGE, r=3, s=3, pad=1, stride=2),
    "3x3small": dict(n=8, c=16, h=28, w=28, k=32, r=3, s=3, pad=1),
    "3x3dw": dict(LARGE, r=3, s=3, pad=1, groups=64),
}
MATHS = {"float": ("DEFAULT", "ALLOW_CONVERSION", "FMA"), "half": ("DEFAULT", "TENSOR_OP", "FMA"),
         "bfloat16": ("DEFAULT", "TENSOR_OP", "FMA"), "double": ("DEFAULT",)}
MOST_WORKSPACE = 16 << 30  # bytes
SLOW_MS = 50               # a candidate slower than this is timed once


class StickyError(Exception):
    """The CUDA context is lost: nothing more can be measured in this process."""


class OutOfBudget(Exception):
    """The time given by --budget is used up."""


def problems(pattern):
    """(name, Problem) of the grid, names dtype-layout-filter, those that match the pattern."""
    for size, dtype, layout in itertools.product(FILTERS, MATHS, ("nchw", "nhwc")):
        name = f"{dtype}-{layout}-{size}"
        if fnmatch.fnmatch(name, pattern):
            yield name, Problem(**FILTERS[size], dtype=dtype, layout=layout)


class Candidate:
    """One way to run a problem: its record, and what runs it once it is prepared.

    prepare() fills the record and returns (bytes of workspace, bind), where bind is that of
    direct.Plan and direct.LegacyForward with the algorithm already given.
    """

    def __init__(self, label, prepare, **fields):
        self.record = dict(candidate=label, **fields, step=None, status=None, text=None)
        self.prepare, self.run, self.twin = prepare, None, None

    def fail(self, error):
        if isinstance(error, CudnnError):
            failure = dict(step=error.step, status=error.status, text=error.text)
        else:
            failure = dict(step=type(error).__name__, status=-1, text=str(error)[:300])
        self.record.update(failure)

    def line(self):
        """The record; a candidate with a twin has the twin's results and its own identity."""
        if not self.twin:
            return self.record
        own = ("candidate", "engine", "knobs")
        return {**self.twin.record, **{key: self.record[key] for key in own if key in self.record},
                "same_as": self.twin.record["candidate"]}


def legacy_candidates(cudnn, problem):
    for algorithm, math_type in itertools.product(range(len(direct.LEGACY_FORWARD)),
                                                  MATHS[problem.dtype]):
        candidate = Candidate(f"legacy:{algorithm}:{math_type}", None)

        def prepare(record=candidate.record, algorithm=algorithm, math_type=math_type):
            legacy = direct.LegacyForward(cudnn, problem, math_type)
            record["workspace"] = legacy.workspace(algorithm)
            return record["workspace"], lambda *tensors: legacy.bind(algorithm, *tensors)
        candidate.prepare = prepare
        yield candidate


def graph_candidate(graph, label, make_configuration):
    """A candidate for a configuration, which is built when the candidate is prepared."""
    candidate = Candidate(label, None)

    def prepare(record=candidate.record):
        start = time.perf_counter()
        configuration = make_configuration()
        record.update(engine=configuration.index, knobs=configuration.knobs,
                      numerical=configuration.numerical_notes(),
                      behaviour=configuration.behaviour_notes())
        plan = graph.plan(configuration)
        record["build_ms"] = round(1e3 * (time.perf_counter() - start), 2)
        record["workspace"] = plan.workspace
        return plan.workspace, plan.bind
    candidate.prepare = prepare
    return candidate


def graph_candidates(graph):
    """Candidates of all engines, then of the heuristics; a repeated configuration gets a twin."""
    for index in range(graph.engine_count()):
        candidate = graph_candidate(graph, f"engine:{index}",
                                    lambda index=index: graph.configuration(index))
        candidate.record["engine"] = index
        yield candidate
    seen = {}
    for mode in ("instant", "fallback"):
        try:
            configurations = graph.heuristics(mode)
        except CudnnError as error:
            failed = Candidate(f"{mode}:-", None)
            failed.fail(error)
            yield failed
            continue
        for rank, configuration in enumerate(configurations):
            candidate = graph_candidate(graph, f"{mode}:{rank}", lambda made=configuration: made)
            candidate.record.update(engine=configuration.index, knobs=configuration.knobs)
            key = (configuration.index, *sorted(configuration.knobs.items()))
            candidate.twin = seen.get(key)
            seen.setdefault(key, candidate)
            yield candidate


class Bench:
    """Tensors of a problem on the GPU, the float64 reference, and the measurements."""

    def __init__(self, problem):
        import torch
        self.torch, self.problem = torch, problem
        generator = torch.Generator("cuda").manual_seed(1)
        self.x, self.w, self.y = (self._tensor(shape, generator) for shape in problem.shapes())
        with torch.backends.cudnn.flags(enabled=False):
            self.reference = torch.nn.functional.conv2d(
                self.x.double().contiguous(), self.w.double().contiguous(), padding=problem.pad,
                stride=problem.stride, dilation=problem.dilation, groups=problem.groups)
        self.scale = self.reference.abs().max().item()

    def _tensor(self, shape, generator):
        """Normally distributed values with the strides of the problem's layout."""
        tensor = self.torch.empty_strided(shape, self.problem.strides(shape), device="cuda",
                                          dtype=getattr(self.torch, self.problem.dtype))
        return tensor.copy_(self.torch.randn(shape, generator=generator, device="cuda"))

    def measure(self, candidate):
        """Run a candidate: correctness from the first run, then its time; raises what goes wrong."""
        size, bind = candidate.prepare()
        if size > MOST_WORKSPACE:
            raise MemoryError(f"workspace of {size} bytes")
        run, record = bind(self.x, self.w, self.y, self.space(size)), candidate.record
        self.y.fill_(math.nan)  # what is not written is seen
        run()
        error = (self.y.double() - self.reference).abs().max().item() / self.scale
        record["error"] = float(f"{error:.3g}") if math.isfinite(error) else str(error)
        first = self.times(run, 1)[0]
        record["ms"] = round(first if first > SLOW_MS else statistics.median(self.times(run, 5)), 5)
        record.update(status=0)
        # The workspace is not kept: hundreds of them would not fit. It is bound again to be profiled.
        candidate.run = lambda: bind(self.x, self.w, self.y, self.space(size))()

    def space(self, size):
        """A workspace of so many bytes, None for none."""
        return self.torch.empty(size, dtype=self.torch.uint8, device="cuda") if size else None

    def times(self, run, count):
        """Milliseconds of each of `count` runs, by CUDA events.

        The device is first kept busy for about half a millisecond, so that the runs are queued
        behind it and the time of this Python code does not count.
        """
        event = self.torch.cuda.Event
        pairs = [(event(enable_timing=True), event(enable_timing=True)) for _ in range(count)]
        self.torch.cuda._sleep(1_000_000)  # clock cycles
        for start, end in pairs:
            start.record()
            run()
            end.record()
        self.torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in pairs]

    def check_context(self):
        """A failed run may leave an error behind; one that stays means that the context is lost."""
        for attempt in (1, 2):
            try:
                self.torch.cuda.synchronize()
                self.torch.ones(1, device="cuda").item()
                return
            except RuntimeError as error:
                if attempt == 2:
                    raise StickyError(str(error)) from error


def list_only(candidate):
    """What can be known without a GPU: whether the plan finalizes, notes and workspace."""
    candidate.prepare()
    candidate.record.update(status=0)


def measure_all(candidates, bench, deadline):
    """Measure candidates in place, recording what each one raises; ends early with OutOfBudget."""
    for candidate in candidates:
        if time.monotonic() > deadline:
            raise OutOfBudget
        if candidate.twin or candidate.prepare is None:
            continue
        try:
            bench.measure(candidate) if bench else list_only(candidate)
        except Exception as error:  # whatever it is belongs to this candidate
            candidate.fail(error)
            if bench:
                bench.check_context()


def add_kernels(candidates):
    """Kernel names of all candidates that ran, in one profiler session."""
    ran = [candidate for candidate in candidates if candidate.run]

    def guarded(candidate):
        def run():
            try:
                candidate.run()
            except Exception as error:
                candidate.record["profile_error"] = str(error)[:300]
        return run
    try:
        for candidate, names in zip(ran, direct.kernels_of_each([guarded(each) for each in ran])):
            candidate.record["kernels"] = names
    except Exception as error:
        print(f"kernel names not collected: {error}", file=sys.stderr)


def run_problem(cudnn, name, problem, out, deadline):
    """Measure a problem and write its lines, also those of an unfinished one; returns the lines."""
    bench = Bench(problem) if not cudnn.device else None
    candidates = list(legacy_candidates(cudnn, problem)) if bench else []
    candidates += graph_candidates(direct.ForwardGraph(cudnn, problem))
    usable, lines = bench is not None, []
    try:
        measure_all(candidates, bench, deadline)
    except StickyError:
        usable = False
        raise
    finally:
        if usable:
            add_kernels(candidates)
        for candidate in candidates:
            line = {"problem": name, "shape": dataclasses.asdict(problem), **candidate.line()}
            if line["status"] is not None:
                lines.append(line)
                out.write(json.dumps(line) + "\n")
                out.flush()
        print_table(name, lines)
    return lines


def short(names):
    """Kernel names in 90 characters: without return type, arguments and common prefixes."""
    def trim(name):
        name = name.removeprefix("void ").replace("(anonymous namespace)::", "")
        return name.replace("cudnn::", "").split("(")[0]
    return " + ".join(map(trim, names or ["?"]))[:90]


def print_table(name, lines):
    print(f"\n{name}: candidate, ms, error, MiB of workspace, kernels")
    refused = {}
    for line in lines:
        label = line["candidate"]
        if line["status"]:
            refused.setdefault(f"{line['step']} {line['status']}", []).append(label)
        elif label.startswith(("legacy", "engine")):
            print(f"  {label:25} {line.get('ms', '-'):>9} {line.get('error', '-'):>9} "
                  f"{line['workspace'] / 2**20:8.1f}  {short(line.get('kernels'))}")
    for reason, labels in refused.items():
        print(f"  refused ({reason}): {' '.join(labels)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, help="file for the JSON lines")
    parser.add_argument("--only", default="*", help="problems whose name matches, as half-nhwc-3x3*")
    parser.add_argument("--budget", type=float, default=240, help="seconds, then stop (%(default)s)")
    parser.add_argument("--library", help="path of libcudnn.so.9 (default: the one torch loads)")
    parser.add_argument("--device-json", help="file that describes a device; nothing is run")
    options = parser.parse_args()
    deadline = time.monotonic() + options.budget
    description = None
    if options.device_json:
        with open(options.device_json) as file:
            description = file.read()
    cudnn = direct.Cudnn(options.library, description)
    print(f"cuDNN {cudnn.version}, {cudnn.path}")
    with open(options.out, "w") as out:
        for name, problem in problems(options.only):
            start = time.monotonic()
            try:
                run_problem(cudnn, name, problem, out, deadline)
            except OutOfBudget:
                return print(f"stopped in {name}: {options.budget:g} s used up")
            except StickyError as error:
                return print(f"stopped in {name}: the CUDA context is lost: {error}")
            except Exception as error:
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            print(f"  ({time.monotonic() - start:.1f} s)")


if __name__ == "__main__":
    sys.exit(main())
