"""The same layer under several algorithms in one process, through tools/convpin.py: the kernels and the results.

    python3 repin.py [--out repin.md]

PyTorch keeps its plans; what runs is changed at execution. Three programs under the library, one without it:
  algorithms  one layer under at least five algorithms of each operation, back to the framework's own in between
  streams     two threads with a stream each run it while the main thread changes the algorithm
  capture     a capture in between runs the framework's plan, the log says so, and replays are unaffected
It fails where other kernels are launched than the algorithm's, a result is out of its bound, or the module is silent
without the library.
"""
import argparse
import json
import pathlib
import re
import sys
import tempfile
import time

import runs
from cudnn_direct import OPERATIONS
from matrix_report import ENGINES, title

sys.path.insert(0, str(runs.ROOT / "tools"))
ORDER = {"forward": [0, 5, 2, 7, 4, 1, 3, 0], "backward_data": [0, 3, 5, 2, 1, 0], "backward_filter": [0, 5, 2, 1, 3, 0]}


def setting():
    """(convpin, torch, the convolution, its tensors, its references, a function that gives an operation's error)."""
    import convpin
    import torch
    from pytorch_calls import Convolution
    c = Convolution("3x3", "tf32", "nchw")
    tensors = c.tensors()
    references = c.references(*tensors)

    def error(operation, result):
        exact = references[operation]
        return ((result.double() - exact).abs().max() / exact.abs().max()).item()
    return convpin, torch, c, tensors, error


def allowed(c, operation):
    return runs.bound("tf32", c.length(operation), 3)


def algorithms():
    convpin, torch, c, tensors, error = setting()
    lines, functions = [], []
    for operation, numbers in ORDER.items():
        for number in [None, *numbers, None]:
            def function(operation=operation, number=number):
                if number is None:
                    return c.call(operation, *tensors)
                with convpin.pin(**{operation: number}):
                    return c.call(operation, *tensors)
            lines.append({"operation": operation, "algorithm": number, "error": error(operation, function()), "allowed": allowed(c, operation)})
            functions.append(function)
    for line, names in zip(lines, runs.names_of_each(functions)):
        print(json.dumps({**line, "kernels": names}))
    # By name, and for good.
    convpin.conv_fwd_algo = "FFT_TILING"
    print(json.dumps({"operation": "forward", "algorithm": 5, "error": error("forward", c.call("forward", *tensors)), "allowed": allowed(c, "forward"),
                      "kernels": runs.names_of_each([lambda: c.call("forward", *tensors)])[0]}))
    convpin.conv_fwd_algo = -1
    problems = convpin.problems()
    print(json.dumps({"problems": [p["problem"] for p in problems]}))


def streams():
    import threading
    convpin, torch, c, tensors, error = setting()
    stop, worst, wrong = threading.Event(), dict.fromkeys(OPERATIONS, 0.0), []
    torch.cuda.synchronize()

    def work():
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                while not stop.is_set():
                    for operation in OPERATIONS:
                        result = c.call(operation, *tensors)
                        worst[operation] = max(worst[operation], error(operation, result))
        except Exception as problem:
            wrong.append(str(problem))
    threads = [threading.Thread(target=work) for _ in range(2)]
    [t.start() for t in threads]
    end, changes = time.monotonic() + 4, 0
    while time.monotonic() < end and not wrong:
        for numbers in zip(*ORDER.values()):
            with convpin.pin(**dict(zip(ORDER, numbers))):
                time.sleep(0.02)
            changes += 1
    stop.set()
    [t.join() for t in threads]
    print(json.dumps({"changes": changes, "wrong": wrong, "worst": worst, "allowed": {o: allowed(c, o) for o in OPERATIONS}}))


def capture():
    convpin, torch, c, tensors, error = setting()
    own = runs.names_of_each([lambda: c.call("forward", *tensors)])[0]
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        c.call("forward", *tensors)
    torch.cuda.current_stream().wait_stream(stream)
    with convpin.pin(forward=0):
        before = c.call("forward", *tensors)
        with torch.cuda.graph(graph):
            captured = c.call("forward", *tensors)
        after = c.call("forward", *tensors)
        replayed, pinned = runs.names_of_each([graph.replay, lambda: c.call("forward", *tensors)])
    torch.cuda.synchronize()
    print(json.dumps({"own": own, "replayed": replayed, "pinned": pinned, "errors": [error("forward", t) for t in (before, captured, after)],
                      "allowed": allowed(c, "forward")}))


def without():
    import convpin
    try:
        with convpin.pin(forward=1):
            print("nothing was said")
    except Exception as error:
        print(f"{type(error).__name__}: {error}")


PROGRAMS = {"algorithms": algorithms, "streams": streams, "capture": capture, "without": without}


def judge_algorithms(lines, rows, failures):
    own = {line["operation"]: line["kernels"] for line in reversed(lines) if line.get("algorithm", 0) is None}
    count = {operation: set() for operation in OPERATIONS}
    for line in lines:
        if "problems" in line:
            if not any(text.startswith("forward x=") for text in line["problems"]):
                failures.append(f"convpin.problems() gives {line['problems']}")
            continue
        operation, number = line["operation"], line["algorithm"]
        name = "the framework's" if number is None else title(operation, number)
        if not line["error"] <= line["allowed"]:
            failures.append(f"{operation}, {name}: error {line['error']:.1e}, allowed {line['allowed']:.1e}")
        if number is None and line["kernels"] != own[operation]:
            failures.append(f"{operation}: after the pins {line['kernels']} ran, before {own[operation]}")
        if number is not None:
            if not any(re.search(ENGINES[operation][number][1], kernel) for kernel in line["kernels"]):
                failures.append(f"{operation}, {name}: the kernels are {line['kernels']}")
            else:
                count[operation].add(number)
        kernel = max(line["kernels"], key=len, default="")
        rows.append([operation, name, f"`{re.sub(r'^void |<.*', '', kernel)[:70]}`", f"{line['error']:.1e}"])
    for operation, found in count.items():
        if len(found) < 5:
            failures.append(f"{operation}: only {sorted(found)} ran")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", choices=list(PROGRAMS), help=argparse.SUPPRESS)
    parser.add_argument("--out", default="repin.md")
    options = parser.parse_args()
    if options.worker:
        return PROGRAMS[options.worker]()
    start, failures, rows, notes = time.monotonic(), [], [], []
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log.jsonl"

        def program(name, preload=True):
            env = {"CONVPIN_LOG": str(log)} if preload else {}
            status, out, err = runs.python("repin.py", "--worker", name, env=env, preload=preload, timeout=200)
            if status:
                failures.append(f"{name}: it ended with {status}: {err[-1500:]}")
            return [json.loads(line) for line in out.splitlines() if line.startswith("{")], out
        judge_algorithms(program("algorithms")[0], rows, failures)
        log.unlink(missing_ok=True)
        for r in program("streams")[0]:
            failures += r["wrong"]
            failures += [f"two streams: {o}: error {r['worst'][o]:.1e}" for o in OPERATIONS if not r["worst"][o] <= r["allowed"][o]]
            notes.append(f"Two streams, {r['changes']} changes of algorithm while both ran: largest errors "
                         + ", ".join(f"{o} {r['worst'][o]:.1e}" for o in OPERATIONS))
        log.unlink(missing_ok=True)
        for r in program("capture")[0]:
            if r["replayed"] != r["own"]:
                failures.append(f"the capture holds {r['replayed']}, the framework's plan is {r['own']}")
            if not any(re.search(ENGINES["forward"][0][1], kernel) for kernel in r["pinned"]):
                failures.append(f"after the capture {r['pinned']} ran")
            if not max(r["errors"]) <= r["allowed"]:
                failures.append(f"capture: errors {r['errors']}")
            said = [x["reason"] for x in runs.read_log(log) if x["type"] == "choice" and x["reason"] and "captur" in x["reason"]]
            if not said:
                failures.append("the log says nothing of the capture")
            notes.append(f"Captured while pinned: the framework's plan runs; the log: \"{said[0] if said else ''}\"")
        _, out = program("without", preload=False)
        if "LD_PRELOAD" not in out:
            failures.append(f"without the library the module says: {out}")
        notes.append(f"Without the library: \"{out.strip()}\"")
    lines = [f"Measured {runs.versions()}; `tests/gpu/repin.py`: x=[32,64,56,56], 64 filters of 3×3, fp32 (TF32), one process", "",
             "| operation | pinned to | longest-named kernel | error |", "|" + " --- |" * 4]
    lines += ["| " + " | ".join(row) + " |" for row in rows] + [""] + [f"- {note}" for note in notes]
    lines += [f"\n{len(failures)} failures; {time.monotonic() - start:.0f} s", *(f"- FAILED {each}".replace("\n", " / ") for each in failures)]
    text = "\n".join(lines) + "\n"
    pathlib.Path(options.out).write_text(text)
    print(text)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
