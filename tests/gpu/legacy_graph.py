"""The legacy API beside the graph API, through the C++ client: what is set, and the time of each.

    python3 legacy_graph.py [--no-times] [--out legacy_graph.md]

The problems are those of pytorch_matrix.py, with a batch of 8. One process for each algorithm number, API and kind of
arithmetic runs them with all three CONV_..._ALGO naming the number. Set is what the log says; the kernels come from CUPTI
(kernel_names.cpp), each problem's by its place in the order; every refusal is confirmed by cudnn_direct. On the legacy API
a number is cuDNN's own, whatever kernels it launches: where those are of another kind than the graph's engine has, that is
said. The times are the client's (median of CUDA event pairs around each call, so the call's own cost counts where the GPU
waits for it), one process after the other, with the batch of the matrix.
"""
import argparse
import concurrent.futures
import pathlib
import re
import tempfile
import time

import callers
import pytorch_matrix
import runs
from cudnn_direct import OPERATIONS
from matrix_report import ENGINES, Legend, normal, title
from pytorch_calls import FILTERS, KINDS, LAYOUTS, Convolution
from pytorch_matrix import VARIABLES

APIS = ("graph", "legacy")
BATCH, TIMED_KINDS, REPEATS = 8, (("tf32", "nchw"), ("fp16", "nhwc")), 15
# fp32 without TF32, as each API says it.
EXACT = {"graph": ("--deny-note", "tensor_core"), "legacy": ("--math", "fma")}


def text_of(key, batch=None):
    """The problem of (operation, filter, kind, layout), as convpin writes it."""
    text = Convolution(*key[1:]).text(key[0])
    return re.sub(r"x=\[\d+", f"x=[{batch}", text) if batch else text


def run_client(client, algorithm, api, kind, keys, batch, folder, counter=None, repeats=1, check=True):
    """{key: {"error", "time", "choice", "kernels"}} of one process, or its error text."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
    texts = {text_of(key, batch): key for key in keys}
    (folder / "problems").write_text("\n".join(texts))
    env = {"CONVPIN_LOG": str(folder / "log"), "CONVPIN_PROFILE": "off", "LD_LIBRARY_PATH": ":".join(callers.nvidia_folders("lib"))}
    env |= {name: str(algorithm) for operation, name in VARIABLES.items() if algorithm in ENGINES[operation]}
    if counter:
        env |= {"CUDA_INJECTION64_PATH": str(counter), "KERNEL_NAMES": str(folder / "kernels"), "KERNEL_ORDER": "1"}
    argv = [client, "--problems", str(folder / "problems"), "--api", api, "--repeat", str(repeats), "--print", "problem,error,time",
            *(["--check"] if check else ["--time"]), *(EXACT[api] if kind == "fp32" else ())]
    status, out, err = runs.child(argv, env=env, timeout=400)
    if status not in (0, 1) or not (folder / "log").exists():   # 1: a problem did not run, or is out of the client's own bound
        return f"{' '.join(argv)} ended with {status}: {err[-1000:]}"
    choices = {r["problem"]: r for r in runs.read_log(folder / "log") if r["type"] == "choice"}
    groups = [[]]
    for path in folder.glob("kernels.*"):
        for name in path.read_text().splitlines():
            groups.append([]) if name == "d2h" else groups[-1].append(name)
    cells, lines = {}, [line.split("\t") for line in out.splitlines()]
    for i, (text, error, took) in enumerate(lines):
        cells[texts[text]] = dict(error=float(error) if error else None, time=float(took) if took else None, choice=choices.get(text),
                                  kernels=groups[i] if len(groups) == len(lines) + 1 else None)
    for text in texts.keys() - {line[0] for line in lines}:
        cells[texts[text]] = dict(error=None, time=None, choice=choices.get(text), kernels=None,
                                  failed=next((line for line in err.splitlines() if text in line), "no line of output"))
    return cells


def judge(api, algorithm, key, cell, direct, counted):
    """(word for the table, what is wrong, a remark on the kernels)."""
    wrong, remark, choice = [], None, cell["choice"]
    if choice is None:
        return "failed", [cell.get("failed", "no choice in the log")], None
    if cell.get("failed"):
        wrong.append(cell["failed"])
    size = Convolution(*key[1:]).problem.window[0]
    winograd = size if re.search("winograd", str(cell["kernels"]) + choice["ran"].lower()) else None
    allowed = runs.bound(key[2], Convolution(*key[1:]).length(key[0]), winograd)
    if cell["error"] is not None and not cell["error"] <= allowed:
        wrong.append(f"error {cell['error']:.1e}, allowed {allowed:.1e}; {choice['ran']} ran")
    if choice["choice"] != "set":
        if direct is None:
            wrong.append("the refusal could not be checked")
        elif direct["ran"]:
            wrong.append(f"refused ({normal(choice['reason'])}), but these run directly: {' '.join(direct['ran'])}")
        return normal(choice["reason"]), wrong, None
    engines, pattern = ENGINES[key[0]][algorithm]
    if api == "graph" and runs.parse_tag(choice["ran"])[0] not in engines or api == "legacy" and not choice["ran"].startswith(f"{algorithm} "):
        wrong.append(f"set, but {choice['ran']} ran")
    if counted and not cell["kernels"]:
        wrong.append("no kernels were seen")
    elif counted and not any(re.search(pattern, name) for name in cell["kernels"]):
        remark = next((re.search(p, name)[0] for name in cell["kernels"] for p in [callers.RIVALS + "|engine"] if re.search(p, name)), cell["kernels"][0][:60])
        if api == "graph":
            wrong.append(f"set, but the kernels are {cell['kernels']}")
    return "set", wrong, remark


def matrix(client, options, folder, failures):
    """Lines: legacy and graph in one cell, and the notes below."""
    counter, why = callers.build_kernel_names(folder)
    if not counter:
        failures.append(f"kernels can't be counted: {why}")
    jobs = [(a, api, kind) for a in range(8) for api in APIS for kind in KINDS]
    keys = {kind: [(o, f, kind, layout) for o in OPERATIONS for f in FILTERS for layout in LAYOUTS] for kind in KINDS}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = dict(zip(jobs, pool.map(lambda j: run_client(client, *j, [k for k in keys[j[2]] if j[0] in ENGINES[k[0]]], BATCH, folder, counter), jobs)))
    tasks = []
    for (a, api, kind), cells in results.items():
        if isinstance(cells, str):
            failures.append(cells)
            continue
        tasks += [pytorch_matrix.task_for(api, a, key, cell) for key, cell in cells.items() if cell["choice"] and cell["choice"]["choice"] != "set"]
    answers, wrong = pytorch_matrix.run_direct(tasks, 8, folder)
    failures += wrong
    legend, others, lines, total = Legend(), {}, [], []
    for operation in OPERATIONS:
        lines += [f"\n**{operation}**: graph / legacy\n", "| algorithm | filter | " + " | ".join(f"{k} {layout}" for k in KINDS for layout in LAYOUTS) + " |",
                  "|" + " --- |" * (2 + len(KINDS) * len(LAYOUTS))]
        for a in ENGINES[operation]:
            for size in FILTERS:
                row = []
                for kind in KINDS:
                    for layout in LAYOUTS:
                        key, words = (operation, size, kind, layout), []
                        for api in APIS:
                            cells = results[a, api, kind]
                            cell = {} if isinstance(cells, str) else cells.get(key)
                            word, wrong, remark = judge(api, a, key, cell, answers.get((api, a, *key)), counter) if cell else ("failed", [], None)
                            failures += [f"{api} {a} {' '.join(key)}: {each}" for each in wrong]
                            if remark:
                                others.setdefault((operation, a, remark), []).append(f"{size} {kind} {layout}")
                            words.append(word if word in ("set", "failed") else legend[word])
                        total += words
                        row.append(" / ".join(words))
                lines.append(f"| {title(operation, a)} | {size} | " + " | ".join(row) + " |")
    lines.append("\nLetters: refused, each confirmed by direct runs:\n")
    lines += [f"- {letter}: {reason}".replace("|", "\\|") for reason, letter in legend.letters.items()]
    lines.append("\nWhere cuDNN's own legacy call launches another kind of kernel than the engines that the number stands for:\n")
    lines += [f"- {operation} {a}: `{remark}` in {len(where)}: {', '.join(where[:4])}{' …' if len(where) > 4 else ''}"
              for (operation, a, remark), where in sorted(others.items())]
    lines.append(f"\n{len(total)} cells, {total.count('set')} set, {total.count('failed')} failed")
    return lines


def times(client, folder, failures):
    """Lines: median milliseconds of both APIs side by side."""
    keys = {kind: [(o, f, kind, layout) for o in OPERATIONS for f in FILTERS] for kind, layout in TIMED_KINDS}
    found = {}
    for algorithm in range(8):
        for kind in keys:
            for api in APIS:
                cells = run_client(client, algorithm, api, kind, [k for k in keys[kind] if algorithm in ENGINES[k[0]]], None, folder,
                                   repeats=REPEATS, check=False)
                if isinstance(cells, str):
                    failures.append(cells)
                    continue
                for key, cell in cells.items():
                    if cell["choice"] and cell["choice"]["choice"] == "set":
                        found[key, algorithm, api] = cell["time"]
    lines = [f"\n**Time**: median ms of {REPEATS} calls, graph / legacy; –: refused\n", "| operation | algorithm | arithmetic | " + " | ".join(FILTERS) + " |",
             "|" + " --- |" * (3 + len(FILTERS))]
    for operation in OPERATIONS:
        for a in ENGINES[operation]:
            for kind, layout in TIMED_KINDS:
                pair = lambda f: [found.get(((operation, f, kind, layout), a, api)) for api in APIS]
                if any(t for f in FILTERS for t in pair(f)):
                    row = [" / ".join("–" if t is None else f"{t:.3f}" for t in pair(f)) for f in FILTERS]
                    lines.append(f"| {operation} | {title(operation, a)} | {kind} {layout} | " + " | ".join(row) + " |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-times", action="store_true")
    parser.add_argument("--no-matrix", action="store_true")
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--out", default="legacy_graph.md")
    options = parser.parse_args()
    client = callers.built("convclient")
    if not client:
        parser.error(f"convclient is not built beside {runs.LIBRARY}")
    start, failures, lines = time.monotonic(), [], []
    with tempfile.TemporaryDirectory() as folder:
        if not options.no_matrix:
            lines += matrix(client, options, folder, failures)
        if not options.no_times:
            lines += times(client, folder, failures)
    lines.append(f"\n{len(failures)} failures; {time.monotonic() - start:.0f} s")
    lines += [f"- FAILED {each}".replace("\n", " / ") for each in failures]
    text = "\n".join([f"Measured {runs.versions()}; `tests/gpu/legacy_graph.py`", *lines, ""])
    pathlib.Path(options.out).write_text(text)
    print(text[-6000:])
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
