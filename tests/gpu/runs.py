"""What the GPU tests share: running a child with the library preloaded, reading its log, stating bounds."""
import datetime
import json
import math
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = pathlib.Path(os.environ.get("CONVPIN_LIBRARY", ROOT / "build/release/libconvpin.so"))

# Unit roundoff of what may be rounded: an operand (TF32's products take 11 bits of it) or the stored result.
ROUNDOFF = {"fp32": 0, "tf32": 2.0**-11, "fp16": 2.0**-11, "bf16": 2.0**-8, "fp64": 0}

# Winograd's transforms magnify rounding errors; their matrices' entries grow with the tile. cuDNN's own calls, made directly,
# reach 4.3e-5 for 3x3 and 1.8e-2 for 5x5 filters (tests/gpu/algorithm_table.py, all three operations, H200).
WINOGRAD = {3: 2e-4, 5: 4e-2}


def bound(kind, length, winograd=None):
    """Largest accepted max|out - ref| / max|ref| for inputs drawn from a normal distribution.

    Each element sums `length` products. Accumulated in fp32 their errors add up like a random walk, sqrt(length) roundings
    of one product, where max|ref| is about 4 * sqrt(length) products; FFT loses a further factor: 16 * 2^-24 *
    (1 + sqrt(length) / 8) covers both. Operands rounded to TF32, and results stored in half or bfloat16 (by some kernels
    several times, since they add up atomically), add a few roundings of that type: 8 are allowed. All is far below a wrong
    result, which is of order 1. `winograd`: the filter's size where such a kernel ran.
    """
    unit = 2.0**-53 if kind == "fp64" else 2.0**-24
    allowed = 16 * unit * (1 + math.sqrt(length) / 8) + 8 * ROUNDOFF[kind]
    return max(allowed, WINOGRAD[3 if winograd <= 3 else 5]) if winograd else allowed


def environment(env=None, preload=True):
    """This process' environment without rules, and env."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("CONV_", "CONVPIN_")) and k != "LD_PRELOAD"}
    return {**clean, **(env or {}), **({"LD_PRELOAD": str(LIBRARY)} if preload else {})}


def child(argv, preload=True, env=None, timeout=120):
    """Runs argv; returns (status, stdout, stderr)."""
    try:
        done = subprocess.run(argv, env=environment(env, preload), capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired as late:
        return 124, str(late.stdout), f"no end within {timeout} s: {late.stderr}"
    return done.returncode, done.stdout, done.stderr


def python(script, *args, **kwargs):
    return child([sys.executable, str(pathlib.Path(__file__).parent / script), *map(str, args)], **kwargs)


def read_log(path):
    """The log's records, each with its problem's text under "problem"."""
    names, out = {}, []
    for line in pathlib.Path(path).read_text().splitlines():
        r = json.loads(line)
        if r["type"] == "problem":
            names[r["problem_id"]] = r["problem"]
        if "problem_id" in r:
            r["problem"] = names[r["problem_id"]]
        out.append(r)
    return out


def versions():
    import torch
    return (f"{datetime.date.today()}, {torch.cuda.get_device_name()}, cuDNN {torch.backends.cudnn.version()}, "
            f"PyTorch {torch.__version__}")


def parse_tag(tag):
    """(38, {2: 1, 13: 0}) of "eng38_k2=1_k13=0"; knobs None where there are none, for the engine's own."""
    import re
    index = int(re.match(r"eng(\d+)", tag)[1])
    return index, {int(k): int(v) for k, v in re.findall(r"_k(\d+)=(-?\d+)", tag)} or None


def names_of_each(functions):
    """cudnn_direct.kernels_of_each without memory operations; a session that loses events is halved."""
    from cudnn_direct import kernels_of_each
    if not functions:
        return []
    try:
        return [[n for n in names if not n.startswith(("Memset", "Memcpy"))] for names in kernels_of_each(functions)]
    except RuntimeError:
        if len(functions) == 1:
            raise
        middle = len(functions) // 2
        return names_of_each(functions[:middle]) + names_of_each(functions[middle:])


def kernels_of(events):
    """Names of the kernels among torch.profiler's events, in order; memory operations and runtime calls left out."""
    import torch
    return [e.name for e in events
            if e.device_type == torch.autograd.DeviceType.CUDA and not e.name.startswith(("Memset", "Memcpy"))]


def interval(values):
    """Mean and the half-width of its 95 % interval (Student's t, normal approximation above 30)."""
    n = len(values)
    mean = sum(values) / n
    if n < 2:
        return mean, math.inf
    s = math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1))
    t = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}.get(n, 2.05 if n < 31 else 1.97)
    return mean, t * s / math.sqrt(n)
