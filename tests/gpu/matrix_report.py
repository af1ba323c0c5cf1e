"""What pytorch_matrix.py makes of its measurements: each cell's word, what is wrong with it, and the tables."""
import re

import runs
from cudnn_direct import ALGORITHMS, OPERATIONS
from pytorch_calls import KINDS, LAYOUTS, Convolution

# The engines of each algorithm, as shim/model/algorithm.cpp has them, and what their kernels are called, measured with
# algorithm_table.py: a pattern that one of the launched kernels must match.
FAMILY = r"implicit_gemm|fprop|[dw]grad|precomputed_convolve|cutlass|nvjet|xmma_gemm"
ENGINES = {
    "forward": {
        0: ([28], r"implicit_convolve|convolve_common_engine"),
        1: ([1, 22, 23, 27, 35, 38, 41, 45, 46, 47, 48, 57, 58, 62, 67, 70], FAMILY),
        2: ([2], r"explicit_convolve"),
        3: ([0], r"grouped_direct"),
        4: ([3], r"fft\dd_r2c"),
        5: ([4], r"fft\dd_r2c"),
        6: ([12], r"winograd(?!_nonfused)"),
        7: ([6], r"winograd_nonfused"),
    },
    "backward_data": {
        0: ([25], r"dgrad_(float_)?engine"),
        1: ([1, 2, 22, 23, 24, 27, 28, 34, 40, 43, 46, 49, 53, 56, 57, 58, 59, 60, 62, 63, 64, 65, 67, 71, 73, 74, 76], FAMILY),
        2: ([4], r"fft\dd_r2c"),
        3: ([5, 50], r"fft\dd_r2c"),
        4: ([19], r"winograd(?!_nonfused)"),
        5: ([7], r"winograd_nonfused"),
    },
    "backward_filter": {
        0: ([20], r"wgrad_alg0_engine|wgrad(Nd)?_engine"),
        1: ([1, 9, 10, 15, 22, 23, 25, 30, 33, 34, 37, 38, 39, 40, 45, 46, 48, 49, 50, 61, 62, 65, 67, 68], FAMILY),
        2: ([18], r"fft\dd_r2c"),
        3: ([20], r"wgrad_alg0_engine|wgrad(Nd)?_engine"),
        4: ([], r"winograd(?!_nonfused)"),
        5: ([17], r"winograd_nonfused"),
        6: ([], r"fft\dd_r2c"),
    },
}
NOT_SENT = "PyTorch itself does not send it to cuDNN on this path"


def normal(reason):
    """A reason without the engine that gave it."""
    return re.sub(r"\beng\d+(_k\d+=-?\d+)*:? ?", "", reason or "no reason given").strip()


def winograd(key, cell):
    """The filter's size where a Winograd kernel ran, also as PyTorch's own choice; else None."""
    return Convolution(*key[1:]).problem.window[0] if re.search("winograd", str(cell["kernels"])) else None


def allowed_error(key, cell):
    return runs.bound(key[2], Convolution(*key[1:]).length(key[0]), winograd(key, cell))


def judge(path, algorithm, key, cell, direct):
    """(what stands in the table: ("set", engine) or ("refused", reason), [what is wrong])."""
    operation, size, kind, _ = key
    choice, wrong = cell["choice"], []
    engines, pattern = ENGINES[operation][algorithm]
    if choice is None:
        if path == "legacy" and kind == "bf16":
            return ("refused", NOT_SENT), []
        return ("refused", "no record"), [f"no choice in the log; kernels {cell['kernels'][:2]}"]
    ran = choice["ran"] or ""
    allowed = allowed_error(key, cell)
    if not cell["error"] <= allowed:
        wrong.append(f"error {cell['error']:.1e}, allowed {allowed:.1e}; {ran} ran")
    if choice["choice"] != "set":
        reason = normal(choice["reason"])
        if direct is None:
            wrong.append("the refusal could not be checked")
        elif direct["ran"]:
            wrong.append(f"refused ({reason}), but these run directly: {' '.join(direct['ran'])}")
        return ("refused", reason), wrong
    if path == "graph" and runs.parse_tag(ran)[0] not in engines:
        wrong.append(f"set, but {ran} does not belong to the algorithm")
    if path == "legacy" and not ran.startswith(f"{algorithm} "):
        wrong.append(f"set, but {ran} ran")
    if path == "graph" and not any(re.search(pattern, name) for name in cell["kernels"]):
        wrong.append(f"set, but the kernels are {cell['kernels']}")
    if direct is None or direct["kernels"] is None:
        wrong.append(f"{ran} could not be run directly: {direct['error'] if direct else 'no answer'}")
    # Which kernels, not in which order: FFT, Winograd and grouped engines launch theirs on several streams of their own.
    elif set(direct["kernels"]) != set(cell["kernels"]):
        differ = sorted(name[:120] for name in set(direct["kernels"]) ^ set(cell["kernels"]))
        wrong.append(f"{ran}: kernels that only one of PyTorch's and the direct run launched: {differ}")
    return ("set", ran.split("_")[0].split(" ")[0] if path == "graph" else ""), wrong


def title(operation, algorithm):
    """ "4 FFT"; the algorithms that cuDNN only numbers stay numbers."""
    name = ALGORITHMS[operation][algorithm]
    return str(algorithm) if name.isdigit() else f"{algorithm} {name}"


class Legend:
    """A letter for each reason, in order of appearance."""

    def __init__(self):
        self.letters = {}

    def __getitem__(self, reason):
        n = len(self.letters)
        return self.letters.setdefault(reason, (chr(96 + n // 26) if n >= 26 else "") + chr(97 + n % 26))


def table(path, operation, judged, filters, legend):
    """Rows algorithm and filter, columns arithmetic and layout."""
    lines = ["| algorithm | filter | " + " | ".join(f"{kind} {layout}" for kind in KINDS for layout in LAYOUTS) + " |",
             "|" + " --- |" * (2 + len(KINDS) * len(LAYOUTS))]
    for algorithm in ENGINES[operation]:
        for size in filters:
            row = []
            for kind in KINDS:
                for layout in LAYOUTS:
                    word, remark = judged.get((path, algorithm, operation, size, kind, layout), ("failed", ""))
                    row.append(f"set {remark}".strip() if word == "set" else legend[remark] if word == "refused" else word)
            lines.append(f"| {title(operation, algorithm)} | {size} | " + " | ".join(row) + " |")
    return lines


def worst_errors(cells):
    """Lines: for each operation and arithmetic the set cell that comes closest to its bound."""
    lines = ["| operation | arithmetic | kernels | largest error | allowed there | where |", "|" + " --- |" * 6]
    worst = {}
    for (_, algorithm, *key), (error, allowed, size) in cells.items():
        group = key[0], key[2], "Winograd" if size else "others"
        if group not in worst or error / allowed > worst[group][0]:
            worst[group] = error / allowed, error, allowed, f"algorithm {algorithm}, {key[1]} {key[3]}"
    order = lambda item: (list(OPERATIONS).index(item[0][0]), list(KINDS).index(item[0][1]), item[0][2])
    for (operation, kind, group), (_, error, allowed, where) in sorted(worst.items(), key=order):
        lines.append(f"| {operation} | {kind} | {group} | {error:.1e} | {allowed:.1e} | {where} |")
    return lines


def report(paths, filters, results, answers, failures, seconds):
    """Lines of the report; what is wrong is added to failures."""
    judged, bounds, legend, lines = {}, {}, Legend(), []
    for (path, algorithm), cells in results.items():
        if isinstance(cells, str):
            failures.append(f"{path}, algorithm {algorithm}: the program failed: {cells}")
            continue
        for key, cell in cells.items():
            answer, wrong = judge(path, algorithm, key, cell, answers.get((path, algorithm, *key)))
            judged[path, algorithm, *key] = answer
            failures += [f"{path} {algorithm} {' '.join(key)}: {each}" for each in wrong]
            if answer[0] == "set":
                bounds[path, algorithm, *key] = cell["error"], allowed_error(key, cell), winograd(key, cell)
    for path in paths:
        for operation in OPERATIONS:
            lines += [f"\n**{operation}** ({path} API)\n", *table(path, operation, judged, filters, legend)]
    lines.append("\n`set`: it ran, as read back from the plan, with the kernels of a direct run of that engine, in bounds. Letters: refused, "
                 "each confirmed by direct runs of every engine that the algorithm stands for:\n")
    where = {}
    for (path, algorithm, operation, *_), (word, reason) in judged.items():
        if word == "refused":
            where.setdefault(reason, {}).setdefault(f"{operation} {algorithm}" + (" legacy" if path == "legacy" else ""), []).append(1)
    for reason, letter in legend.letters.items():
        count = ", ".join(f"{place} ({len(n)})" for place, n in sorted(where.get(reason, {}).items()))
        lines.append(f"- {letter}: {reason}: {count}".replace("|", "\\|"))
    lines += ["\nLargest max\\|out − ref\\| / max\\|ref\\| against float64 of what was set, measured by how close it comes to its bound:\n",
              *worst_errors(bounds)]
    words = [word for word, _ in judged.values()]
    lines.append(f"\n{len(words)} cells, {words.count('set')} set, {words.count('refused')} refused, {len(failures)} failures; {seconds:.0f} s")
    lines += [f"- FAILED {each}" for each in failures]
    return lines
