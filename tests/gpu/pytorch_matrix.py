"""Every forward algorithm 0-7 through stock PyTorch, by both of its convolution paths, with cudnn.benchmark off and on.

For each: what convpin's log says ran, the kernels that torch.profiler saw, and the error against float64. It fails if
"set" did not launch the algorithm's kernels, if an output is out of bounds, if anything is neither set nor refused, or
if a refusal is not confirmed by running the same thing directly, without convpin and without PyTorch's convolution.
"""
import argparse
import concurrent.futures
import itertools
import json
import pathlib
import re
import tempfile

import runs

# (kind of arithmetic, torch dtype, batch): a batch of its own, so that TF32 on and off are different problems.
KINDS = [("tf32", "float32", 32), ("float", "float32", 31), ("half", "float16", 32)]
FILTERS = [3, 5]
LAYOUTS = ["nchw", "nhwc"]
COMBOS = list(itertools.product(KINDS, FILTERS, LAYOUTS))
CASES = [("graph", False), ("graph", True), ("legacy", False), ("legacy", True)]

# The kernels of each algorithm (measured with tests/gpu/algorithm_table.py). On the legacy API the library itself runs
# another kernel where the algorithm's own does not take the problem; those are listed apart.
KERNELS = {
    0: r"implicit_convolve_[sd]gemm|convolve_common_engine",
    1: r"implicit_gemm|fprop|precomputed_convolve|cutlass.*gemm|nvjet",
    2: r"explicit_convolve_[sd]gemm",
    3: r"conv2d_grouped_direct",
    4: r"fft2d",
    5: r"fft2d|fft1d",
    6: r"winograd(?!_nonfused)",
    7: r"winograd_nonfused|winogradForward",
}
LEGACY_KERNELS = {**KERNELS, 2: KERNELS[2] + r"|conv2d_grouped_direct"}


def inputs(kind, size, layout, torch):
    name, dtype, batch = kind
    generator = torch.Generator(device="cuda").manual_seed(size)
    memory = torch.channels_last if layout == "nhwc" else torch.contiguous_format
    draw = lambda *shape: torch.randn(*shape, device="cuda", generator=generator).to(getattr(torch, dtype)).to(memory_format=memory)
    return draw(batch, 64, 56, 56), draw(64, 64, size, size)


def problem_text(kind, size, layout):
    pad = size // 2
    return (f"forward x=[{kind[2]},64,56,56] w=[64,64,{size},{size}] {'half' if kind[0] == 'half' else 'float'} {layout} "
            f"pad={pad},{pad} stride=1,1 dilation=1,1 groups=1")


def worker(benchmark):
    """One process: all combos, one JSON line each with the kernels of the second call and its error."""
    import torch
    from torch.profiler import ProfilerActivity, profile
    torch.backends.cudnn.benchmark = benchmark
    for kind, size, layout in COMBOS:
        torch.backends.cudnn.allow_tf32 = kind[0] == "tf32"
        x, w = inputs(kind, size, layout, torch)
        first = torch.nn.functional.conv2d(x, w, padding=size // 2)
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            second = torch.nn.functional.conv2d(x, w, padding=size // 2)
            torch.cuda.synchronize()
        with torch.backends.cudnn.flags(enabled=False):
            reference = torch.nn.functional.conv2d(x.double(), w.double(), padding=size // 2)
        error = ((second.double() - reference).abs().max() / reference.abs().max()).item()
        print(json.dumps({"problem": problem_text(kind, size, layout), "kind": kind[0], "error": error,
                          "kernels": runs.kernels_of(seen.events()),
                          "equal": torch.equal(first, second)}), flush=True)


def run_case(algorithm, api, benchmark, folder):
    log = pathlib.Path(folder) / f"{algorithm}-{api}-{int(benchmark)}.jsonl"
    env = {"CONVPIN_LOG": str(log)}
    if algorithm is not None:
        env["CONV_FWD_ALGO"] = str(algorithm)
    if api == "legacy":
        env["TORCH_CUDNN_V8_API_DISABLED"] = "1"
    status, out, err = runs.python("pytorch_matrix.py", "--worker", *(["--benchmark"] if benchmark else []), env=env)
    if status != 0:
        return algorithm, api, benchmark, None, None, err[-2000:]
    seen = {r["problem"]: r for r in map(json.loads, out.splitlines())}
    # With benchmark every plan that is timed leaves a choice; the one that stays is called most.
    choices, calls = {}, {}
    for r in runs.read_log(log):
        if r["type"] == "choice":
            choices.setdefault(r["problem"], {})[r["ran"]] = r
        if r["type"] == "count":
            calls[r["problem"], r["ran"]] = r["calls"]
    choices = {problem: max(ways.values(), key=lambda r: calls.get((problem, r["ran"]), 0)) for problem, ways in choices.items()}
    return algorithm, api, benchmark, seen, choices, err


# The engines of each algorithm, as shim/model/algorithm.cpp has them.
ENGINES = {0: [28], 1: [1, 22, 23, 27, 35, 38, 41, 45, 46, 47, 48, 57, 58, 62, 67, 70], 2: [2], 3: [0], 4: [3], 5: [4], 6: [12], 7: [6]}


class Direct:
    """Whether an algorithm runs when it is called directly: no convpin, no framework. Remembers its answers."""

    def __init__(self):
        import cudnn_direct
        self.module, self.cudnn, self.answers = cudnn_direct, cudnn_direct.Cudnn(), {}

    def __call__(self, api, algorithm, kind, size, layout):
        key = (api, algorithm, kind[0], size, layout)
        if key not in self.answers:
            problem = self.module.Problem(kind[2], 64, (56, 56), 64, (size, size), pad=size // 2, layout=layout,
                                          dtype="half" if kind[0] == "half" else "float")
            self.answers[key] = (self.legacy if api == "legacy" else self.graph)(algorithm, problem, kind)
        return self.answers[key]

    def runs(self, prepare, problem, kind):
        import torch
        x, w = inputs(kind, problem.window[0], problem.layout, torch)
        y = torch.empty(problem.shapes()[2], device="cuda", dtype=x.dtype)
        try:
            size, bind = prepare()
            workspace = torch.empty(size, device="cuda", dtype=torch.uint8) if size else None
            bind(x, w, y, workspace)()
            torch.cuda.synchronize()
            return True
        except self.module.CudnnError:
            return False

    def graph(self, algorithm, problem, kind):
        graph = self.module.ConvolutionGraph(self.cudnn, problem)

        def prepare(engine):
            plan = graph.plan(graph.configuration(engine))
            return plan.workspace, plan.bind
        return any(self.runs(lambda: prepare(engine), problem, kind) for engine in ENGINES[algorithm])

    def legacy(self, algorithm, problem, kind):
        def prepare(math):
            call = self.module.LegacyConvolution(self.cudnn, problem, math)
            return call.workspace(algorithm), lambda *tensors: call.bind(algorithm, *tensors)
        maths = {"tf32": ["DEFAULT"], "float": ["FMA"], "half": ["DEFAULT", "TENSOR_OP"]}[kind[0]]
        return any(self.runs(lambda: prepare(math), problem, kind) for math in maths)


def judge(algorithm, api, kind, size, seen, choice, direct):
    """('set' | 'refused', remark, wrong) for one cell."""
    expected = (LEGACY_KERNELS if api == "legacy" else KERNELS)[algorithm]
    wrong = []
    ran = choice["ran"] if choice else ""
    winograd = 7 if ran.startswith("7 ") or re.match(r"eng6(_|$)", ran) else None   # also where it is PyTorch's own choice
    if seen["error"] > runs.bound(kind[0], 64 * size * size, winograd, size):
        wrong.append(f"error {seen['error']:.1e}")
    if choice is None:
        return "?", "no choice in the log", wrong + ["no choice in the log"]
    if choice["choice"] == "set":
        if not any(re.search(expected, k) for k in seen["kernels"]):
            wrong.append("kernels " + ", ".join(k[:60] for k in seen["kernels"]))
        return "set", ran, wrong
    if direct():
        wrong.append("refused, but it runs directly: " + (choice["reason"] or ""))
    return "refused", choice["reason"] or "", wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--benchmark", action="store_true")
    parser.add_argument("--out", default="pytorch_matrix.md")
    parser.add_argument("--jobs", type=int, default=4)
    options = parser.parse_args()
    if options.worker:
        return worker(options.benchmark)

    direct, failures, refusals, cells = Direct(), [], {}, {}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda job: run_case(*job, folder),
                                [(a, api, b) for a in range(8) for api, b in CASES]))
    for algorithm, api, benchmark, seen, choices, err in results:
        if seen is None:
            failures.append(f"{algorithm} {api} benchmark={benchmark}: the program failed: {err}")
            continue
        for kind, size, layout in COMBOS:
            text = problem_text(kind, size, layout)
            answer, remark, wrong = judge(algorithm, api, kind, size, seen[text], choices.get(text),
                                          lambda: direct(api, algorithm, kind, size, layout))
            cells[algorithm, api, benchmark, kind[0], size, layout] = answer, seen[text]["error"], remark
            if answer == "refused":
                refusals.setdefault((algorithm, api, re.sub(r"^eng\d+[^:]*: ", "", remark)), []).append(f"{kind[0]} {size}x{size} {layout}")
            failures += [f"{algorithm} {api} benchmark={benchmark} {text}: {w}" for w in wrong]

    with open(options.out, "w") as out:
        out.write(f"Measured {runs.versions()}; `tests/gpu/pytorch_matrix.py`\n\n")
        heads = [f"{kind[0]} {size}×{size} {layout}" for kind, size, layout in COMBOS]
        out.write("| algorithm | path | benchmark | " + " | ".join(heads) + " |\n|" + " --- |" * (len(heads) + 3) + "\n")
        def row(a, api, b):
            found = [cells.get((a, api, b, k[0], size, layout), ("failed", 0, "")) for k, size, layout in COMBOS]
            return [f"set, {c[2].split('_')[0].split(' ')[0]}" if c[0] == "set" else c[0] for c in found]
        for a in range(8):
            for api in ("graph", "legacy"):
                off, on = row(a, api, False), row(a, api, True)
                for benchmark, found in ([("off and on", off)] if off == on else [("off", off), ("on", on)]):
                    out.write(f"| {a} | {api} | {benchmark} | " + " | ".join(found) + " |\n")
        out.write("\nRefused, with the reason; each confirmed by running it directly:\n\n")
        for (a, api, reason), where in sorted(refusals.items()):
            out.write(f"- {a}, {api}: {reason}: {', '.join(sorted(set(where)))}\n")
        worst = {}
        for (a, api, b, kind, size, _), (answer, error, _) in cells.items():
            key = kind, size, a if a == 7 and answer == "set" else None
            if answer != "set":
                continue
            worst[key] = max(worst.get(key, 0), error)
        out.write("\nWorst max\\|out − ref\\| / max\\|ref\\| against float64, and its bound:\n\n| arithmetic | filter | algorithm | worst | bound |\n| --- | --- | --- | --- | --- |\n")
        for (kind, size, a), error in sorted(worst.items(), key=str):
            out.write(f"| {kind} | {size}×{size} | {'7 WINOGRAD_NONFUSED' if a else 'all others'} | {error:.1e} | {runs.bound(kind, 64 * size * size, a, size):.1e} |\n")
        out.write(f"\n{len(cells)} cells, {sum(c[0] == 'set' for c in cells.values())} set, "
                  f"{sum(c[0] == 'refused' for c in cells.values())} refused, {len(failures)} failures\n")
        out.writelines(f"- FAILED {f}\n" for f in failures)
    print(open(options.out).read()[-3000:])
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
