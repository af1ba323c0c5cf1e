"""What is noted of a program's calls that cuDNN fails: the log has call, descriptor, attribute, status, cuDNN's words and the
line that does it again; the program finds cuDNN's words as without the library.

Would fail when: the text that the program reads is another than without the library, is gone, or is given twice; a failure is
missing in the log or its end's count or is there for each time it happened, or is missed because something of ours failed before; refusals, which are routine, are talked about; our own failures
(on_unsupported) are called cuDNN's.
"""
import children
from children import PROBLEM

# As programs do it: by ctypes, which looks cuDNN up. Prints what each call gave, and the text behind it.
PROGRAM = """
from ctypes import *
cudnn = CDLL("libcudnn.so.9")
def text(size=4096):
    buffer = create_string_buffer(size)
    cudnn.cudnnGetLastErrorString(buffer, c_size_t(size))
    return buffer.value.decode()
def create(kind):
    descriptor = c_void_p()
    assert cudnn.cudnnBackendCreateDescriptor(kind, byref(descriptor)) == 0
    return descriptor
five = (c_int64 * 1)(5)
tensor, graph = create(17), create(15)
print("nothing failed", repr(text()))
for _ in range(3):
    print("tensor", cudnn.cudnnBackendFinalize(tensor), repr(text()), repr(text()))
print("type", cudnn.cudnnBackendSetAttribute(tensor, 906, 0, c_int64(1), five), repr(text()))
cudnn.cudnnBackendFinalize(tensor); cudnn.cudnnBackendFinalize(graph)
print("the last of two", repr(text()), repr(text()))
cudnn.cudnnBackendFinalize(tensor)
assert cudnn.cudnnBackendSetAttribute(tensor, 906, 3, c_int64(1), five) == 0
create(16)
print("before what succeeds", repr(text()))
cudnn.cudnnBackendFinalize(tensor)
print("not read whole", repr(text(8)), repr(text()))
"""

# A text longer than most, and one of a thread that ends without reading it.
LONG = """
from ctypes import *
import threading
cudnn = CDLL("libcudnn.so.9")
def fail():
    assert cudnn.cudnnBackendExecute(None, None, None) != 0
def text():
    buffer = create_string_buffer(40000)
    cudnn.cudnnGetLastErrorString(buffer, c_size_t(40000))
    return buffer.value.decode()
fail()
thread = threading.Thread(target=fail); thread.start(); thread.join()
print(text())
"""

# All that cuDNN offers is denied: the query succeeds, with an empty list. What fails then is cuDNN's.
AFTER_A_DENIAL = """
from ctypes import *
cudnn = CDLL("libcudnn.so.9")
ints = lambda *values: (c_int * len(values))(*values)
def made(create, then, *arguments):
    it = c_void_p()
    assert getattr(cudnn, create)(byref(it)) == 0
    assert not then or getattr(cudnn, then)(it, *arguments) == 0
    return it
handle = made("cudnnCreate", "")
x = made("cudnnCreateTensorDescriptor", "cudnnSetTensorNdDescriptor", 0, 4, ints(2, 16, 14, 14), ints(3136, 196, 14, 1))
w = made("cudnnCreateFilterDescriptor", "cudnnSetFilterNdDescriptor", 0, 0, 4, ints(16, 16, 3, 3))
how = made("cudnnCreateConvolutionDescriptor", "cudnnSetConvolutionNdDescriptor", 2, ints(1, 1), ints(1, 1), ints(1, 1), 1, 0)
count, results = c_int(-1), create_string_buffer(4096)
assert cudnn.cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, how, x, 8, byref(count), results) == 0
print(count.value)
tensor = c_void_p()
assert cudnn.cudnnBackendCreateDescriptor(17, byref(tensor)) == 0
assert cudnn.cudnnBackendFinalize(tensor) != 0
"""


class Failures(children.Case):
    def failures(self, child):
        """The last record of each."""
        return list({r["failure_id"]: r for r in child.of_type("failure")}.values())

    def run_logged(self, *arguments, **variables):
        env = children.environment(LD_PRELOAD=children.LIBRARY, CONVPIN_LOG="log.jsonl", **variables)
        (self.folder / "log.jsonl").unlink(missing_ok=True)
        child = children.execute(arguments, self.folder, env)
        child.log = children.read_log(self.folder / "log.jsonl")
        return child

    def test_the_program_reads_the_same_text(self):
        bare = children.execute(children.on_python(PROGRAM), self.folder, children.environment())
        self.assertIn("'_nbDims < 1' ''", bare.stdout, bare.stderr)
        child = self.run_logged(*children.on_python(PROGRAM))
        self.assertEqual((child.status, child.stdout), (bare.status, bare.stdout))
        tensor, attribute, graph = self.failures(child)
        common = {"call": "cudnnBackendFinalize", "descriptor": "TENSOR", "attribute": None, "status": "CUDNN_STATUS_BAD_PARAM"}
        self.assertLessEqual(common.items(), tensor.items())
        self.assertEqual((tensor["reason"], tensor["times"]), ("_nbDims < 1", 6))
        self.assertEqual((attribute["call"], attribute["attribute"], attribute["reason"]),
                         ("cudnnBackendSetAttribute", "TENSOR_UNIQUE_ID", "CUDNN_TYPE_INT64 != attrType"))
        self.assertEqual((graph["descriptor"], graph["times"]), ("OPERATIONGRAPH", 1))
        self.assertIn('convpin: 8 cuDNN calls of the program\'s failed (the first: cudnnBackendFinalize of TENSOR: '
                      'CUDNN_STATUS_BAD_PARAM, "_nbDims < 1")', child.stderr)
        self.assertEqual(child.log[0]["type"], "header")
        self.assertEqual(child.log[-1]["failed_calls"], 8)

    def test_without_a_log_nothing_is_noted(self):
        bare = children.execute(children.on_python(PROGRAM), self.folder, children.environment())
        child = children.execute(children.on_python(PROGRAM), self.folder, children.environment(LD_PRELOAD=children.LIBRARY, CONV_FWD_ALGO="2"))
        self.assertEqual(child.stdout, bare.stdout)
        self.assertNotIn("failed", child.stderr)

    def test_a_long_text_stays_whole(self):
        bare = children.execute(children.on_python(LONG), self.folder, children.environment(STANDIN_REASON_BYTES="30000"))
        self.assertEqual(len(bare.stdout.strip()), 30000, bare.stderr)
        child = self.run_logged(*children.on_python(LONG), STANDIN_REASON_BYTES="30000")
        self.assertEqual((child.status, child.stdout), (bare.status, bare.stdout))
        failed, = self.failures(child)
        self.assertEqual((failed["call"], failed["times"]), ("cudnnBackendExecute", 2))
        self.assertRegex(failed["reason"], r"^stand-in: [^.]*\.{1000,2047}$")

    def test_after_a_denial(self):
        self.write("pins.toml", "version = 1\n" + "".join(f'[[deny]]\noperation = "forward"\nalgo = {i}\n' for i in range(8)))
        child = self.run_logged(*children.on_python(AFTER_A_DENIAL), CONVPIN_CONFIG="pins.toml")
        self.assertEqual((child.status, child.stdout), (0, "0\n"), child.stderr)
        self.assertIn("all that cuDNN's list offers is denied", child.stderr)
        failed, = self.failures(child)
        self.assertEqual((failed["call"], failed["descriptor"]), ("cudnnBackendFinalize", "TENSOR"))

    def test_an_execution(self):
        engine = self.preloaded("convclient", PROBLEM).of_type("choice")[0]["engine"]
        for arguments, where, candidate, legacy in ((("convclient", PROBLEM), engine.split("_")[0], engine, ""),
                                                    (("convclient", "--api", "legacy", "--fixed", "1", PROBLEM), "algo1", "1", "--legacy ")):
            with self.subTest(arguments):
                bare = children.execute(arguments, self.folder, children.environment(STANDIN_FAIL_EXECUTE=where))
                child = self.run_logged(*arguments, STANDIN_FAIL_EXECUTE=where)
                self.assertEqual((child.status, child.stdout), (bare.status, bare.stdout))
                own = [[line for line in run.stderr.splitlines() if line.startswith("convclient:")] for run in (child, bare)]
                self.assertEqual(own[0], own[1])
                failed, = (f for f in self.failures(child) if f["status"] == "CUDNN_STATUS_EXECUTION_FAILED")
                self.assertEqual(failed["reason"], "stand-in: STANDIN_FAIL_EXECUTE")
                problem, = child.of_type("problem")
                self.assertEqual((failed["problem_id"], failed["problem"]), (problem["problem_id"], problem["problem"]))
                self.assertEqual(failed["replay"], f"convpin replay {legacy}'{problem['problem']}' --candidate {candidate}")
                self.assertIn("1 cuDNN call of the program's failed", child.stderr)

    def test_a_pin_with_nothing_in_its_place(self):
        self.write("pins.toml", 'version = 1\n[[rule]]\nalgo = "GEMM"\non_unsupported = "error"\n')
        long = {"STANDIN_FAIL_EXECUTE": "eng2", "STANDIN_REASON_BYTES": "700"}
        child = self.run_logged("convclient", PROBLEM, CONVPIN_CONFIG="pins.toml", **long)
        self.assertEqual(child.status, 1)
        failed, = (f for f in self.failures(child) if f["call"] == "cudnnBackendExecute")
        self.assertRegex(failed["reason"], r"^stand-in: STANDIN_FAIL_EXECUTE\.+$")
        self.assertEqual(len(failed["reason"]), 700)
        self.assertTrue(failed["replay"].endswith(" --candidate eng2"), failed)
        self.assertIn("stand-in: STANDIN_FAIL_EXECUTE" + "." * 400, child.stderr)  # the program's own words

    def test_refusals_are_routine(self):
        child = self.run_logged("convclient", "--benchmark", PROBLEM)
        self.assertNotIn("failed", child.stderr)
        self.assertEqual((child.log[-1]["failed_problems"], child.log[-1]["failed_calls"]), (0, 0))
        child = self.run_logged("convclient", "--api", "legacy", "--fixed", "6", PROBLEM)
        self.assertNotIn("cuDNN call", child.stderr)
        refused, = self.failures(child)
        self.assertEqual((refused["call"], refused["status"][:26]),
                         ("cudnnGetConvolutionForwardWorkspaceSize", "CUDNN_STATUS_NOT_SUPPORTED"))
        self.assertIn("--legacy 'forward " + PROBLEM, refused["replay"])

    def test_what_we_fail_is_not_cudnns(self):
        self.write("pins.toml", 'version = 1\n[[rule]]\nname = "stem"\nalgo = "WINOGRAD"\non_unsupported = "error"\n')
        for api in ("graph", "legacy"):
            child = self.run_logged("convclient", "--api", api, PROBLEM, CONVPIN_CONFIG="pins.toml")
            self.assertEqual(child.status, 1)
            self.assertRegex(child.stderr, "convclient: .*rule stem asks for 6")
            self.assertEqual(self.failures(child), [])


if __name__ == "__main__":
    children.main()
