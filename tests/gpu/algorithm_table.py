"""Every way cuDNN can run a grid of convolutions, beside each other: kernels, error, time.

    python3 algorithm_table.py --out table.jsonl [--only 'backward_data-half-nhwc-*'] [--budget 280]
                               [--quick] [--jobs 4]
    python3 algorithm_families.py table.jsonl

For each problem every legacy algorithm with its math types, every engine with its default knobs and
every configuration that the heuristics suggest is run once for correctness and a few times for its
time. One JSON line per candidate:

    problem, shape      name (operation-dtype-layout-filter) and fields of the problem
    candidate           legacy:ALGO:MATH, engine:INDEX, instant:RANK or fallback:RANK
    engine, knobs       what a graph candidate is ({knob type: value}, the knobs as read back)
    step, status, text  what refused it (status 0: it ran; -1: not cuDNN's refusal)
    workspace           bytes; build_ms: building the plan
    numerical, behaviour  notes of the engine
    error               max|written - reference| / max|reference|, reference in float64 without cuDNN
    ms                  median time of one run on the device, inputs hot in cache
    kernels             names in order of start, as the profiler saw them
    same_as             an earlier candidate with the same engine and knobs: its results stand here

With --quick each candidate is timed once, and an engine that is compiled at run time runs in one
problem for each operation, data type and layout: enough for kernel names. --jobs splits the problems
among processes, so that they wait for each other's host code no more; their times are then worthless.
A candidate that kills its process is named in a line of its own and left out; the rest goes on.

On stdout: per problem, the kernels of each legacy algorithm and of each engine. With --library and
--device-json nothing runs and neither GPU nor torch is needed: what can be planned is listed.
"""
import argparse
import concurrent.futures
import dataclasses
import json
import multiprocessing
import sys
import time

import algorithm_bench as bench
import cudnn_direct as direct
from algorithm_grid import graph_candidates, legacy_candidates, problems

CONTEXT = multiprocessing.get_context("spawn")


def write_lines(path, lines):
    """Append lines in one write, so that several processes can share the file."""
    with open(path, "ab", buffering=0) as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines).encode())


def run_problem(cudnn, name, problem, options, deadline, compiled, begin):
    """Measure a problem, write its lines, also those of an unfinished one, and print its table."""
    start = time.monotonic()
    tensors = bench.Bench(problem, options.quick) if not cudnn.device else None
    candidates = list(legacy_candidates(cudnn, problem)) if tensors else []
    candidates += graph_candidates(direct.ConvolutionGraph(cudnn, problem), compiled)
    stopped = None
    try:
        bench.measure_all(candidates, tensors, deadline, begin)
    except bench.OutOfBudget as error:  # after StickyError the next process measures this problem again
        stopped = error
    ran = [candidate for candidate in candidates if candidate.run]
    if ran and begin("profiler"):
        bench.add_kernels(ran)
        tensors.check_context()
    lines = [{"problem": name, "shape": dataclasses.asdict(problem), **candidate.line()} for candidate in candidates]
    lines = [line for line in lines if line["status"] is not None]
    write_lines(options.out, lines)
    print_table(name, lines, time.monotonic() - start)
    if stopped:
        raise stopped


def work(names, skip, options, deadline, at):
    """One process: the problems of these names. `at` tells the parent what was begun last."""
    description = None
    if options.device_json:
        with open(options.device_json) as file:
            description = file.read()
    cudnn = direct.Cudnn(options.library, description)
    print(f"cuDNN {cudnn.version}, {cudnn.path}", flush=True)
    compiled = set() if options.quick else None
    grid = problems("*")
    for name in names:
        def begin(step, name=name):
            at.value = f"{name} {step}".encode()
            return (name, step) not in skip
        try:
            if begin("problem"):
                run_problem(cudnn, name, grid[name], options, deadline, compiled, begin)
        except bench.OutOfBudget:
            return print(f"stopped in {name}: {options.budget:g} s used up")
        except bench.StickyError as error:
            sys.exit(f"{at.value.decode()}: the CUDA context is lost: {error}")
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
        if not cudnn.device:
            import torch
            torch.cuda.empty_cache()  # the other processes need memory too


def supervise(names, options, deadline):
    """Run problems in a process; where it dies, name the candidate and go on without it in a new one."""
    skip = set()
    while names:
        at = CONTEXT.Array("c", 256, lock=False)
        process = CONTEXT.Process(target=work, args=(names, skip, options, deadline, at), daemon=True)
        process.start()
        process.join(max(0, deadline - time.monotonic()) + 30)
        if process.exitcode is None:  # it hangs
            process.kill()
            process.join()
        if process.exitcode == 0:
            return
        name, _, step = at.value.decode().partition(" ")
        print(f"a process ended with {process.exitcode} at: {name or 'its start'} {step}", file=sys.stderr)
        if not name:
            return
        write_lines(options.out, [dict(problem=name, shape=dataclasses.asdict(problems(name)[name]), candidate=step,
                                       step="process", status=-1, text=f"ended with {process.exitcode}")])
        names = names[names.index(name) + ((name, step) in skip):]
        skip.add((name, step))


def short(names):
    """Kernel names in 90 characters: without return type, arguments and common prefixes."""
    def trim(name):
        name = name.removeprefix("void ").replace("(anonymous namespace)::", "")
        return name.replace("cudnn::", "").split("(")[0]
    return " + ".join(map(trim, names or ["?"]))[:90]


def print_table(name, lines, seconds):
    """One print, so that the tables of several processes do not mix."""
    rows, refused = [f"{name}: candidate, ms, error, MiB of workspace, kernels"], {}
    for line in lines:
        label = line["candidate"]
        if line["status"]:
            refused.setdefault(f"{line['step']} {line['status']}", []).append(label)
        elif label.startswith(("legacy", "engine")):
            rows.append(f"  {label:25} {line.get('ms', '-'):>9} {line.get('error', '-'):>9} "
                        f"{line['workspace'] / 2**20:8.1f}  {short(line.get('kernels'))}")
    rows += [f"  refused ({reason}): {' '.join(labels)}" for reason, labels in refused.items()]
    print("\n".join(rows) + f"\n  ({seconds:.1f} s)\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, help="file for the JSON lines")
    parser.add_argument("--only", default="*", help="problems whose name matches, as *-half-nhwc-3x3*")
    parser.add_argument("--budget", type=float, default=280, help="seconds, then stop (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="for kernel names: one timed run, few compilations")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (%(default)s)")
    parser.add_argument("--library", help="path of libcudnn.so.9 (default: the one torch loads)")
    parser.add_argument("--device-json", help="file that describes a device; nothing is run")
    options = parser.parse_args()
    deadline = time.monotonic() + options.budget
    names = list(problems(options.only))
    if not names:
        parser.error(f"no problem is named like {options.only}; one is named {next(iter(problems('*')))}")
    open(options.out, "w").close()
    share = -(-len(names) // options.jobs)
    shares = [names[start:start + share] for start in range(0, len(names), share)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda part: supervise(part, options, deadline), shares))
    print(f"{options.budget - (deadline - time.monotonic()):.0f} s")


if __name__ == "__main__":
    sys.exit(main())
