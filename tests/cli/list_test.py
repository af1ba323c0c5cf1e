"""`convpin list` and `device`, with the real cuDNN and no GPU, and with the stand-in, which has one.

Would fail when: an engine is said to be supported that a plan can't be built of, or the other way round; a problem's
operation, layout or fused operations do not reach cuDNN; the reason of a refusal is lost; an engine that only the GPU can
judge is said to be refused; the description of a GPU can't be written, read or changed.
"""
import json
import os
import pathlib
import unittest

import command
from command import PROBLEM

REAL = ["--cudnn", os.environ["CUDNN_LIBRARY_DIR"]]
BIG = "x=[32,64,56,56] w=[64,64,3,3] float nchw pad=1"
DEVICE = pathlib.Path(os.environ["CONVPIN_SOURCE_DIR"]) / "tools/devices/h200.json"


class List(command.Case):
    def engines(self, *arguments, status=0, standin=False):
        """By their numbers."""
        problem, = self.json("list", *arguments, status=status, standin=standin)
        return {int(e["engine"].split("_")[0][3:]): e for e in problem["engines"]}

    def supported(self, engines):
        return {number for number, engine in engines.items() if engine["supported"] == "yes"}

    def test_what_a_client_can_plan_is_supported(self):
        client = self.bare("convclient", "--device-json", str(DEVICE), "--print", "engine,workspace", BIG, standin=False)
        engine, workspace = client.stdout.split()
        engines = self.engines(BIG, "--device", "h200", *REAL)
        first, = (e for e in engines.values() if e["heuristics_rank"] == 0)
        self.assertEqual((first["engine"], str(first["workspace_bytes"])), (engine, workspace))
        self.assertEqual(sorted(engines), list(range(len(engines))))
        self.assertLessEqual({0, 1, 2, 28, 38}, self.supported(engines))
        self.assertEqual({engines[n]["algo_name"] for n in (0, 1, 2, 28)}, {"DIRECT", "IMPLICIT_PRECOMP_GEMM", "GEMM", "IMPLICIT_GEMM"})
        self.assertIn("tf32", engines[38]["numerical_notes"])

    def test_reasons(self):
        engines = self.engines(BIG, "--device", "h200", *REAL)
        self.assertEqual((engines[12]["supported"], engines[12]["reason"]), ("no", "not supported: arch mismatch"))
        self.assertIn("'c' per group must be 1", engines[5]["reason"])
        for e in engines.values():
            self.assertEqual(e["supported"] == "yes", e["reason"] is None, e)

    def test_what_only_the_gpu_can_judge(self):
        for operation, numbers in (("forward", {3, 4, 6, 58, 71, 72}), ("backward_data", {4, 5, 7, 63}), ("backward_filter", {4, 17, 18, 62})):
            unknown = {n for n, e in self.engines(f"{operation} {BIG}", "--device", "h200", *REAL).items() if e["supported"] == "unknown"}
            self.assertLessEqual(numbers, unknown)
        said = self.convpin("list", BIG, "--device", "h200", *REAL, standin=False).stdout
        self.assertRegex(said, "can't be judged without the GPU: 4 FFT, 5 FFT_TILING, 7 WINOGRAD_NONFUSED")
        self.assertRegex(said, "only the GPU itself can say: .*eng71 eng72")

    def test_operations_layouts_and_fused_graphs_differ(self):
        lists = [self.engines(text, "--device", "h200", *REAL) for text in (
            BIG, f"backward_data {BIG}", f"backward_filter {BIG}", f"{BIG} fused=add,relu", BIG.replace("float nchw", "half nhwc"),
            "x=[1,32,8,8,8] w=[32,32,3,3,3] half ndhwc pad=1")]
        self.assertEqual([len(engines) for engines in lists[:4]], [81, 85, 75, 61])  # cuDNN 9.19: facts of its own
        for engines in lists:
            self.assertTrue(self.supported(engines))
        self.assertEqual({e["algo"] for e in lists[3].values()}, {None})

    def test_what_is_between_has_a_type_of_its_own(self):
        """PyTorch's fused graphs in half: float between convolution and what is fused to it, half in the end."""
        half = BIG.replace("float nchw", "half nhwc")
        for fused in ("add,relu", "add,add,relu"):
            for dtype in ("half", "bfloat16"):
                text = f"{half.replace('half', dtype)} ytype=float otype={dtype} fused={fused}"
                client = self.bare("convclient", "--device-json", str(DEVICE), "--print", "engine,workspace", text, standin=False)
                engines = self.engines(text, "--device", "h200", *REAL)
                first, = (e for e in engines.values() if e["heuristics_rank"] == 0)
                self.assertEqual([first["engine"], str(first["workspace_bytes"])], client.stdout.split())
                self.assertLessEqual({0, 10, 36, 41, 44}, self.supported(engines))
        # cuDNN 9.19 has no engine that writes float here, and others where half is between: both words must have reached it.
        self.assertEqual(len(engines), 61)
        self.assertFalse(self.supported(self.engines(f"{half} ytype=float fused=add,relu", "--device", "h200", *REAL, status=1)))
        self.assertEqual(len(self.engines(f"{half} fused=add,relu", "--device", "h200", *REAL, status=1)), 11)

    def test_another_generation(self):
        here, there = (self.engines(BIG, "--device", "h200", *sm, *REAL) for sm in ([], ["--sm", "80"]))
        self.assertEqual(there[12]["supported"], "yes")  # WINOGRAD, which an H200 has not
        self.assertNotEqual(self.supported(here), self.supported(there))
        done = self.convpin("list", BIG, "--device", "h200", "--sm", "80", *REAL, standin=False)
        self.assertIn("an indication", done.stderr)
        self.assertIn("NVIDIA H200 as described, but sm_80", done.stdout)

    def test_letters_text_and_log_are_the_same(self):
        letters = "-n 32 -c 64 -H 56 -W 56 -k 64 -y 3 -x 3 -p 1 -q 1".split()
        self.assertEqual(self.json("list", *letters, "--device", "h200", *REAL, standin=False),
                         self.json("list", BIG, "--device", "h200", *REAL, standin=False))
        self.assertEqual(len(self.json("list", *letters, "-F", "0", "--device", "h200", *REAL, standin=False)), 3)
        self.record("convclient", PROBLEM)
        self.assertEqual(self.json("list", "--log", "run.jsonl", "--device", "h200", *REAL, standin=False),
                         self.json("list", PROBLEM, "--device", "h200", *REAL, standin=False))

    def test_unsupported_and_bad_use(self):
        none = "x=[1,8,8,8] w=[8,8,3,3] boolean nchw"
        self.convpin("list", none, "--device", "h200", *REAL, status=1, standin=False)
        self.assertIn("gen_stats", self.json("list", f"{BIG} fused=gen_stats", "--device", "h200", *REAL, status=1, standin=False)[0]["reason"])
        self.write("no-device.json", "{}")
        h200 = ["--device", "h200"]
        for arguments in ([*h200, *REAL], ["x=[1", *h200, *REAL], ["-n", "3", *h200, *REAL], [BIG, "--device", "h900", *REAL],
                          [BIG, "--device", "no-device.json", *REAL], [BIG, *h200, "--cudnn", str(self.folder)]):
            with self.subTest(arguments):
                self.convpin("list", *arguments, status=2, standin=False)

    def test_without_a_gpu_it_says_so(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("there is a GPU here")
        for arguments in (["list", BIG], ["device"]):
            self.assertIn("no GPU here", self.convpin(*arguments, *REAL, status=2, standin=False).stderr)

    def test_a_present_gpu(self):
        self.convpin("device", "-o", "gpu.json")
        description = json.loads((self.folder / "gpu.json").read_text())
        self.assertEqual(description, json.loads(DEVICE.read_text()))  # what the stand-in describes itself as
        here, described = self.engines(PROBLEM, standin=True), self.engines(PROBLEM, "--device", "gpu.json", standin=True)
        self.assertEqual(self.supported(here), self.supported(described))
        self.assertNotIn("unknown", {e["supported"] for e in here.values()})


if __name__ == "__main__":
    command.main()
