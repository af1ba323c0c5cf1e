"""NVTX ranges, as a tool sees them that NVTX loads (tests/clients/nvtx_tool.cpp).

Would fail when: CONVPIN_NVTX puts no range around a convolution, or one with another text than what the stand-in ran; a
range stays open; there are ranges without the setting; the setting makes the program run something else.
"""
import pathlib
import unittest

import children
from children import PROBLEM

TOOL = children.CLIENTS / "libnvtx_tool.so"
TEXT = "convpin: forward x=[2,16,14,14] w=[16,16,3,3] float nchw pad=1,1 stride=1,1 dilation=1,1 groups=1 "


@unittest.skipUnless(TOOL.exists(), "built without nvtx3/nvToolsExt.h")
class Nvtx(children.Case):
    def ranges(self, *arguments, nvtx="1", same=True, **variables):
        path = pathlib.Path(self.folder) / "ranges.txt"
        path.unlink(missing_ok=True)
        child = self.preloaded(*arguments, same=same, CONVPIN_NVTX=nvtx, NVTX_INJECTION64_PATH=TOOL, NVTX_TOOL_FILE=path, **variables)
        lines = children.lines_of(path)
        self.assertEqual(lines[1::2], ["pop"] * (len(lines) // 2))  # each ends before the next begins
        return child, [line.removeprefix("push ") for line in lines[::2]]

    def test_each_execution(self):
        for api in ("graph", "legacy"):
            with self.subTest(api):
                child, ranges = self.ranges("convclient", "--api", api, "--repeat", "3", PROBLEM)
                ran = child.of_type("choice")[0]["ran"]
                self.assertEqual(ranges, [TEXT + ran] * 3)
                self.assertEqual(child.trace, self.bare("convclient", "--api", api, "--repeat", "3", PROBLEM).trace)

    def test_what_runs_is_named(self):
        for api, ran in (("graph", "eng2"), ("legacy", "2 GEMM")):
            with self.subTest(api):
                child, ranges = self.ranges("convclient", "--api", api, PROBLEM, same=False, CONV_FWD_ALGO="2", CONVPIN_PROFILE="off")
                self.assertEqual({how for _, _, how in child.trace}, {"im2col_gemm"})
                self.assertEqual(ranges, [TEXT + ran])

    def test_labels_and_changes_while_it_runs(self):
        steps = ["label", "layer1", "run", "run", "set", "forward", "2", "run", "label", "layer2", "run", "label", "-", "run", "clear", "-", "run"]
        for api in ([], ["--legacy"]):
            with self.subTest(api):
                child, ranges = self.ranges("repin", *api, PROBLEM, *steps, same=False)
                own, gemm = child.of_type("choice")[0]["ran"], "2 GEMM" if api else "eng2"
                self.assertEqual(ranges, [TEXT + text for text in (own + " [layer1]", own + " [layer1]", gemm + " [layer1]", gemm + " [layer2]",
                                                                   gemm, own)])

    def test_a_program_that_asks_for_nothing_else(self):
        _, ranges = self.ranges("convclient", PROBLEM, log=None)
        self.assertEqual(len(ranges), 1)

    def test_no_ranges_without_the_setting(self):
        for nvtx in ("", "0"):
            _, ranges = self.ranges("convclient", PROBLEM, nvtx=nvtx)
            self.assertEqual(ranges, [])

    def test_without_a_tool(self):
        self.preloaded("convclient", "--repeat", "2", PROBLEM, CONVPIN_NVTX="1")


if __name__ == "__main__":
    children.main()
