"""Every way to reach cuDNN that the loader has: each bare, preloaded with nothing asked, and pinned.

Would fail when: the real function is looked for in the wrong place (RTLD_NEXT under a library opened RTLD_LOCAL, the
wrong one of two copies, libcudnn.so.9 in a program that has only a sub-library); cuDNN's own calls are caught, and
recurse; something is torn down before a program's last convolution; a process that can't be reached is silent about it.
"""
import re
import subprocess
import sys

import children
from elf_test import hooks

WAYS = {
    "linked": ("convclient", "--check", "x=[2,8,14,14] w=[8,8,3,3] float nchw pad=1,1"),
    "opened RTLD_LOCAL": ("dlopened", str(children.CLIENTS / "libconvlib.so"), "local"),
    "opened RTLD_GLOBAL": ("dlopened", str(children.CLIENTS / "libconvlib.so"), "global"),
    "opened by Python": children.on_python("convlib.convlib_run(b'python')"),
    "constructor and destructor": ("constructor",),
    "forked": ("fork",),
}


class Callers(children.Case):
    def test_each_way(self):
        for name, arguments in WAYS.items():
            with self.subTest(name):
                self.three_runs(*arguments)

    def test_two_copies_at_once(self):
        arguments = ("two_copies", children.STANDIN)
        child = self.three_runs(*arguments, LD_LIBRARY_PATH="")
        self.assertIn("copies of libcudnn.so.9: 2\n", child.stdout)
        # Each library's calls go to the copy that it was linked to: so the loader bound our look-ups.
        env = children.environment(LD_PRELOAD=children.LIBRARY, LD_LIBRARY_PATH="", LD_DEBUG="bindings", CONV_FWD_ALGO="2")
        done = subprocess.run(children.command(arguments), env=env, capture_output=True, text=True, cwd=self.folder)
        for copy, other in (("a", "b"), ("b", "a")):
            for function in ("cudnnBackendExecute", "cudnnConvolutionForward"):
                binding = r"binding file \S*libconvlib_{} \[0\] to \S*copy_{}/libcudnn.so.9 \[0\]: normal symbol `{}'"
                self.assertRegex(done.stderr, binding.format(copy + ".so", copy, function))
                self.assertNotRegex(done.stderr, binding.format(copy + ".so", other, function))

    def test_a_caller_that_bypasses_a_preload(self):
        child = self.preloaded("dlopened", str(children.CLIENTS / "libconvlib.so"), "deepbind", CONV_FWD_ALGO="2")
        self.assertRegex(child.stderr, "^convpin: 0 convolutions reached: cuDNN is loaded, but none of its functions was called through convpin")

    def test_a_function_that_this_cudnn_lacks(self):
        """Our export is there all the same, for a caller that is linked to it: it says so, in that version's number."""
        few_has = {"cudnnBackendCreateDescriptor"}
        names = [name for name in hooks() if name not in few_has and not name.endswith("String")]  # that one returns nothing
        code = ("import ctypes, sys\n"
                "ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)\n"
                "for name in sys.argv[2:]: print(name, ctypes.CDLL(None)[name](*[None] * 18))\n")
        for version, status in ((8, 9), (9, 3000)):
            few = str(children.CLIENTS / f"few_{version}/libcudnn.so.{version}")
            env = children.environment(LD_PRELOAD=children.LIBRARY, CONV_FWD_ALGO="2")
            child = children.execute((sys.executable, "-c", code, few, *names), self.folder, env)
            self.assertEqual(child.stdout.splitlines(), [f"{name} {status}" for name in names], child.stderr)

    def test_a_constructors_and_a_destructors_calls_are_pinned(self):
        child = self.preloaded("constructor", same=False, log=None, CONV_FWD_ALGO="2")
        self.assertEqual(child.stdout.splitlines(), [f"{when}: {what} checksum={child.stdout.split('checksum=')[1].split()[0]}"
                         for when in ("constructor", "main", "destructor") for what in ("graph eng2", "legacy algo2")])
        self.assertEqual(child.stderr.count("pinned, 0 unsupported"), 1)

    def test_forked_processes_each_tell_their_own(self):
        child = self.preloaded("fork", same=False, log="log-%p.jsonl", CONV_FWD_ALGO="2", CONVPIN_PROFILE="off")
        logs = [children.read_log(path) for path in self.folder.glob("log-*.jsonl")]
        # before, parent, after and _exit convolve, each twice or the parent four times; the others call nothing
        self.assertEqual(sorted(log[-1].get("calls", 0) for log in logs if log[-1]["type"] == "end"), [2, 2, 4], child.stderr)
        self.assertEqual(len(logs), 4)
        self.assertEqual(len({log[0]["pid"] for log in logs}), 4)
        for log in logs:
            with self.subTest(pid=log[0]["pid"]):
                self.check_log(log, ended=log[-1]["type"] == "end")
                self.assertIn("choice", [record["type"] for record in log])
        self.assertEqual(len(re.findall(r"^convpin: 2 problems, \d calls", child.stderr, re.M)), 3, child.stderr)

    def test_a_sublibrary_of_the_real_cudnn(self):
        if not (children.CLIENTS / "sublibrary").exists():
            self.skipTest("the client \"sublibrary\" is not built")
        arguments = ("sublibrary", children.STANDIN + "/h200-deviceprop.json")
        bare = self.bare(*arguments, standin=False)
        self.assertRegex(bare.stdout, r"^sublibrary: plan eng\d+")
        self.preloaded(*arguments, standin=False, log=None)
        for request, plan in (("eng28", "eng28_"), ("2", "eng2\n"), ("3", "eng0\n")):
            child = self.preloaded(*arguments, standin=False, same=False, CONV_FWD_ALGO=request)
            self.assertIn("sublibrary: plan " + plan, child.stdout, child.stderr)

    def test_threads(self):
        problems = (children.PROBLEM, children.STRIDED)
        for api in ("graph", "legacy"):
            for attempt in range(4):
                with self.subTest(api=api, attempt=attempt):
                    options = ("convclient", "--api", api, "--threads", "4", "--repeat", "25", "--check", *problems)
                    child = self.preloaded(*options, same=False, CONV_FWD_ALGO="2", CONVPIN_PROFILE="off")
                    self.assert_set(child, "im2col_gemm")
                    self.assertEqual((len(child.trace), child.log[-1]["calls"]), (200, 200))
                    self.assertEqual(len(child.of_type("problem")), 2)
                    self.preloaded(*options, same=True, CONVPIN_PROFILE="algorithms")


if __name__ == "__main__":
    children.main()
