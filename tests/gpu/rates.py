"""This GPU's measured peaks: matrix products in fp16 and TF32 (operations a second), a copy's bandwidth (bytes a second), as JSON."""
import json
import statistics

import torch


def seconds(work, repeats=7, calls=10):
    """Median of `repeats` timings of `calls` calls, a call."""
    for _ in range(3):
        work()
    times = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1000 / calls)
    return statistics.median(times)


def main():
    torch.backends.cuda.matmul.allow_tf32 = True
    rates = {}
    for name, dtype in (("half", torch.float16), ("float", torch.float32)):
        rates[name] = 0
        for n in (4096, 8192):
            a, b = (torch.randn(n, n, device="cuda", dtype=dtype) for _ in range(2))
            out = torch.empty_like(a)
            rates[name] = max(rates[name], 2 * n**3 / seconds(lambda: torch.mm(a, b, out=out)))
    source = torch.empty(2**30, device="cuda", dtype=torch.float32).normal_()   # 4 GiB: far beyond the cache
    target = torch.empty_like(source)
    rates["bytes"] = 2 * source.numel() * 4 / seconds(lambda: target.copy_(source))
    print(json.dumps(rates))


if __name__ == "__main__":
    main()
