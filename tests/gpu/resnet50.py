"""torchvision's ResNet-50, training steps with algorithms 0 and 1 beside the unpinned run: forward, and all three operations.

Checks: every convolution of a pinned operation is pinned by read-back, the losses agree, and the log lists every convolution
with its count. Prints first-step time, step time and peak memory of each run.
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

import runs

STEPS = 12
VARIABLES = {"forward": "CONV_FWD_ALGO", "backward_data": "CONV_BWD_DATA_ALGO", "backward_filter": "CONV_BWD_FILTER_ALGO"}


def worker(amp):
    import torch
    import torchvision
    torch.manual_seed(0)
    torch.backends.cudnn.deterministic = False
    model = torchvision.models.resnet50().cuda()
    images = torch.randn(32, 3, 224, 224, device="cuda")
    if amp:
        model, images = model.to(memory_format=torch.channels_last), images.to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (32,), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses, times = [], []
    free_before, _ = torch.cuda.mem_get_info()
    lowest = free_before
    torch.cuda.synchronize()
    for _ in range(STEPS):
        begin = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16, enabled=amp):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
        lowest = min(lowest, torch.cuda.mem_get_info()[0])
    convolutions = sum(isinstance(m, torch.nn.Conv2d) for m in model.modules())
    print(json.dumps({"losses": losses, "first_s": times[0], "step_ms": 1e3 * statistics.median(times[2:]),
                      "peak_gib": torch.cuda.max_memory_allocated() / 2**30,
                      "device_gib": (free_before - lowest) / 2**30, "convolutions": convolutions}))


def one(algorithm, amp, profile, folder, operations=("forward",)):
    env, log = {}, pathlib.Path(folder) / f"{algorithm}-{amp}-{profile}-{len(operations)}.jsonl"
    if algorithm is not None:
        env = {"CONVPIN_LOG": str(log), **{VARIABLES[operation]: str(algorithm) for operation in operations}}
        if not profile:
            env["CONVPIN_PROFILE"] = "off"
    status, out, err = runs.python("resnet50.py", "--worker", *(["--amp"] if amp else []), env=env, preload=algorithm is not None)
    if status:
        raise SystemExit(f"the training run failed: {err[-3000:]}")
    result = json.loads(out.splitlines()[-1])
    result["stderr"] = err
    if algorithm is not None:
        log_records = [r for r in runs.read_log(log) if r.get("problem", "").split(" ")[0] in operations]
        # Each convolution once a step and operation; the first one's input wants no gradient.
        result["expected"] = STEPS * (len(operations) * result["convolutions"] - ("backward_data" in operations))
        result["problems"] = sum(r["type"] == "problem" for r in log_records)
        last = {r["problem"]: r for r in log_records if r["type"] == "choice"}
        result["set"] = sum(r["choice"] == "set" for r in last.values())
        result["not_set"] = {p: r["reason"] for p, r in last.items() if r["choice"] != "set"}
        counted = {}
        for r in log_records:
            if r["type"] == "count":
                counted[r["problem"], r["ran"]] = r["calls"]   # cumulative: the last counts
        result["calls"] = sum(counted.values())
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--out", default="resnet50.md")
    options = parser.parse_args()
    if options.worker:
        return worker(options.amp)
    failures = []
    with tempfile.TemporaryDirectory() as folder, open(options.out, "w") as out:
        out.write(f"Measured {runs.versions()}; `tests/gpu/resnet50.py`: batch 32, {STEPS} training steps, a process each\n\n")
        out.write("| | run | distinct problems | calls | set | first step s | step ms | PyTorch peak GiB | device peak GiB | largest loss difference |\n"
                  "|" + " --- |" * 10 + "\n")
        for amp in (False, True):
            bare = one(None, amp, False, folder)
            kind = "AMP channels_last" if amp else "fp32 (TF32)"
            again = one(None, amp, False, folder)
            pinned = [(f"CONV_FWD_ALGO={a}{'' if p else ', CONVPIN_PROFILE=off'}", one(a, amp, p, folder)) for a in (0, 1) for p in (True, False)]
            pinned += [(f"all three {a}, CONVPIN_PROFILE=off", one(a, amp, False, folder, tuple(VARIABLES))) for a in (0, 1)]
            for name, r in [("unpinned", bare), ("unpinned, again", again)] + pinned:
                difference = max(abs(a - b) for a, b in zip(r["losses"], bare["losses"]))
                out.write(f"| {kind} | {name} | {r.get('problems', '')} | {r.get('calls', '')} | {r.get('set', '')} | {r['first_s']:.2f} | "
                          f"{r['step_ms']:.2f} | {r['peak_gib']:.2f} | {r['device_gib']:.2f} | {difference:.3f} |\n")
                if "set" in r:
                    if r["calls"] != r["expected"]:
                        failures.append(f"{kind} {name}: {r['calls']} calls logged, {r['expected']} made")
                    if r["set"] != r["problems"]:
                        failures.append(f"{kind} {name}: not set: {r['not_set']}")
                    if difference > 0.5:
                        failures.append(f"{kind} {name}: losses differ by {difference}")
                    sys.stderr.write(r["stderr"][-600:])
        out.write(f"\n{len(failures)} failures\n" + "".join(f"- FAILED {f}\n" for f in failures))
    print(open(options.out).read())
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
