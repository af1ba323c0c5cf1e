"""A pin that the program, the memory or cuDNN does not take: the program ends as it would have without us.

Would fail when: a program whose filter drops the pin finds nothing behind it, or something else than its own choice; a
pin whose plan or execution fails takes the program with it; a limit on the workspace is not kept; the reason is not said.
"""
import re

import children
from children import PROBLEM

NEEDS = 225792  # the workspace of im2col here: algorithm 2, engine 2
BOTH = [(api, benchmark) for api in ("graph", "legacy") for benchmark in ((), ("--benchmark",))]


class Refused(children.Case):
    def pin(self, request, *options, same=False, **more):
        return self.preloaded("convclient", "--check", *options, PROBLEM, same=same, CONV_FWD_ALGO=request,
                              CONVPIN_PROFILE="off", **more)

    def assert_as_bare(self, child, *options, **more):
        """It ran what the bare program runs; with benchmark, what it times (the fastest differs from run to run)."""
        bare = self.bare("convclient", "--check", *options, PROBLEM, **more)
        if "--benchmark" in options:
            self.assertEqual(set(child.executed()), set(bare.executed()))
        else:
            self.assertEqual((child.trace, child.stdout), (bare.trace, bare.stdout))

    def test_dropped_by_the_programs_own_filter(self):
        filtered = ("--deny-note", "tensor_core")
        for pin, options in ((p, o) for p in ("eng38", "eng38_k2=1_k13=0") for o in (filtered, (*filtered, "--benchmark"))):
            with self.subTest(pin, options=options):
                child = self.pin(pin, *options)
                self.assert_not_set(child, "refused", "eng38.* dropped by the program")
                self.assert_as_bare(child, *options)

    def test_a_family_offers_what_passes_the_filter(self):
        for options in ((), ("--benchmark",)):
            with self.subTest(options):
                child = self.pin("1", "--deny-note", "tensor_core", *options)
                self.assert_set(child, "implicit_gemm")
                self.assertNotIn("tf32", child.fields().get("notes", ""))
                self.assertIn(child.fields()["ran"].split("_")[0], ("eng1", "eng70"))

    def test_its_plan_fails(self):
        for options in ((), ("--benchmark",)):
            with self.subTest(options):
                child = self.pin("2", *options, STANDIN_FAIL_PLAN="eng2")
                self.assert_not_set(child, "unsupported", "eng2: not supported")
                self.assert_as_bare(child, *options, STANDIN_FAIL_PLAN="eng2")

    def test_all_but_one_plan_of_a_family_fail(self):
        tensor_cores = "eng22,eng23,eng27,eng35,eng38,eng41,eng45,eng46,eng47,eng48,eng62,eng67,eng70"
        child = self.pin("1", STANDIN_FAIL_PLAN=tensor_cores)
        self.assert_set(child, "implicit_gemm")
        self.assertEqual(child.executed(), ["eng1"])

    def test_its_execution_fails(self):
        for api, benchmark in BOTH:
            with self.subTest(api=api, benchmark=benchmark):
                child = self.pin("2", "--api", api, *benchmark, STANDIN_FAIL_EXECUTE="eng2,algo2")
                self.assertIn(child.choices()[-1], ("refused", "unsupported"))
                self.assertEqual(len(child.warnings()), 1, child.stderr)
                if not benchmark:  # the plan is still the pin's by name: the framework's own choice runs in its place
                    bare = self.bare("convclient", "--check", "--api", api, PROBLEM, STANDIN_FAIL_EXECUTE="eng2,algo2")
                    self.assertEqual(child.trace, bare.trace)
                    checksum = lambda run: re.search("checksum=[0-9a-f]+", run.stdout)[0]
                    self.assertEqual(checksum(child), checksum(bare))
                    self.assertRegex(child.warnings()[0], "fail")

    def test_the_execution_of_a_fixed_algorithms_substitute_fails(self):
        child = self.pin("2", "--api", "legacy", "--fixed", "1", STANDIN_FAIL_EXECUTE="algo2")
        self.assert_not_set(child, "unsupported", "execution failed")
        self.assertEqual(child.fields()["ran"], "algo1")

    def test_the_programs_limit_on_the_workspace(self):
        for api, benchmark in BOTH:
            options = ("--api", api, *benchmark, "--max-workspace", "1000")
            with self.subTest(options):
                child = self.pin("2", *options)
                self.assertIn(child.choices()[-1], ("refused", "unsupported"))
                self.assertEqual(len(child.warnings()), 1, child.stderr)
                self.assertRegex(child.warnings()[0], "memory|workspace|does not hold it")
                self.assert_as_bare(child, *options)
        self.assert_set(self.pin("2", "--max-workspace", str(NEEDS)), "im2col_gemm")

    def test_our_limit_on_the_workspace(self):
        for api, benchmark in BOTH:
            with self.subTest(api=api, benchmark=benchmark):
                child = self.pin("2", "--api", api, *benchmark, CONVPIN_WORKSPACE_LIMIT=NEEDS - 1)
                self.assert_not_set(child, "unsupported", f"workspace of {NEEDS} bytes, more than the limit of {NEEDS - 1}")
                self.assert_as_bare(child, "--api", api, *benchmark)
                child = self.pin("2", "--api", api, *benchmark, CONVPIN_WORKSPACE_LIMIT=NEEDS)
                self.assertEqual(child.choices()[-1], "set")
        child = self.pin("2", "--api", "legacy", "--fixed", "1", CONVPIN_WORKSPACE_LIMIT="1 KiB")
        self.assert_not_set(child, "unsupported", "limit of 1024")
        self.assertEqual(child.fields()["workspace"], "0")

    def test_more_than_is_free(self):
        # The program could not allocate it, and turns to what is behind the pin in the list.
        options = ("--max-workspace", "100000")
        for benchmark in ((), ("--benchmark",)):
            with self.subTest(benchmark):
                child = self.pin("2", *options, *benchmark, STANDIN_FREE_BYTES=100000)
                self.assert_not_set(child, "refused", "more workspace than there is memory")
                self.assert_as_bare(child, *options, *benchmark, STANDIN_FREE_BYTES=100000)

    def test_more_than_is_free_where_the_program_has_it_all_the_same(self):
        # As a framework with a pool of its own: little is free on the device, and yet it can allocate.
        for benchmark in ((), ("--benchmark",)):
            with self.subTest(benchmark):
                self.assert_set(self.pin("2", *benchmark, STANDIN_FREE_BYTES=100000), "im2col_gemm")

    def test_a_refusal_is_not_the_next_problems(self):
        """One warning for each problem, none for what runs as asked."""
        other = "x=[2,32,14,14] w=[32,32,3,3] float nchw pad=1,1"
        child = self.preloaded("convclient", PROBLEM, other, PROBLEM, "--repeat", "3", same=False, CONV_FWD_ALGO="2",
                               CONVPIN_PROFILE="off", CONVPIN_WORKSPACE_LIMIT=NEEDS)
        self.assertEqual(sorted(child.choices()), ["set", "unsupported"])
        self.assertEqual(len(child.warnings()), 1)
        self.assertIn("x=[2,32,14,14]", child.warnings()[0])


if __name__ == "__main__":
    children.main()
