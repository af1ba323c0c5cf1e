"""A program as people have them: torchvision models in training steps. It knows nothing of convpin; prints its numbers as JSON.

    python3 training.py resnet50 amp --benchmark --steps 30
"""
import argparse
import json
import statistics
import sys
import time
import warnings

import torch
import torchvision

WARM_UP = 5   # steps before those whose median is the step's time


class Meter:
    """NVML's total-energy counter of the GPU in use. It moves about every 100 ms: readings are taken at a move."""

    def __init__(self):
        import pynvml
        pynvml.nvmlInit()
        uuid = str(torch.cuda.get_device_properties(0).uuid)
        device = pynvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith("GPU-") else "GPU-" + uuid)
        self.read = lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(device) / 1000

    def at_move(self, work):
        """Calls `work` until the counter moves; (joules, seconds, calls)."""
        first, calls = self.read(), 0
        while True:
            work()
            calls += 1
            now = self.read()
            if now != first:
                return now, time.perf_counter(), calls

    def over(self, seconds, work):
        """(joules, seconds, calls) of `work` over and over, from one move of the counter to another."""
        begin, at, _ = self.at_move(work)
        calls = 0
        while time.perf_counter() - at < seconds:
            work()
            calls += 1
        end, then, more = self.at_move(work)
        return end - begin, then - at, calls + more


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=["resnet50", "efficientnet_b0", "vgg16"])
    parser.add_argument("kind", choices=["amp", "fp32"], help="amp: fp16 autocast, channels_last; fp32: NCHW, TF32 as PyTorch has it")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--benchmark", action="store_true")
    parser.add_argument("--deterministic", action="store_true", help="torch.use_deterministic_algorithms, only warning where there is none")
    parser.add_argument("--joules", type=float, default=0, help="after the steps so many seconds of them with the energy counter read")
    parser.add_argument("--wait", action="store_true", help="say that the imports are done, and go on at a line on stdin")
    o = parser.parse_args()
    if o.wait:
        print("ready", flush=True)
        sys.stdin.readline()
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = o.benchmark
    if o.deterministic:
        torch.use_deterministic_algorithms(True, warn_only=True)
    amp, said = o.kind == "amp", set()
    model = getattr(torchvision.models, o.model)().cuda()
    images = torch.randn(o.batch, 3, 224, 224, device="cuda")
    if amp:
        model, images = model.to(memory_format=torch.channels_last), images.to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (o.batch,), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cuda", enabled=amp)

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16, enabled=amp):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    losses, times = [], []
    torch.cuda.synchronize()
    before, _ = torch.cuda.mem_get_info()
    lowest = before
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(o.steps):
            begin = time.perf_counter()
            loss = step()
            torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
            losses.append(loss.item().hex())   # every bit
            lowest = min(lowest, torch.cuda.mem_get_info()[0])
        said.update(str(w.message).split(" does not have")[0] for w in caught if "deterministic" in str(w.message))
    numbers = {"losses": losses, "first_s": times[0], "step_ms": 1e3 * statistics.median(times[WARM_UP:]),
               "peak_gib": torch.cuda.max_memory_allocated() / 2**30, "device_gib": (before - lowest) / 2**30,
               "convolutions": sum(isinstance(m, torch.nn.Conv2d) for m in model.modules()), "not_deterministic": sorted(said),
               "gpu": str(torch.cuda.get_device_properties(0).uuid)}
    if o.joules:
        meter = Meter()
        time.sleep(1)   # what was running has ended, and the clocks have settled
        idle, waited, _ = meter.over(2, lambda: time.sleep(0.005))

        def steps():   # a wait for the GPU every five, as where a loss is looked at now and then
            for _ in range(5):
                step()
            torch.cuda.synchronize()

        for _ in range(10):
            steps()
        used, took, calls = meter.over(o.joules, steps)
        numbers |= {"idle_w": idle / waited, "joules_per_step": used / calls / 5, "watts": used / took, "energy_step_ms": 1e3 * took / calls / 5}
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
