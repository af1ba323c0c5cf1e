"""Programs on NVIDIA's own cudnn-frontend headers: 0.x as PyTorch calls it, and 1.x graphs.

Would fail when: the library's idea of a framework is ours only: a pin is not seen, timed or kept by the real builders,
their filters (TF32, determinism, workspace) find nothing behind a dropped pin, or a list is counted otherwise than filled.
"""
import children
from children import PROBLEM

VERSIONS = ("v0", "v1")
MODES = ((), ("--benchmark",))


class Frontend(children.Case):
    def each(self, *options, request, same=False, **more):
        for version in VERSIONS:
            client = f"frontend_{version}_client"
            if not (children.CLIENTS / client).exists():
                self.skipTest(f"{client} is not built: tools/fetch_frontend.sh gets the headers")
            for mode in MODES:
                arguments = (client, *mode, *options, "--check", PROBLEM)
                with self.subTest(arguments):
                    bare = self.bare(*arguments, **more)
                    self.assertEqual(bare.status, 0, bare.stderr)
                    child = self.preloaded(*arguments, same=same and not mode, CONV_FWD_ALGO=request,
                                           CONVPIN_PROFILE="off", **more)
                    yield child, bare

    def test_pinned(self):
        for request, engine, how in (("2", "eng2", "im2col_gemm"), ("eng0", "eng0", "direct"), ("0", "eng28", "implicit_gemm")):
            for child, _ in self.each(request=request):
                self.assert_set(child, how)
                self.assertEqual(child.executed(), [engine])
                self.assertEqual(child.fields()["ran"].removeprefix("ConvFwd_").split("_")[0], engine)

    def test_a_family_with_filters(self):
        for filters in ((), ("--no-tf32",), ("--deterministic",), ("--no-tf32", "--deterministic")):
            for child, _ in self.each(*filters, request="1"):
                self.assert_set(child, "implicit_gemm")
                self.assertNotIn("eng28", child.executed())
                if "--no-tf32" in filters:
                    self.assertIn(child.executed()[-1], ("eng1", "eng70"))

    def test_filtered_out(self):
        for child, bare in self.each("--no-tf32", request="eng38"):
            self.assert_not_set(child, "refused", "dropped by the program")
            self.assertEqual(set(child.executed()), set(bare.executed()))

    def test_impossible(self):
        for child, bare in self.each(request="6", same=True):
            self.assert_not_set(child, "unsupported", "arch mismatch")
            self.assertEqual(set(child.executed()), set(bare.executed()))

    def test_too_large_a_workspace(self):
        for child, bare in self.each("--max-workspace", "1000", request="2", same=True):
            self.assert_not_set(child, "refused", "memory")
            self.assertEqual(set(child.executed()), set(bare.executed()))

    def test_its_plan_fails(self):
        for child, bare in self.each(request="2", STANDIN_FAIL_PLAN="eng2"):
            self.assert_not_set(child, "unsupported", "eng2: not supported")
            self.assertEqual(set(child.executed()), set(bare.executed()))

    def test_its_execution_fails(self):
        for child, bare in self.each(request="2", STANDIN_FAIL_EXECUTE="eng2"):
            self.assertEqual(child.choices()[-1:], ["refused"])
            self.assertLessEqual(set(child.executed()), set(bare.executed()))

    def test_nothing_asked(self):
        for child, bare in self.each(request="", same=True):
            self.assertEqual((child.choices(), child.warnings()), (["left_alone"] * len(child.choices()), []))
            self.assertEqual(set(child.executed()), set(bare.executed()))

    def test_profiled(self):
        for version in VERSIONS:
            if not (children.CLIENTS / f"frontend_{version}_client").exists():
                self.skipTest("the cudnn-frontend clients are not built")
            child = self.preloaded(f"frontend_{version}_client", "--check", PROBLEM, CONVPIN_PROFILE="engines")
            self.assertGreater(len([c for c in child.of_type("candidate") if c["status"] in ("ok", "too_slow")]), 5)

    def test_what_must_be_met_and_is(self):
        """Nothing is said of the lists whose configurations the builders had no use for."""
        for child, _ in self.each(request="2", CONVPIN_ON_UNSUPPORTED="error"):
            self.assert_set(child, "im2col_gemm")
            self.assertNotRegex(child.stderr, "error:|not be met")

    def test_what_must_be_met_and_is_not(self):
        for version in VERSIONS:
            client = f"frontend_{version}_client"
            if not (children.CLIENTS / client).exists():
                self.skipTest(f"{client} is not built: tools/fetch_frontend.sh gets the headers")
            for options, request, reason in ((("--no-tf32",), "eng38", "dropped by the program itself"), ((), "6", "arch mismatch"),
                                             (("--max-workspace", "1000"), "2", "dropped by the program")):
                for mode in MODES:
                    with self.subTest(client, options=options, mode=mode):
                        env = children.environment(LD_PRELOAD=children.LIBRARY, CONV_FWD_ALGO=request, CONVPIN_PROFILE="off", CONVPIN_ON_UNSUPPORTED="error")
                        child = children.execute((client, *mode, *options, PROBLEM), self.folder, env)
                        self.assertEqual((child.status, child.stdout, child.trace), (1, "", []), child.stderr)
                        self.assertEqual(child.stderr.count("convpin: error:"), 1, child.stderr)
                        self.assertRegex(child.stderr, f"rule CONV_FWD_ALGO asks for {request}.*{reason}.*this convolution fails")


if __name__ == "__main__":
    children.main()
