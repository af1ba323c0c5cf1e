"""tools/convpin.py, in Python programs that convolve through a library of their own.

Would fail when: importing it needs the library, or using it without says nothing a person can act on; a property, a with
block or clear() leaves something else in force than it says; a wrong value changes something; its annotations change a
model's results, or label with another module's name.
"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

import children

TOOLS = str(pathlib.Path(os.environ["CONVPIN_SOURCE_DIR"]) / "tools")
# run(): what one graph and one legacy convolution ran, read from the stand-in's trace.
BEGIN = """
sys.path.insert(0, %r)
import json, convpin
def run():
    before = len(open(os.environ["STANDIN_TRACE"]).readlines()) if os.path.exists(os.environ["STANDIN_TRACE"]) else 0
    keep = os.dup(1)
    os.dup2(2, 1)
    convlib.convlib_run(b"python")
    os.dup2(keep, 1)
    return [line.split()[2] for line in open(os.environ["STANDIN_TRACE"]).readlines()[before:]]
def show(what):
    print(json.dumps(what), flush=True)
""" % TOOLS


class PythonModule(children.Case):
    def program(self, code, preload=True, status=0, **variables):
        env = children.environment(LD_PRELOAD=children.LIBRARY if preload else "", CONVPIN_LOG="log.jsonl" if preload else "", **variables)
        child = children.execute(children.on_python(BEGIN + code), self.folder, env)
        self.assertEqual(child.status, status, child.stdout + child.stderr)
        child.said = [json.loads(line) for line in child.stdout.splitlines()]
        return child

    def test_properties(self):
        said = self.program("""
show([convpin.available, convpin.conv_fwd_algo, run()])
convpin.conv_fwd_algo = 2
show([convpin.conv_fwd_algo, run()])
convpin.conv_fwd_algo = ["WINOGRAD", "direct"]
show([convpin.conv_fwd_algo, convpin.conv_bwd_data_algo, run()])
convpin.conv_fwd_algo = None
show([convpin.conv_fwd_algo, run()])
convpin.conv_fwd_algo, convpin.conv_bwd_filter_algo = 0, "ALGO_1"
show([convpin.conv_fwd_algo, convpin.conv_bwd_filter_algo])
convpin.clear()
show([convpin.conv_fwd_algo, convpin.conv_bwd_filter_algo])
""").said
        own = ["implicit_gemm"] * 2
        self.assertEqual(said, [[True, None, own], [2, ["im2col_gemm"] * 2], [["WINOGRAD", "direct"], None, ["direct"] * 2], [None, own], [0, "ALGO_1"], [None, None]])

    def test_with_blocks(self):
        said = self.program("""
def state(): return [convpin.conv_fwd_algo, convpin.conv_bwd_data_algo]
with convpin.pin(forward=2, backward_data=1):
    show([state(), run()])
    with convpin.pin(forward="DIRECT"):
        show([state(), run()])
    show([state(), run()])
    try:
        with convpin.pin(any=0, forward=3):
            show([state(), run()])
            raise KeyError("of the program")
    except KeyError:
        show([state(), run()])
show([state(), run()])
""").said
        gemm, direct = ["im2col_gemm"] * 2, ["direct"] * 2
        self.assertEqual(said, [[[2, 1], gemm], [["DIRECT", 1], direct], [[2, 1], gemm], [[3, 0], direct], [[2, 1], gemm], [[None, None], ["implicit_gemm"] * 2]])

    def test_wrong_values_change_nothing(self):
        said = self.program("""
convpin.conv_fwd_algo = 2
def wrong(make):
    try: make()
    except Exception as error: show([type(error).__name__, str(error)[:60], convpin.conv_fwd_algo, run()[0]])
wrong(lambda: setattr(convpin, "conv_fwd_algo", 9))
wrong(lambda: setattr(convpin, "conv_fwd_algo", 1.5))
wrong(lambda: setattr(convpin, "conv_forward_algo", 1))
wrong(lambda: convpin.set(forward=3, backward_data="nonsense"))
wrong(lambda: convpin.set(sideways=3))
wrong(lambda: convpin.pin(forward=3, backward_data="nonsense").__enter__())
wrong(lambda: convpin.rules("[[rule]]\\nalgo = 99"))
""").said
        self.assertEqual([line[0] for line in said], ["ValueError", "TypeError", "AttributeError", "ValueError", "TypeError", "ValueError", "ValueError"])
        self.assertEqual([line[2:] for line in said], [[2, "im2col_gemm"]] * 7)
        self.assertIn("'9' is not a forward algorithm", said[0][1])

    def test_rules_problems_and_report(self):
        child = self.program("""
convpin.rules('[[rule]]\\nname = "mine"\\nproblem = "w=[8,8,3,3]"\\nalgo = "GEMM"')
convpin.label("stem")
run()
convpin.label(None)
run()
show(convpin.problems())
show(convpin.report())
show([convpin.rules() is not None, convpin.rules(""), run(), convpin.version()])
""")
        problems, report, end = child.said
        self.assertEqual([(p["api"], p["choice"], p["rule"], p["labels"], p["calls"], p["ran"][0]["what"]) for p in problems],
                         [("graph", "set", "mine", ["stem"], 2, "eng2"), ("legacy", "set", "mine", ["stem"], 2, "2 GEMM")])
        self.assertEqual(len(report.splitlines()), 3)
        self.assertRegex(report.splitlines()[1], r"^2 +eng2 +set +stem +forward x=\[2,8,14,14\]")
        self.assertEqual(end[:3], [True, None, ["implicit_gemm"] * 2])

    def test_what_fails_is_in_the_report(self):
        report, = self.program("""
convpin.rules('[[rule]]\\nalgo = "WINOGRAD"\\non_unsupported = "error"')
open(os.environ["STANDIN_TRACE"], "w").close()  # nothing runs that would make it
run()
show(convpin.report())
""").said
        for line in report.splitlines()[1:]:
            self.assertRegex(line, "^0 +- +unsupported +forward x=")
        self.assertEqual(len(report.splitlines()), 3)

    def test_import_is_enough_to_be_watched(self):
        env = children.environment(LD_PRELOAD=children.LIBRARY)
        child = children.execute(children.on_python(BEGIN + "run()\nshow([p['choice'] for p in convpin.problems()])"), self.folder, env)
        self.assertEqual(json.loads(child.stdout), ["left_alone"] * 2)

    def test_without_the_library(self):
        said = self.program("""
def says(make):
    try: show(repr(make()))
    except RuntimeError as error: show(str(error))
show(convpin.available)
says(lambda: convpin.conv_fwd_algo)
says(lambda: setattr(convpin, "conv_fwd_algo", 1))
says(lambda: convpin.pin(forward=1).__enter__())
says(convpin.problems)
says(lambda: convpin.label("x"))
says(convpin.clear)
""", preload=False).said
        self.assertEqual(said[:2], [False, "None"])
        for line in said[2:]:
            self.assertIn("LD_PRELOAD=/path/libconvpin.so python", line)

    def test_annotations_of_a_model(self):
        """Of PyTorch's own modules on the CPU: its convolutions don't reach cuDNN, so that the calls of the label are noted."""
        code = """
import sys, threading
sys.path.insert(0, %r)
try:
    import torch
except ImportError:
    sys.exit(77)
import convpin
from torch import nn
torch.manual_seed(1)
model = nn.Sequential()
model.add_module("stem", nn.Conv2d(3, 4, 3))
model.add_module("block", nn.Sequential(nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)))
model.add_module("up", nn.ConvTranspose2d(4, 2, 2))
x = torch.randn(2, 3, 8, 8)
def step():
    model.zero_grad()
    loss = model(x).square().sum()
    loss.backward()
    return [loss.item()] + [p.grad.clone() for p in model.parameters()]
before = step()
noted = []
class Library:
    label_now = staticmethod(lambda name: noted.append((threading.get_ident(), name)))
    convpin_enable = staticmethod(lambda: None)
convpin._library = Library
with convpin.annotate(model) as handle:
    during = step()
count = len(noted)
after = step()
assert len(noted) == count, noted[count:]
same = lambda a, b: all((u == v).all() if torch.is_tensor(u) else u == v for u, v in zip(a, b))
assert same(before, during) and same(before, after)
names = [name for _, name in noted]
assert names == [b"stem", None, b"block.1", None, b"up", None] + [b"up", None, b"block.1", None, b"stem", None], names
assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
kept = convpin.annotate(model)
loss = model(x).sum()
kept.remove()
del noted[:]
loss.backward()   # its hooks say no more
assert [name for _, name in noted if name] == [], noted
try:
    with convpin.annotate(model):
        model(torch.randn(2, 5, 8, 8))
except RuntimeError:
    assert noted[-1][1] is None, noted   # no label stays where a forward pass fails
""" % TOOLS
        done = subprocess.run([os.environ.get("CONVPIN_TORCH_PYTHON", sys.executable), "-c", code], capture_output=True, text=True, env=children.environment())
        if done.returncode == 77:
            self.skipTest("no PyTorch in this Python (CONVPIN_TORCH_PYTHON names another)")
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    children.main()
