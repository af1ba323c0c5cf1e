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

# Unit roundoff of the arithmetic that may be used, and of the stored output.
ROUNDOFF = {"float": 2.0**-24, "tf32": 2.0**-11, "half": 2.0**-11, "bfloat16": 2.0**-8, "double": 2.0**-53}


# How much Winograd's transforms magnify a rounding error: their matrices' entries grow with the tile. cuDNN's own calls,
# made directly, show it too (tests/gpu/algorithm_table.py: 7.8e-6 for fp32 3x3, 6.6e-3 for fp32 5x5 on an H200).
WINOGRAD = {3: 4, 5: 4096}


def bound(kind, crs, algorithm=None, size=None):
    """Largest accepted max|out - ref| / max|ref| for inputs drawn from a normal distribution.

    A sum of C*R*S products of operands rounded to u: the errors add up like a random walk, u * sqrt(CRS) relative to
    one product, and max|ref| is about 4 * sqrt(CRS) products; FFT transforms first and loses a further factor.
    16 * u * (1 + sqrt(CRS) / 8) covers all of them and is far below any wrong result (of order 1). Storing half or
    bfloat16 adds one rounding, which is within it. Half's transforms are computed in float.
    """
    if algorithm == 7:
        return max(bound(kind, crs), bound("float", crs) * WINOGRAD[size])
    return 16 * ROUNDOFF[kind] * (1 + math.sqrt(crs) / 8)


def child(argv, preload=True, env=None, timeout=120):
    """Runs argv; returns (status, stdout, stderr)."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("CONV_", "CONVPIN_")) and k != "LD_PRELOAD"}
    environment.update(env or {})
    if preload:
        environment["LD_PRELOAD"] = str(LIBRARY)
    try:
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=timeout)
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
