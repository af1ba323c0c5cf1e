"""PyTorch under the library, beyond the matrix: what must not change, and what must go wrong gracefully.

Each case runs in a process of its own. Fails where outputs differ bit for bit without a rule, where a capture on another
thread breaks, where a pin that does not fit raises, or where the log does not say what the profiler sees.
"""
import json
import pathlib
import sys
import tempfile
import textwrap
import unittest

import runs


def run(code, env=None, preload=True):
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log.jsonl"
        env = dict(env or {})
        if env.pop("LOG", preload):
            env["CONVPIN_LOG"] = str(log)
        status, out, err = runs.child([sys.executable, "-c", textwrap.dedent(code)], preload=preload, env=env)
        records = runs.read_log(log) if log.exists() else []
        return status, out, err, records


TRAIN = """
    import hashlib, torch, torchvision
    torch.manual_seed(0)
    torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(True)
    for amp in (False, True):
        model = torchvision.models.resnet18().cuda()
        x = torch.randn(8, 3, 96, 96, device="cuda")
        if amp: model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            with torch.autocast("cuda", enabled=amp):
                loss = model(x).square().mean()
            loss.backward(); optimizer.step()
        digest = hashlib.sha256()
        for p in model.parameters(): digest.update(p.detach().cpu().numpy().tobytes())
        print(amp, loss.item(), digest.hexdigest())
"""

CONV = """
    import torch
    torch.backends.cudnn.benchmark = {benchmark}
    torch.backends.cudnn.allow_tf32 = {tf32}
    torch.backends.cudnn.deterministic = {deterministic}
    torch.manual_seed(0)
    x = torch.randn(16, 64, 56, 56, device="cuda"); w = torch.randn(64, 64, 3, 3, device="cuda")
    {before}
    y = torch.nn.functional.conv2d(x, w, padding=1)
    torch.cuda.synchronize()
    hold = None
    torch.cuda.empty_cache()
    with torch.backends.cudnn.flags(enabled=False):
        r = torch.nn.functional.conv2d(x[:2].double(), w.double(), padding=1)
    print(((y[:2] - r).abs().max() / r.abs().max()).item())
"""


def conv(benchmark=False, tf32=True, deterministic=False, before=""):
    return CONV.format(benchmark=benchmark, tf32=tf32, deterministic=deterministic, before=before)


def choice(records):
    return [r for r in records if r["type"] == "choice"]


DETERMINISTIC = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}


class NothingAsked(unittest.TestCase):
    def test_training_is_bit_for_bit_the_same(self):
        _, bare, _, _ = run(TRAIN, DETERMINISTIC, preload=False)
        status, idle, err, _ = run(TRAIN, {**DETERMINISTIC, "LOG": False})
        self.assertEqual(status, 0, err)
        self.assertEqual(bare, idle)
        self.assertNotIn("convpin", err)
        status, logged, err, records = run(TRAIN, DETERMINISTIC)
        self.assertEqual(bare, logged)
        self.assertTrue(choice(records))
        status, profiled, err, records = run(TRAIN, {**DETERMINISTIC, "CONVPIN_PROFILE": "algorithms"})
        self.assertEqual(bare, profiled, "the profile changed an output")
        self.assertTrue(any(r["type"] == "candidate" for r in records))


class Pinned(unittest.TestCase):
    def test_deterministic(self):
        for legacy in ("0", "1"):
            for benchmark in (False, True):
                with self.subTest(legacy=legacy, benchmark=benchmark):
                    status, out, err, records = run(conv(benchmark=benchmark, deterministic=True),
                                                    {"CONV_FWD_ALGO": "0", "TORCH_CUDNN_V8_API_DISABLED": legacy})
                    self.assertEqual(status, 0, err)
                    self.assertEqual({r["choice"] for r in choice(records)}, {"set"}, choice(records))

    def test_filtered_by_the_framework(self):
        # eng38 is a TF32 engine: with TF32 off PyTorch drops it, and its own choice must run.
        for benchmark in (False, True):
            with self.subTest(benchmark=benchmark):
                status, out, err, records = run(conv(benchmark=benchmark, tf32=False),
                                                {"CONV_FWD_ALGO": "eng38", "CONVPIN_PROFILE": "off"})
                self.assertEqual(status, 0, err)
                self.assertEqual(choice(records)[0]["choice"], "refused")
                self.assertLess(float(out), 1e-5)

    def test_family_keeps_a_member_that_passes_the_filter(self):
        for benchmark in (False, True):
            status, out, err, records = run(conv(benchmark=benchmark, tf32=False), {"CONV_FWD_ALGO": "1"})
            self.assertEqual(status, 0, err)
            self.assertEqual({r["choice"] for r in choice(records)}, {"set"})
            self.assertLess(float(out), 1e-5)

    def test_unsupported(self):
        for legacy in ("0", "1"):
            status, out, err, records = run(conv(), {"CONV_FWD_ALGO": "6", "TORCH_CUDNN_V8_API_DISABLED": legacy})
            self.assertEqual(status, 0, err)
            self.assertEqual(choice(records)[-1]["choice"], "unsupported")
            self.assertIn("is not possible", err)

    def test_workspace_larger_than_what_is_free(self):
        # FFT asks for more than 100 MB here; all but 90 MiB are taken.
        take = "free, _ = torch.cuda.mem_get_info(); hold = torch.empty(free - (90 << 20), dtype=torch.uint8, device='cuda')"
        for legacy in ("0", "1"):
            for benchmark in (False, True):
                with self.subTest(legacy=legacy, benchmark=benchmark):
                    status, out, err, records = run(conv(benchmark=benchmark, before=take),
                                                    {"CONV_FWD_ALGO": "4", "TORCH_CUDNN_V8_API_DISABLED": legacy})
                    self.assertEqual(status, 0, err[-3000:])
                    self.assertNotEqual(choice(records)[-1]["choice"], "set", choice(records))

    def test_strict(self):
        for legacy in ("0", "1"):
            status, out, err, _ = run(conv(), {"CONV_FWD_ALGO": "bogus", "CONVPIN_STRICT": "1", "TORCH_CUDNN_V8_API_DISABLED": legacy})
            self.assertNotEqual(status, 0)
            self.assertIn("CONV_FWD_ALGO", err)
            self.assertIn("bogus", err)


class Captures(unittest.TestCase):
    def test_one_thread_captures_while_another_meets_a_new_convolution(self):
        code = """
            import threading, torch
            conv = torch.nn.functional.conv2d
            x = torch.randn(8, 32, 28, 28, device="cuda"); w = torch.randn(32, 32, 3, 3, device="cuda")
            warm = torch.cuda.Stream()
            with torch.cuda.stream(warm): conv(x, w, padding=1)
            torch.cuda.synchronize()
            capturing, met = threading.Event(), threading.Event()
            def other():
                capturing.wait()
                try:
                    with torch.cuda.stream(torch.cuda.Stream()):
                        for size in (20, 24, 40, 44):
                            conv(a[size], w, padding=1)
                finally:
                    met.set()
            a = {size: torch.randn(8, 32, size, size, device="cuda") for size in (20, 24, 40, 44)}
            thread = threading.Thread(target=other); thread.start()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="{mode}"):
                y = conv(x, w, padding=1)
                capturing.set(); met.wait(60)
                z = conv(y, w, padding=1)
            thread.join()
            expected = conv(conv(x, w, padding=1), w, padding=1)
            graph.replay(); torch.cuda.synchronize()
            print(torch.equal(z, expected))
        """
        for mode in ("thread_local", "relaxed"):
            with self.subTest(mode=mode):
                bare = run(code.replace("{mode}", mode), preload=False)
                status, out, err, records = run(code.replace("{mode}", mode), {"CONV_FWD_ALGO": "1"})
                self.assertEqual(bare[0], 0, "the case itself is at fault: " + bare[2][-1500:])
                self.assertEqual(status, 0, err[-3000:])
                self.assertEqual(out, bare[1])
                self.assertTrue(choice(records))

    def test_global_capture_with_room_in_the_pool(self):
        code = """
            import threading, torch
            conv = torch.nn.functional.conv2d
            w = torch.randn(32, 32, 3, 3, device="cuda")
            x = torch.randn(8, 32, 28, 28, device="cuda")
            sizes = (20, 24, 40)
            a = {s: torch.randn(8, 32, s, s, device="cuda") for s in sizes}
            side = torch.cuda.Stream()
            out = {s: torch.empty(8, 32, s, s, device="cuda") for s in sizes}
            # The other thread's allocator must not call cudaMalloc during a global capture (PyTorch's own rule): it
            # gets room, a handle and its first kernels before.
            def room():
                with torch.cuda.stream(side):
                    held = [torch.empty(64 << 20, dtype=torch.uint8, device="cuda") for _ in range(4)]
                    conv(torch.randn(4, 32, 12, 12, device="cuda"), w, padding=1)   # handle, cuBLAS, kernels of this thread
                    side.synchronize()
                capturing.wait()
                try:
                    with torch.cuda.stream(side):
                        del held
                        for s in sizes: out[s] = conv(a[s], w, padding=1)
                finally:
                    met.set()
            capturing, met = threading.Event(), threading.Event()
            conv(x, w, padding=1); torch.cuda.synchronize()
            thread = threading.Thread(target=room); thread.start()
            import time; time.sleep(3)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = conv(x, w, padding=1)
                capturing.set(); met.wait(60)
                z = conv(y, w, padding=1)
            thread.join()
            graph.replay(); torch.cuda.synchronize()
            print(torch.equal(z, conv(conv(x, w, padding=1), w, padding=1)), [float((out[s] - conv(a[s], w, padding=1)).abs().max()) for s in sizes])
        """
        bare = run(code, preload=False)
        status, out, err, records = run(code, {"CONV_FWD_ALGO": "1"})
        if bare[0] != 0:
            self.skipTest("PyTorch itself can't do this: " + bare[2][-300:])
        self.assertEqual(status, 0, err[-3000:])
        self.assertEqual(out, bare[1])

    def test_convolution_first_met_inside_a_capture_is_pinned_and_not_profiled(self):
        code = """
            import torch
            conv = torch.nn.functional.conv2d
            x = torch.randn(8, 32, 28, 28, device="cuda"); w = torch.randn(32, 32, 3, 3, device="cuda")
            v = torch.randn(8, 32, 30, 30, device="cuda")
            conv(x, w, padding=1); torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph): y = conv(v, w, padding=1)
            graph.replay(); torch.cuda.synchronize()
            print(float((y - conv(v, w, padding=1)).abs().max()))
        """
        status, out, err, records = run(code, {"CONV_FWD_ALGO": "0"})
        self.assertEqual(status, 0, err[-3000:])
        self.assertEqual({r["choice"] for r in choice(records)}, {"set"})
        self.assertEqual(float(out), 0.0)


class Threads(unittest.TestCase):
    def test_threads_and_streams(self):
        code = """
            import threading, torch
            w = torch.randn(16, 16, 3, 3, device="cuda")
            xs = [torch.randn(4, 16, 16 + 2 * i, 16 + 2 * i, device="cuda") for i in range(6)]
            expected = [torch.nn.functional.conv2d(x, w, padding=1) for x in xs]
            bad = []
            def work(k):
                with torch.cuda.stream(torch.cuda.Stream()):
                    for _ in range(50):
                        for x, e in zip(xs, expected):
                            if not torch.allclose(torch.nn.functional.conv2d(x, w, padding=1), e, atol=1e-2): bad.append(k)
            ts = [threading.Thread(target=work, args=(k,)) for k in range(4)]
            torch.cuda.synchronize()
            [t.start() for t in ts]; [t.join() for t in ts]
            print(len(bad))
        """
        status, out, err, records = run(code, {"CONV_FWD_ALGO": "0"})
        self.assertEqual((status, out.strip()), (0, "0"), err[-3000:])
        self.assertEqual({r["choice"] for r in choice(records)}, {"set"})
        counts = {}
        for r in records:
            if r["type"] == "count":
                counts[r["problem"], r["ran"]] = r["calls"]
        self.assertEqual(sum(counts.values()), 6 + 4 * 50 * 6)


if __name__ == "__main__":
    unittest.main(verbosity=2)
