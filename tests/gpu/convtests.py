"""PyTorch's own convolution samples, with and without the library: the same results.

    python3 convtests.py [--out convtests.md]

PyTorch's test files are not in its wheels, but what they test with is: the OpInfo of nn.functional.conv1d … conv_transpose3d
and the ModuleInfo of nn.Conv1d … nn.ConvTranspose3d (torch.testing._internal), forward and all gradients, in five data
types, as they come and channels_last; and some of test_convolution.py's own cases. Bit for bit against a bare process where
nothing is asked, with a log, and with the profile; within bounds where an algorithm is pinned. What two bare processes do not
reproduce is counted apart.
"""
import argparse
import concurrent.futures
import pathlib
import sys
import tempfile
import time
import types
import unittest

import runs

DTYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64", "complex64": "fp32"}
PIN = lambda forward, data, filter: {"CONV_FWD_ALGO": forward, "CONV_BWD_DATA_ALGO": data, "CONV_BWD_FILTER_ALGO": filter, "CONVPIN_PROFILE": "off"}
RUNS = {   # name: (preloaded, environment, bit for bit)
    "bare": (False, {}, True),
    "bare, again": (False, {}, True),
    "preloaded, nothing asked": (True, {}, True),
    "CONVPIN_LOG": (True, {"CONVPIN_LOG": "log"}, True),
    "CONVPIN_PROFILE=algorithms": (True, {"CONVPIN_PROFILE": "algorithms", "CONVPIN_LOG": "log"}, True),
    "pinned to 0, 0, 0": (True, {**PIN("0", "0", "0"), "CONVPIN_LOG": "log"}, False),
    "pinned to 1, 1, 1": (True, {**PIN("1", "1", "1"), "CONVPIN_LOG": "log"}, False),
    "pinned to 5, 3, 2": (True, {**PIN("5", "3", "2"), "CONVPIN_LOG": "log"}, False),
}
DEVICE = "cuda"


def flat(values):
    """The tensors among nested arguments."""
    import torch
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from flat(value)


def op_samples(dtype):
    """(name, function, tensors that want gradients) of each sample of each operator."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
    for op in op_db:
        if "conv" not in op.name or dtype not in op.supported_dtypes(DEVICE):
            continue
        for last in (False, True):
            torch.manual_seed(0)
            for number, sample in enumerate(op.sample_inputs(DEVICE, dtype, requires_grad=True)):
                operands = [sample.input, *sample.args]
                if last:
                    operands = [channels_last(t) if isinstance(t, torch.Tensor) else t for t in operands]
                yield (f"{op.name} {number}{' channels_last' if last else ''}",
                       lambda op=op, operands=operands, sample=sample: op(*operands, **sample.kwargs), list(flat(operands)))


def module_samples(dtype):
    import torch
    from torch.testing._internal.common_modules import module_db
    for info in module_db:
        if "Conv" not in info.name or "Lazy" in info.name or dtype not in info.dtypes:
            continue
        torch.manual_seed(0)
        for number, each in enumerate(info.module_inputs_func(info, device=DEVICE, dtype=dtype, requires_grad=True, training=True)):
            made, called = each.constructor_input, each.forward_input
            module = info.module_cls(*made.args, **made.kwargs).to(device=DEVICE, dtype=dtype)
            yield (f"{info.name} {number}", lambda module=module, called=called: module(*called.args, **called.kwargs),
                   [*flat(called.args), *module.parameters()])


def own_samples(dtype):
    """Cases of test_convolution.py that the samples above have not: strided views, empty batches, multipliers, and so on."""
    import torch
    F = torch.nn.functional
    torch.manual_seed(0)

    def make(*shape):
        return torch.randn(*shape, device=DEVICE, dtype=dtype).requires_grad_()

    def case(name, x, w, **kwargs):
        conv = kwargs.pop("conv", F.conv2d)
        return name, lambda: conv(x, w, **kwargs), [t._base if t._base is not None else t for t in (x, w)]
    yield case("every second column", make(4, 8, 16, 32)[..., ::2], make(8, 8, 3, 3), padding=1)
    yield case("a transposed input", make(4, 8, 16, 12).transpose(2, 3), make(8, 8, 3, 3), padding=1)
    yield case("an odd address", make(4 * 8 * 16 * 16 + 1)[1:].view(4, 8, 16, 16), make(8, 8, 3, 3), padding=1)
    yield case("a permuted filter", make(4, 8, 16, 16), make(3, 3, 8, 8).permute(3, 2, 0, 1), padding=1)
    yield case("an empty batch", make(0, 8, 16, 16), make(8, 8, 3, 3), padding=1)
    yield case("depthwise with multiplier 2", make(4, 32, 16, 16), make(64, 1, 3, 3), padding=1, groups=32)
    yield case("grouped", make(4, 32, 16, 16), make(32, 8, 3, 3), padding=1, groups=4)
    yield case("dilated and strided", make(4, 16, 17, 19), make(24, 16, 3, 3), padding=2, dilation=2, stride=2)
    yield case("unequal everything", make(3, 6, 19, 11), make(10, 6, 5, 2), padding=(3, 0), stride=(1, 3), dilation=(2, 1))
    yield case("a filter as large as the input", make(4, 8, 7, 7), make(16, 8, 7, 7))
    yield case("one channel", make(4, 1, 28, 28), make(32, 1, 3, 3), padding=1)
    yield case("transposed, grouped, output padding", make(4, 16, 9, 9), make(16, 4, 3, 3), conv=F.conv_transpose2d, stride=2, padding=1,
               output_padding=1, groups=4)
    yield case("3-d, grouped", make(2, 8, 6, 10, 10), make(8, 4, 3, 3, 3), conv=F.conv3d, padding=1, groups=2)
    yield case("1-d, strided", make(4, 16, 101), make(32, 16, 9), conv=F.conv1d, stride=2, padding=4)


def channels_last(tensor):
    import torch
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if tensor.dim() not in formats:
        return tensor
    return tensor.detach().contiguous(memory_format=formats[tensor.dim()]).requires_grad_(tensor.requires_grad)


def worker(path):
    """All samples: {key: list of tensors on the CPU, or the text of what was raised}, saved in path."""
    if "expecttest" not in sys.modules:
        try:
            import expecttest   # noqa: F401  (PyTorch's test utilities want it; only its TestCase)
        except ImportError:
            sys.modules["expecttest"] = types.ModuleType("expecttest")
            sys.modules["expecttest"].TestCase = unittest.TestCase
    import torch
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = not path.endswith("-pinned.pt")   # pins may name what is not
    results = {}
    for name in DTYPES:
        dtype = getattr(torch, name)
        for samples in (op_samples, module_samples, own_samples):
            for sample, function, operands in samples(dtype):
                key, wanted = f"{name}: {sample}", [t for t in operands if t.requires_grad and t.is_leaf]
                try:
                    out = function()
                    torch.manual_seed(1)
                    gradients = torch.autograd.grad(out, wanted, torch.randn_like(out), allow_unused=True) if out.requires_grad else ()
                    results[key] = [t.detach().cpu() for t in (out, *gradients) if t is not None]
                except Exception as error:
                    results[key] = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
    torch.save(results, path)


def same(a, b):
    import torch
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    raw = lambda t: t.contiguous().reshape(-1).view(torch.uint8)
    return len(a) == len(b) and all(s.shape == t.shape and s.dtype == t.dtype and torch.equal(raw(s), raw(t)) for s, t in zip(a, b))


def distance(a, b):
    """Largest max|a - b| / max|b| of two results; inf where they can't be compared."""
    import torch
    if isinstance(a, str) or isinstance(b, str):
        return 0.0 if a == b else float("inf")
    worst = 0.0
    for s, t in zip(a, b):
        if t.numel():
            wide = torch.complex128 if t.is_complex() else torch.float64
            s, t = s.to(wide), t.to(wide)
            worst = max(worst, ((s - t).abs().max() / t.abs().max().clamp_min(1e-30)).item())
    return worst if len(a) == len(b) else float("inf")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--out", default="convtests.md")
    options = parser.parse_args()
    if options.worker:
        return worker(options.worker)
    import torch
    start, failures = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        path = lambda name: pathlib.Path(folder) / (name.replace(" ", "_").replace(",", "") + ("" if RUNS[name][2] else "-pinned") + ".pt")

        def one(name):
            preload, env, _ = RUNS[name]
            env = {**env, **({"CONVPIN_LOG": str(path(name)) + ".jsonl"} if "CONVPIN_LOG" in env else {})}
            return runs.python("convtests.py", "--worker", path(name), preload=preload, env={"CUBLAS_WORKSPACE_CONFIG": ":4096:8", **env}, timeout=300)
        found, choices = {}, {}
        for name, (status, _, err) in zip(RUNS, pool.map(one, RUNS)):
            if status:
                failures.append(f"{name}: the process ended with {status}: {err[-800:]}")
            else:
                found[name] = torch.load(path(name))
            log = pathlib.Path(str(path(name)) + ".jsonl")
            choices[name] = [r["choice"] for r in runs.read_log(log) if r["type"] == "choice"] if log.exists() else None
    bare = found.get("bare", {})
    steady = {key for key, value in bare.items() if same(value, found.get("bare, again", {}).get(key))}
    lines = [f"Measured {runs.versions()}; `tests/gpu/convtests.py`: {len(bare)} samples, forward and gradients", "",
             "| run | samples | the same bits | within bounds | otherwise | convolutions set / all in the log |", "|" + " --- |" * 6]
    for name, results in found.items():
        bits, near, other = 0, 0, []
        for key, value in results.items():
            allowed = runs.bound(DTYPES[key.split(":")[0]], 4096)
            if same(value, bare.get(key)):
                bits += 1
            elif key in bare and distance(value, bare[key]) <= allowed and (not RUNS[name][2] or key not in steady):
                near += 1
            else:
                what = value if isinstance(value, str) else f"off by {distance(value, bare[key]):.1e} of {allowed:.1e} allowed" if key in bare else "new"
                other.append(f"{name}: {key}: {what}")
        if results.keys() != bare.keys():
            other.append(f"{name}: other samples than the bare process")
        log = choices[name]
        seen = "" if log is None else f"{log.count('set')} / {len(log)}"
        lines.append(f"| {name} | {len(results)} | {bits} | {near} | {len(other)} | {seen} |")
        failures += other
        if name.startswith("pinned") and not (log or []).count("set"):
            failures.append(f"{name}: nothing was set")
    raised = sum(isinstance(value, str) for value in bare.values())
    lines.append(f"\n{len(bare) - len(steady)} samples are not reproduced by two bare processes; {raised} raise in every process alike. "
                 f"{len(failures)} failures; {time.monotonic() - start:.0f} s")
    lines += [f"- FAILED {each}".replace("\n", " / ") for each in failures[:60]]
    text = "\n".join(lines) + "\n"
    pathlib.Path(options.out).write_text(text)
    print(text)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
