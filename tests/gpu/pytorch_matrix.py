"""Every algorithm of the three operations through stock PyTorch: set or refused, and whether that is true.

    python3 pytorch_matrix.py [--paths graph legacy] [--filters 3x3 ...] [--out pytorch_matrix.md]

One process for each algorithm number, which CONV_FWD_ALGO, CONV_BWD_DATA_ALGO and CONV_BWD_FILTER_ALGO all name, runs all
problems of pytorch_calls.py. Then cudnn_direct, without convpin and without PyTorch's convolutions, runs the engine that
the log names (its kernels must be those that torch.profiler saw under PyTorch), and for each refusal every engine that
the algorithm stands for (none may run). It fails for each of: "set" with other kernels than that, or of another
algorithm; a result out of its bound; neither set nor refused; a refusal of what runs directly.
"""
import argparse
import concurrent.futures
import json
import pathlib
import sys
import tempfile
import time

import runs
from cudnn_direct import OPERATIONS
from matrix_report import ENGINES, report
from pytorch_calls import FILTERS, LAYOUTS, Convolution, convolutions

VARIABLES = {"forward": "CONV_FWD_ALGO", "backward_data": "CONV_BWD_DATA_ALGO", "backward_filter": "CONV_BWD_FILTER_ALGO"}

# What PyTorch's own filter, or convpin for an algorithm by number, keeps from running: notes that exclude an engine.
EXCLUDED = {"fp32": {"TENSOR_CORE", "DOWN_CONVERT_INPUTS"}, "other": {"DOWN_CONVERT_INPUTS"}}
MATH_TYPES = {"DEFAULT_MATH": "DEFAULT", "TENSOR_OP_MATH": "TENSOR_OP", "TENSOR_OP_MATH_ALLOW_CONVERSION": "ALLOW_CONVERSION",
              "FMA_MATH": "FMA"}   # the log's word: cudnn_direct's
# Math types that PyTorch gives to legacy calls.
MATHS = {"fp32": ["FMA"], "tf32": ["DEFAULT"], "fp16": ["DEFAULT", "TENSOR_OP"], "bf16": ["DEFAULT", "TENSOR_OP"]}


def worker(filters):
    """Under the library: every problem of every operation; a JSON line each, with its error and its kernels."""
    import torch
    lines, functions, wanted, references = [], [], convolutions(filters), {}
    for c in wanted:
        tensors = c.tensors()
        if c.layout == LAYOUTS[0]:
            references = c.references(*tensors)
        for operation in OPERATIONS:
            def function(c=c, operation=operation, tensors=tensors):
                return c.call(operation, *tensors)
            exact = references[operation]
            error = ((function().double() - exact).abs().max() / exact.abs().max()).item()
            lines.append({"key": [operation, c.filter, c.kind, c.layout], "error": error})
            functions.append(function)
    torch.cuda.synchronize()
    for line, names in zip(lines, runs.names_of_each(functions)):
        print(json.dumps({**line, "kernels": names}))


def run_algorithm(algorithm, path, filters, folder):
    """{(operation, filter, kind, layout): {"error", "kernels", "choice"}} of one process, or its error text."""
    log = pathlib.Path(folder) / f"{algorithm}-{path}.jsonl"
    env = {"CONVPIN_LOG": str(log), "CONVPIN_PROFILE": "off"}
    env |= {name: str(algorithm) for operation, name in VARIABLES.items() if algorithm in ENGINES[operation]}
    if path == "legacy":
        env["TORCH_CUDNN_V8_API_DISABLED"] = "1"
    status, out, err = runs.python("pytorch_matrix.py", "--worker", "--filters", *filters, env=env, timeout=300)
    if status != 0:
        return err[-2000:]
    choices = {r["problem"]: r for r in runs.read_log(log) if r["type"] == "choice"}
    cells = {}
    for line in map(json.loads, out.splitlines()):
        operation, *which = line["key"]
        if algorithm in ENGINES[operation]:
            cells[operation, *which] = {**line, "choice": choices.get(Convolution(*which).text(operation))}
    return cells


def direct_worker(file):
    """Without the library: tasks {"key", "path", "algorithm", "ran", "math"}, a JSON line each.

    With "ran" (an engine's tag, or an algorithm of the legacy API) its kernels; without, what of the algorithm runs.
    """
    import torch
    import cudnn_direct
    cudnn = cudnn_direct.Cudnn()
    tasks = json.loads(pathlib.Path(file).read_text())
    tensors, functions, named = {}, [], []

    def prepared(task):
        """[(name, function)] of what the task asks for."""
        operation, *which = task["key"]
        c = Convolution(*which)
        problem = c.problem.__class__(**{**vars(c.problem), "operation": operation})
        if c not in tensors:
            tensors.clear()   # tasks are sorted
            tensors[c] = c.tensors()
        xwy = [t.clone() if i == problem.written else t for i, t in enumerate(tensors[c])]
        excluded = EXCLUDED.get(c.kind, EXCLUDED["other"])
        if task["path"] == "legacy":
            for math in [task["math"]] if task["ran"] else MATHS[c.kind]:
                yield f"{task['algorithm']} {math}", lambda: legacy(problem, math, task["algorithm"], xwy)
            return
        graph = cudnn_direct.ConvolutionGraph(cudnn, problem)
        tags = [task["ran"]] if task["ran"] else [f"eng{e}" for e in ENGINES[operation][task["algorithm"]][0]]
        for tag in tags:
            yield tag, lambda: engine(graph, tag, excluded if not task["ran"] else set(), xwy)

    def bound(size, bind, xwy):
        return bind(*xwy, torch.empty(size, device="cuda", dtype=torch.uint8) if size else None)

    def legacy(problem, math, algorithm, xwy):
        call = cudnn_direct.LegacyConvolution(cudnn, problem, math)
        return bound(call.workspace(algorithm), lambda *tensors: call.bind(algorithm, *tensors), xwy)

    def engine(graph, tag, excluded, xwy):
        index, knobs = runs.parse_tag(tag)
        configuration = graph.configuration(index, knobs)
        if excluded & set(configuration.numerical_notes()):
            return None
        plan = graph.plan(configuration)
        return bound(plan.workspace, plan.bind, xwy)

    for task in tasks:
        answer = {"key": task["key"], "path": task["path"], "algorithm": task["algorithm"], "ran": [], "kernels": None, "error": ""}
        try:
            for name, make in prepared(task):
                try:
                    run = make()
                    if run is None:
                        continue
                    run()
                    torch.cuda.synchronize()
                    answer["ran"].append(name)
                    if task["ran"]:
                        functions.append(run)
                        named.append(answer)
                except (cudnn_direct.CudnnError, torch.OutOfMemoryError) as error:
                    answer["error"] = str(error)[:300]
        except cudnn_direct.CudnnError as error:   # not even a graph
            answer["error"] = str(error)[:300]
        if not task["ran"] or not answer["ran"]:
            print(json.dumps(answer))
        if len(functions) >= 24 or task is tasks[-1]:   # workspaces are kept until then
            for each, names in zip(named, runs.names_of_each(functions)):
                print(json.dumps({**each, "kernels": names}))
            functions.clear()
            named.clear()


def run_direct(tasks, jobs, folder):
    """{(path, algorithm, operation, filter, kind, layout): answer of direct_worker}, and what failed."""
    answers, failures = {}, []
    order = sorted(tasks, key=lambda t: (t["key"][1:], t["key"][0]))
    share = -(-len(order) // jobs) or 1

    def one(start):
        file = pathlib.Path(folder) / f"tasks-{start}.json"
        file.write_text(json.dumps(order[start:start + share]))
        return runs.python("pytorch_matrix.py", "--direct", file, preload=False, timeout=300)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for status, out, err in pool.map(one, range(0, len(order), share)):
            if status:
                failures.append(f"the direct runs failed: {err[-2000:]}")
            for line in map(json.loads, out.splitlines()):
                answers[line["path"], line["algorithm"], *line["key"]] = line
    return answers, failures


def task_for(path, algorithm, key, cell):
    """What is to be run directly for a cell; None where there is nothing to compare with."""
    choice = cell["choice"]
    if choice is None:
        return None
    ran, math = None, None
    if choice["choice"] == "set":
        ran = choice["ran"] if path == "graph" else str(algorithm)
        math = MATH_TYPES[choice["math_type"] or "DEFAULT_MATH"]
    return {"key": list(key), "path": path, "algorithm": algorithm, "ran": ran, "math": math}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--direct", help=argparse.SUPPRESS)
    parser.add_argument("--paths", nargs="+", default=["graph"], choices=["graph", "legacy"], help="PyTorch's ways to cuDNN (graph)")
    parser.add_argument("--filters", nargs="+", default=list(FILTERS), choices=list(FILTERS))
    parser.add_argument("--algorithms", nargs="+", type=int, default=list(range(8)))
    parser.add_argument("--out", default="pytorch_matrix.md")
    parser.add_argument("--jobs", type=int, default=8)
    options = parser.parse_args()
    if options.worker:
        return worker(options.filters)
    if options.direct:
        return direct_worker(options.direct)

    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            names = [(a, path) for path in options.paths for a in options.algorithms]
            done = pool.map(lambda name: run_algorithm(*name, options.filters, folder), names)
            results = {(path, a): cells for (a, path), cells in zip(names, done)}
        print(f"PyTorch: {time.monotonic() - start:.0f} s", file=sys.stderr)
        tasks = [task_for(path, a, key, cell) for (path, a), cells in results.items() if not isinstance(cells, str)
                 for key, cell in cells.items()]
        answers, failures = run_direct([task for task in tasks if task], options.jobs, folder)
    lines = report(options.paths, options.filters, results, answers, failures, time.monotonic() - start)
    text = "\n".join([f"Measured {runs.versions()}; `tests/gpu/pytorch_matrix.py`", *lines, ""])
    pathlib.Path(options.out).write_text(text)
    print(text[-6000:])
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
