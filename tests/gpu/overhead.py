"""What the library costs where it has nothing to do: eager PyTorch, one 1x8x8x8 convolution after the other.

Workers stay alive and are measured in turn, so that drifts hit all alike, each on a core of its own. A measurement is
the fastest of several short loops: what disturbs a loop only ever makes it slower. Ratios of neighbouring measurements:
preloaded / bare, and bare / bare (A/A) to show the noise. Several sets of workers, since a process keeps its luck with
addresses. --training measures forward and backward instead (autograd's thread included), with fewer sets.
"""
import argparse
import os
import subprocess
import sys
import time

import runs

SETS, TURNS, LOOPS, CALLS = 6, 5, 20, 2000
TRAINING = 2, 5, 20, 300   # the same, of --training
VARIANTS = {
    "bare": (False, {}),
    "bare again": (False, {}),
    "no rule, no profile": (True, {}),
    # Watching and counting as with a pin, with the same engine as bare: a pin may also change what a call costs.
    "CONVPIN_LOG only": (True, {"CONVPIN_LOG": "/dev/null"}),
    "CONVPIN_PROFILE=algorithms, after the profile": (True, {"CONVPIN_PROFILE": "algorithms"}),
}


def worker(core, training):
    import torch
    if not training:
        os.sched_setaffinity(0, {core})
    x = torch.randn(1, 8, 8, 8, device="cuda", requires_grad=training)
    w = torch.randn(8, 8, 3, 3, device="cuda", requires_grad=training)
    gradient = torch.randn(1, 8, 8, 8, device="cuda")
    conv, grad = torch.nn.functional.conv2d, torch.autograd.grad
    calls = (TRAINING if training else (CALLS,))[-1]
    with torch.set_grad_enabled(training):
        def loop():
            begin = time.perf_counter()
            if training:
                for _ in range(calls):
                    grad(conv(x, w, padding=1), (x, w), gradient)
                torch.cuda.synchronize()
                return (time.perf_counter() - begin) / calls * 1e6
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
    def __init__(self, preload, env, core, training):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("CONV_", "CONVPIN_")) and k != "LD_PRELOAD"}
        environment.update(env)
        if preload:
            environment["LD_PRELOAD"] = str(runs.LIBRARY)
        self.process = subprocess.Popen([sys.executable, __file__, "--worker", "--core", str(core), *(["--training"] if training else [])], env=environment, text=True,
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
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--out", default="overhead.md")
    options = parser.parse_args()
    if options.worker:
        return worker(options.core, options.training)
    times, ratios = {v: [] for v in VARIANTS}, {v: [] for v in VARIANTS}
    cores = sorted(os.sched_getaffinity(0))
    sets, turns, loops, calls = TRAINING if options.training else (SETS, TURNS, LOOPS, CALLS)
    for turn in range(sets):
        # The set's first core moves on, so that no variant keeps one.
        workers = {name: Worker(*how, cores[(turn + 2 * i) % len(cores)], options.training) for i, (name, how) in enumerate(VARIANTS.items())}
        for w in workers.values():
            w.ready()
        for _ in range(turns):
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
        out.write(f"Measured {runs.versions()}; `tests/gpu/overhead.py`: {sets} sets of processes, {turns} alternating pairs each, the fastest of {loops} loops of {calls} {'steps, forward and backward,' if options.training else 'calls'} a measurement\n\n")
        out.write("| run | µs a call | ratio to bare, mean | 95 % interval of the mean | pairs |\n| --- | --- | --- | --- | --- |\n")
        for name in VARIANTS:
            mean_time, _ = runs.interval(times[name])
            if name == "bare":
                out.write(f"| {name} | {mean_time:.3f} | | | |\n")
                continue
            mean, half = runs.interval(ratios[name])
            out.write(f"| {name} | {mean_time:.3f} | {mean:.4f} | {mean - half:.4f} – {mean + half:.4f} | {len(ratios[name])} |\n")
            if name == "no rule, no profile" and mean + half > 1.02 and not options.training:
                failed = True
    print(open(options.out).read())
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
