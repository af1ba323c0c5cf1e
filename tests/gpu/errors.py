"""What a framework makes of a rule that can't be met: with "error" it must raise, with "fallback" its own choice must run.

    python3 errors.py [--out errors.md]

PyTorch on both of its paths, and JAX; on_unsupported (Winograd, which an H200 refuses) and on_miss (no rule covers
anything), for each operation. It fails where a convolution runs that should not, or should and does not, where nobody
names convpin, or where the fallback's result is not the framework's own (TF32 off: within fp32's bound).
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import tempfile
import time

import runs
from callers import have
from cudnn_direct import OPERATIONS
from pytorch_matrix import VARIABLES

PROBLEM = dict(n=8, c=64, size=28, k=64)
NEVER = {"forward": "6", "backward_data": "4", "backward_filter": "4"}           # Winograd, fused: not on sm_90
TF32 = {"forward": "eng38", "backward_data": "eng34", "backward_filter": "eng22"}  # dropped by PyTorch with TF32 off
DOWN = {"forward": "eng45", "backward_data": "eng22", "backward_filter": "eng9"}   # they convert fp32 to fp16: dropped always


def pins(values):
    return {VARIABLES[operation]: value for operation, value in values.items()}


def last_error():
    """What cuDNN says of this thread's last failure, asked as the program would."""
    import ctypes
    text = ctypes.create_string_buffer(1024)
    ctypes.CDLL(None).cudnnGetLastErrorString(text, ctypes.c_size_t(len(text)))
    return text.value.decode(errors="replace")


def report(operation, run, check):
    """Prints what came of one operation."""
    answer = {"operation": operation, "raised": None, "said": None, "error": None}
    try:
        answer["error"] = check(run())
    except Exception as error:
        answer["raised"] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        try:
            answer["said"] = last_error()
        except AttributeError:
            answer["said"] = ""   # the library is not preloaded
    print(json.dumps(answer), flush=True)


def pytorch():
    import torch
    from pytorch_calls import Convolution
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = "DETERMINISTIC" in os.environ, "BENCHMARK" in os.environ
    c = Convolution("3x3", "fp32", "nchw")   # TF32 off
    tensors = c.tensors()
    references = c.references(*tensors)
    for operation in OPERATIONS:
        def run(operation=operation):
            result = c.call(operation, *tensors)
            torch.cuda.synchronize()
            return result
        exact = references[operation]
        report(operation, run, lambda out, exact=exact: ((out.double() - exact).abs().max() / exact.abs().max()).item())


def jax():
    import jax
    import jax.numpy as jnp
    import numpy as np
    random = np.random.default_rng(0)
    p = PROBLEM
    x, w, g = (jnp.asarray(random.standard_normal(shape), "float32")
               for shape in ((p["n"], p["c"], p["size"], p["size"]), (p["k"], p["c"], 3, 3), (p["n"], p["k"], p["size"], p["size"])))
    conv = lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
    functions = {"forward": lambda: jax.jit(conv)(x, w),
                 "backward_data": lambda: jax.jit(lambda x, w, g: jax.vjp(lambda x: conv(x, w), x)[1](g)[0])(x, w, g),
                 "backward_filter": lambda: jax.jit(lambda x, w, g: jax.vjp(lambda w: conv(x, w), w)[1](g)[0])(x, w, g)}
    for operation, function in functions.items():
        report(operation, lambda: jax.block_until_ready(function()), lambda out: 0.0)


def cases(folder):
    """(name, program, environment, what has to come: "raise" or "run")."""
    elsewhere = pathlib.Path(folder) / "elsewhere.toml"
    elsewhere.write_text('version = 1\n[[rule]]\nname = "elsewhere"\noperation = "any"\nproblem = "x=[1,1,1,1]"\nalgo = 0\n')
    unsupported = {**pins(NEVER), "CONVPIN_ON_UNSUPPORTED": "error"}
    miss = {"CONVPIN_CONFIG": str(elsewhere), "CONVPIN_ON_MISS": "error"}
    legacy, quiet = {"TORCH_CUDNN_V8_API_DISABLED": "1"}, {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    for rule, env in (("on_unsupported = error, Winograd asked for", unsupported), ("on_miss = error, no rule covers it", miss)):
        yield f"PyTorch, graph: {rule}", "pytorch", env, "raise"
        yield f"PyTorch, legacy: {rule}", "pytorch", env | legacy, "raise"
        yield f"JAX: {rule}", "jax", env | quiet, "raise"
    for rule, values in (("fallback, Winograd asked for", NEVER), ("fallback, TF32 engines asked for, TF32 off", TF32),
                         ("fallback, engines that convert to fp16 asked for", DOWN)):
        yield f"PyTorch, graph: {rule}", "pytorch", pins(values), "run"
        yield f"PyTorch, graph, benchmark: {rule}", "pytorch", pins(values) | {"BENCHMARK": "1"}, "run"
    yield ("PyTorch, graph: fallback, atomic kernels asked for, cudnn.deterministic", "pytorch",
           pins({"backward_data": "0", "backward_filter": "0"}) | {"DETERMINISTIC": "1"}, "run")
    yield "PyTorch, legacy: fallback, Winograd asked for", "pytorch", pins(NEVER) | legacy, "run"
    yield "JAX: fallback, Winograd asked for", "jax", pins(NEVER) | quiet, "run"


def judge(name, program, env, expected, status, out, err, log):
    """(rows, what is wrong) of one case."""
    rows, wrong, found = [], [], {}
    for line in out.splitlines():
        if line.startswith("{"):
            found[json.loads(line)["operation"]] = json.loads(line)
    said = [line for line in err.splitlines() if line.startswith("convpin: ") and (": error:" in line or ": warning:" in line)]
    choices = {r["problem"].split()[0]: r for r in (runs.read_log(log) if log.exists() else []) if r["type"] == "choice"}
    for operation in OPERATIONS:
        if expected == "run" and VARIABLES[operation] not in env:
            continue
        r = found.get(operation)
        if r is None:
            wrong.append(f"{operation}: the program ended with {status}: {err[-500:]}")
            continue
        spoke = next((line for line in said if f" {operation} x=" in line), "")
        if expected == "raise":
            if not r["raised"]:
                wrong.append(f"{operation}: it ran")
            if not spoke:
                wrong.append(f"{operation}: convpin names no reason on stderr")
            if program == "pytorch" and r["raised"] and "convpin" not in r["raised"] + r["said"]:
                wrong.append(f"{operation}: cudnnGetLastErrorString says \"{r['said']}\"")
        else:
            if r["raised"]:
                wrong.append(f"{operation}: {r['raised']}")
            elif program == "pytorch" and not r["error"] <= runs.bound("fp32", 64 * 9 if operation != "backward_filter" else 31 * 56 * 56, 3):
                wrong.append(f"{operation}: error {r['error']:.1e}")
            if choices.get(operation, {}).get("choice") not in ("unsupported", "refused"):
                wrong.append(f"{operation}: the log says {choices.get(operation, {}).get('choice')}")
        ran = choices.get(operation, {}).get("ran", "")
        rows.append([name, operation, r["raised"] or f"ran, {ran}", r["said"] or "", spoke.removeprefix("convpin: ")])
    return rows, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", choices=["pytorch", "jax"], help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--out", default="errors.md")
    options = parser.parse_args()
    if options.worker:
        return {"pytorch": pytorch, "jax": jax}[options.worker]()
    start, rows, failures = time.monotonic(), [], []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        todo = [case for case in cases(folder) if case[1] != "jax" or have("jax")]
        logs = [pathlib.Path(folder) / f"{i}.jsonl" for i in range(len(todo))]

        def one(i):
            env = {**todo[i][2], "CONVPIN_LOG": str(logs[i]), "CONVPIN_PROFILE": "off"}
            return runs.python("errors.py", "--worker", todo[i][1], env=env, timeout=240)
        for i, result in enumerate(pool.map(one, range(len(todo)))):
            name, program, env, expected = todo[i]
            more, wrong = judge(name, program, env, expected, *result, logs[i])
            rows += more
            failures += [f"{name}: {each}" for each in wrong]
    cell = lambda text: text.replace("|", "\\|").replace("\n", " ")[:300]
    lines = [f"Measured {runs.versions()}; `tests/gpu/errors.py`. The problem is x=[31,64,56,56], 64 filters of 3×3, fp32 (JAX: 8×64×28×28)", "",
             "| case | operation | what the framework does | cudnnGetLastErrorString | convpin on stderr |", "|" + " --- |" * 5]
    lines += ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
    lines += [f"\n{len(rows)} convolutions, {len(failures)} failures; {time.monotonic() - start:.0f} s", *(f"- FAILED {cell(each)}" for each in failures)]
    text = "\n".join(lines) + "\n"
    pathlib.Path(options.out).write_text(text)
    print(text)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
