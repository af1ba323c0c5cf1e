"""Measuring candidates of algorithm_grid.py on the GPU: error, time, kernels."""
import math
import statistics
import sys
import time

import cudnn_direct as direct

MOST_WORKSPACE = 16 << 30  # bytes
SLOW_MS = 50               # a candidate slower than this is timed once


class StickyError(Exception):
    """The CUDA context is lost: nothing more can be measured in this process."""


class OutOfBudget(Exception):
    """The time given by --budget is used up."""


class Bench:
    """Tensors x, w, y of a problem on the GPU, the float64 reference, and the measurements."""

    def __init__(self, problem, quick=False):
        import torch
        self.torch, self.problem, self.quick = torch, problem, quick
        generator = torch.Generator("cuda").manual_seed(1)
        self.tensors = [self._tensor(shape, generator) for shape in problem.shapes()]
        self.written = self.tensors[problem.written]
        self.reference = self._reference(*(tensor.double().contiguous() for tensor in self.tensors))
        self.scale = self.reference.abs().max().item()

    def _tensor(self, shape, generator):
        """Normally distributed values with the strides of the problem's layout."""
        tensor = self.torch.empty_strided(shape, self.problem.strides(shape), device="cuda",
                                          dtype=getattr(self.torch, self.problem.dtype))
        return tensor.copy_(self.torch.randn(shape, generator=generator, device="cuda"))

    def _reference(self, x, w, y):
        """What the operation should write, by PyTorch's own kernels in float64, without cuDNN."""
        problem, aten = self.problem, self.torch.ops.aten
        parameters = [[value] * problem.dims for value in (problem.stride, problem.pad, problem.dilation)]
        end = (False, [0] * problem.dims, problem.groups)  # transposed, output padding, groups
        with self.torch.backends.cudnn.flags(enabled=False):
            if problem.operation == "forward":
                return aten.convolution(x, w, None, *parameters, *end)
            wanted = [problem.operation == "backward_data", problem.operation == "backward_filter", False]
            return aten.convolution_backward(y, x, w, None, *parameters, *end, wanted)[problem.written]

    def measure(self, candidate):
        """Run a candidate: correctness from the first run, then its time; raises what goes wrong."""
        size, bind = candidate.prepare()
        if size > MOST_WORKSPACE:
            raise MemoryError(f"workspace of {size} bytes")
        run, record = bind(*self.tensors, self.space(size)), candidate.record
        self.written.fill_(math.nan)  # what is not written is seen
        run()
        error = (self.written.double() - self.reference).abs().max().item() / self.scale
        record["error"] = float(f"{error:.3g}") if math.isfinite(error) else str(error)
        first = self.times(run, 1)[0]
        once = self.quick or first > SLOW_MS
        record["ms"] = round(first if once else statistics.median(self.times(run, 5)), 5)
        record.update(status=0)
        # The workspace is not kept: hundreds of them would not fit. It is bound again to be profiled.
        candidate.run = lambda: bind(*self.tensors, self.space(size))()

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


def measure_all(candidates, bench, deadline, begin):
    """Measure candidates in place, recording what each one raises; ends early with OutOfBudget.

    begin(label) comes before each; one for which it answers False is left out.
    """
    for candidate in candidates:
        if time.monotonic() > deadline:
            raise OutOfBudget
        if candidate.twin or candidate.prepare is None or not begin(candidate.record["candidate"]):
            continue
        try:
            bench.measure(candidate) if bench else list_only(candidate)
        except Exception as error:  # whatever it is belongs to this candidate
            candidate.fail(error)
            if bench:
                bench.check_context()


def add_kernels(ran):
    """Kernel names of candidates that ran, in one profiler session, or in more where one fails.

    An error of one candidate is recorded with it and the others go on. A session that loses events
    is halved, so that at most the candidate that does it stays without kernels.
    """
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
        if len(ran) == 1:
            ran[0].record["profile_error"] = str(error)[:300]
            print(f"kernel names not collected: {error}", file=sys.stderr)
        else:
            middle = len(ran) // 2
            add_kernels(ran[:middle])
            add_kernels(ran[middle:])
