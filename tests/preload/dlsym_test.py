"""Programs that look cuDNN up with dlopen and dlsym: reached, and nobody else's dlsym is changed.

Would fail when: a looked-up function is not ours, or calls into another copy of cuDNN than the one that it was looked up
in; cuDNN's own look-ups are answered with our functions (it then calls itself until the stack ends, or is counted twice);
RTLD_NEXT and RTLD_DEFAULT see us as the one who asks (a wrapper then finds itself); a function that this cuDNN lacks is
found; dlerror or errno are not what the real dlsym left; another tool that hooks dlsym is left out, or loops with us.
"""
import os
import re
import subprocess
import sys

import children
from children import CLIENTS, LIBRARY, PROBLEM, STRIDED

CONVLIB = str(CLIENTS / "libconvlib_lookup.so")
PYTHON = (sys.executable, "-c", "import ctypes, sys\nctypes.CDLL(sys.argv[1]).convlib_run(b'python')", CONVLIB)
WAYS = {
    "a program": ("convclient_lookup", "--check", PROBLEM),
    "a program, legacy": ("convclient_lookup", "--check", "--api", "legacy", PROBLEM),
    "opened RTLD_LOCAL": ("dlopened", CONVLIB, "local"),
    "opened RTLD_GLOBAL": ("dlopened", CONVLIB, "global"),
    "opened by Python": PYTHON,
    "constructor and destructor": ("constructor_lookup",),
    "forked": ("fork_lookup",),
}

# cuDNN by ctypes alone: the calls come from libffi, whose code is no module's that is linked to cuDNN.
CTYPES = """
import ctypes
from ctypes import byref, c_float, c_size_t, c_void_p
cudnn = ctypes.CDLL("libcudnn.so.9")
def call(name, *arguments):
    status = getattr(cudnn, name)(*arguments)
    if status: print(name, status)
def made(kind, *arguments):
    descriptor = c_void_p()
    call(f"cudnnCreate{kind}Descriptor", byref(descriptor))
    call(*[f"cudnnSet{kind}4dDescriptor" if kind != "Convolution" else "cudnnSetConvolution2dDescriptor", descriptor, *arguments])
    return descriptor
handle = c_void_p()
call("cudnnCreate", byref(handle))
x, y = made("Tensor", 0, 0, 2, 8, 14, 14), made("Tensor", 0, 0, 2, 8, 14, 14)
w, convolution = made("Filter", 0, 0, 8, 8, 3, 3), made("Convolution", 1, 1, 1, 1, 1, 1, 1, 0)
buffer = lambda count: (c_float * count)(*([1.0] * count))
xs, ws, ys, size, one, zero = buffer(3136), buffer(576), buffer(3136), c_size_t(), c_float(1), c_float(0)
call("cudnnGetConvolutionForwardWorkspaceSize", handle, x, w, convolution, y, 0, byref(size))
workspace = ctypes.create_string_buffer(size.value + 1)
call("cudnnConvolutionForward", handle, byref(one), x, xs, w, ws, convolution, 0, workspace, size, byref(zero), y, ys)
print("ctypes:", ys[0], ys[15])
"""


class Dlsym(children.Case):
    def test_each_way(self):
        for name, arguments in WAYS.items():
            with self.subTest(name):
                self.three_runs(*arguments)

    def test_each_call_is_counted_once(self):
        for api in ("graph", "legacy"):
            child = self.preloaded("convclient_lookup", "--api", api, "--threads", "3", "--repeat", "20", "--check", PROBLEM, STRIDED,
                                   same=False, CONV_FWD_ALGO="2", CONVPIN_PROFILE="off")
            self.assert_set(child, "im2col_gemm")
            self.assertEqual((len(child.trace), child.log[-1]["calls"], len(child.of_type("problem"))), (120, 120, 2))

    def test_the_profile_and_the_log_are_those_of_a_linked_program(self):
        linked = self.preloaded("convclient", "--check", PROBLEM, same=False, CONV_FWD_ALGO="2")
        looked_up = self.preloaded("convclient_lookup", "--check", PROBLEM, same=False, CONV_FWD_ALGO="2")
        self.assertEqual(looked_up.stdout, linked.stdout)
        # Not their order and status: candidates are tried until one is too slow, by this machine's clock.
        of = lambda child: {(r["type"], r.get("engine"), r.get("algorithm"), r.get("choice")) for r in child.log}
        self.assertEqual(of(looked_up), of(linked))

    def test_switched_off(self):
        for variables in ({"CONVPIN_DISABLE": "1", "CONV_FWD_ALGO": "2"}, {}):
            child = self.preloaded("convclient_lookup", "--check", PROBLEM, log=None, **variables)
            self.assertEqual(child.stderr, "")

    def test_ctypes(self):
        bare = self.bare(sys.executable, "-c", CTYPES)
        self.assertEqual([how for _, _, how in bare.trace], ["implicit_gemm"], bare.stderr)
        child = self.preloaded(sys.executable, "-c", CTYPES, CONV_FWD_ALGO="2", CONVPIN_PROFILE="off")
        self.assert_set(child, "im2col_gemm")
        self.assertEqual((bare.stdout, child.stdout), ("ctypes: 32.0 72.0\n",) * 2)

    def test_the_real_library(self):
        """Its dispatcher looks the same names up, from inside libcudnn.so.9."""
        arguments = ("convclient_lookup", "--device-json", children.STANDIN + "/h200-deviceprop.json", PROBLEM)
        self.preloaded(*arguments, standin=False, log=None)
        for request, engine in (("eng28", "eng28"), ("2", "eng2"), ("3", "eng0")):
            child = self.preloaded(*arguments, standin=False, same=False, CONV_FWD_ALGO=request)
            self.assertEqual(child.fields()["ran"].split("_")[0], engine, child.stderr)
            self.assertEqual(len(child.of_type("problem")), 1)

    def test_each_call_reaches_its_own_copy(self):
        for copies in (2, 5):
            child = self.many_copies(copies, CONV_FWD_ALGO="2", CONVPIN_PROFILE="off")
            runs = re.findall(r"^runs after copy (\d): (.*)$", child.stdout, re.M)
            self.assertEqual(len(runs), 2 * copies)
            expected = [0] * copies
            for copy, counts in runs:
                expected[int(copy)] += 2
                self.assertEqual(counts, " ".join(map(str, expected)))
            pinned = re.findall(r"^copy (\d): (?:graph eng2|legacy algo2) ", child.stdout, re.M)
            self.assertEqual(pinned, [str(i) for _ in range(2) for i in range(min(copies, 4)) for _ in range(2)])
            self.assertEqual([line for line in child.warnings() if "more than 4 copies" in line], child.warnings())
            self.assertEqual(len(child.warnings()), copies // 5)

    def many_copies(self, copies, **asked):
        outcomes = []
        for preload in ("", LIBRARY):
            folder = self.folder / f"{copies}{'-preloaded' if preload else ''}"
            folder.mkdir()
            env = children.environment(LD_PRELOAD=preload, LD_LIBRARY_PATH="", **(asked if preload else {}))
            outcomes.append(children.execute(("many_copies", children.STANDIN, CONVLIB, str(copies)), folder, env))
        bare, child = outcomes
        self.assertEqual((bare.status, child.status), (0, 0), bare.stderr + child.stderr)
        self.assertEqual(re.findall("runs.*", child.stdout), re.findall("runs.*", bare.stdout))
        self.assertEqual(bare.engines() & {"eng2", "algo2"}, set())  # the negative control
        return child

    def preload_order(self, *libraries):
        return ":".join(str(library) for library in libraries)

    def test_what_dlsym_and_dlerror_say(self):
        few = str(CLIENTS / "few_9/libcudnn.so.9")
        for level in ("O0", "O2"):
            scope = str(CLIENTS / f"liblookup_scope_{level}.so")
            child = self.preloaded("lookups", scope, few, log=None, CONV_FWD_ALGO="2")
            of_few = re.findall(r"^few (\w+): (found|not found)", child.stdout, re.M)
            self.assertEqual(of_few, [("cudnnGetVersion", "found"), ("cudnnBackendCreateDescriptor", "found"),
                                      ("cudnnBackendFinalize", "not found"), ("cudnnConvolutionForward", "not found")])
            self.assertIn("scope: default right, next right", child.stdout)

    def test_a_library_that_wraps_by_rtld_next(self):
        """Preloaded before us and after us; with another caller than itself, RTLD_NEXT finds the wrapper again."""
        for level in ("O0", "O2"):
            scope = CLIENTS / f"liblookup_scope_{level}.so"
            for order in ((scope,), (LIBRARY, scope), (scope, LIBRARY)):
                env = children.environment(LD_PRELOAD=self.preload_order(*order), CONV_FWD_ALGO="2")
                for command in (("convclient_lookup", PROBLEM), (sys.executable, "-c", "import os; print(os.getppid() == " + str(os.getpid()) + ")")):
                    child = children.execute(command, self.folder, env)
                    self.assertEqual(child.status, 0, child.stderr)
                    self.assertNotIn("found itself", child.stdout)
                    self.assertRegex(child.stdout, "True|" + (": eng2 " if LIBRARY in order else ": eng"))

    def test_another_tool_that_hooks_dlsym(self):
        """It sees the program's look-ups in either order. Before us it passes us by (it asks for libc's dlsym by version,
        as such tools do), and that is said."""
        tool = CLIENTS / "libdlsym_tool.so"
        counted = []
        for order in ((tool,), (tool, LIBRARY), (LIBRARY, tool)):
            env = children.environment(LD_PRELOAD=self.preload_order(*order), CONV_FWD_ALGO="2", CONVPIN_PROFILE="off")
            child = children.execute(("convclient_lookup", "--check", PROBLEM), self.folder, env)
            self.assertEqual(child.status, 0, child.stderr)
            counted.append(int(re.search(r"^tool: some look-ups, (\d+) of cuDNN$", child.stderr, re.M)[1]))
            pinned = {how for _, _, how in child.trace} == {"im2col_gemm"}
            self.assertEqual(pinned, order[0] == LIBRARY, child.stderr)
            self.assertEqual("another tool before convpin in LD_PRELOAD" in child.stderr, order == (tool, LIBRARY))
        self.assertGreater(counted[0], 20)
        self.assertGreaterEqual(min(counted), counted[0])

    def test_threads_that_look_up_while_others_open_and_close(self):
        for _ in range(3):
            self.preloaded("lookup_threads", str(CLIENTS / "liblookup_scope_O2.so"), log=None, CONV_FWD_ALGO="2")


if __name__ == "__main__":
    children.main()
