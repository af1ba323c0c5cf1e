"""What the library costs where it has nothing to do: eager PyTorch, one 1x8x8x8 convolution after the other.

Workers stay alive and are measured in turn, so that drifts hit all alike, each on a core of its own. A measurement is
the fastest of several short loops: what disturbs a loop only ever makes it slower. Ratios of neighbouring measurements:
preloaded / bare, and bare / bare (A/A) to show the noise. Several sets of workers, since a process keeps its luck with
addresses.
"""
import argparse
import os
import subprocess
import sys
import time

import runs

SETS, TURNS, LOOPS, CALLS = 6, 5, 20, 2000
VARIANTS = {
    "bare": (False, {}),
    "bare again": (False, {}),
    "no rule, no profile": (True, {}),
    # Watching and counting as with a pin, with the same engine as bare: a pin may also change what a call costs.
    "CONVPIN_LOG only": (True, {"CONVPIN_LOG": "/dev/null"}),
    "CONVPIN_PROFILE=algorithms, after the profile": (True, {"CONVPIN_PROFILE": "algorithms"}),
}


def worker(core):
    import torch
    os.sched_setaffinity(0, {core})
    x = torch.randn(1, 8, 8, 8, device="cuda")
    w = torch.randn(8, 8, 3, 3, device="cuda")
    conv = torch.nn.functional.conv2d
    with torch.no_grad():
        def loop():
            begin = time.perf_counter()
            for _ in range(CALLS):
                conv(x, w, padding=1)
            torch.cuda.synchronize()
            return (time.perf_counter() - begin) / CALLS * 1e6
        for _ in range(LOOPS):
            loop()
        print("ready", flush=True)
        for _ in sys.stdin:
            print(min(loop() for _ in range(LOOPS)), flush=True)


class Worker:
    def __init__(self, preload, env, core):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("CONV_", "CONVPIN_")) and k != "LD_PRELOAD"}
        environment.update(env)
        if preload:
            environment["LD_PRELOAD"] = str(runs.LIBRARY)
        self.process = subprocess.Popen([sys.executable, __file__, "--worker", "--core", str(core)], env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def ready(self):
        assert self.process.stdout.readline().strip() == "ready"

    def measure(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--out", default="overhead.md")
    options = parser.parse_args()
    if options.worker:
        return worker(options.core)
    times, ratios = {v: [] for v in VARIANTS}, {v: [] for v in VARIANTS}
    cores = sorted(os.sched_getaffinity(0))
    for turn in range(SETS):
        # The set's first core moves on, so that no variant keeps one.
        workers = {name: Worker(*how, cores[(turn + 2 * i) % len(cores)]) for i, (name, how) in enumerate(VARIANTS.items())}
        for w in workers.values():
            w.ready()
        for _ in range(TURNS):
            for name, w in workers.items():
                if name == "bare":
                    continue
                bare, other = workers["bare"].measure(), w.measure()   # neighbours in time
                times["bare"].append(bare)
                times[name].append(other)
                ratios[name].append(other / bare)
        for w in workers.values():
            w.end()
    failed = False
    with open(options.out, "w") as out:
        out.write(f"Measured {runs.versions()}; `tests/gpu/overhead.py`: {SETS} sets of processes, {TURNS} alternating pairs each, the fastest of {LOOPS} loops of {CALLS} calls a measurement\n\n")
        out.write("| run | µs a call | ratio to bare, mean | 95 % interval of the mean | pairs |\n| --- | --- | --- | --- | --- |\n")
        for name in VARIANTS:
            mean_time, _ = runs.interval(times[name])
            if name == "bare":
                out.write(f"| {name} | {mean_time:.3f} | | | |\n")
                continue
            mean, half = runs.interval(ratios[name])
            out.write(f"| {name} | {mean_time:.3f} | {mean:.4f} | {mean - half:.4f} – {mean + half:.4f} | {len(ratios[name])} |\n")
            if name == "no rule, no profile" and mean + half > 1.02:
                failed = True
    print(open(options.out).read())
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
