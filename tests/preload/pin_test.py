"""Naming an algorithm: what CONV_FWD_ALGO asks for is what the stand-in executes, on both APIs.

Would fail when: a number, name or tag is not understood or means another algorithm; "set" is said where another engine
ran; an algorithm that is not possible is not refused with its reason; the output is not that algorithm's; an engine that is
compiled at run time is compiled for nothing but the program's own plan.
"""
import children
from children import LEGACY_RUNS, PROBLEM

WITHOUT_DEVICE = {4: "eng3", 5: "eng4", 6: "eng12", 7: "eng6"}  # engines that never finalize in the stand-in
NAMES = {0: "IMPLICIT_GEMM", 1: "IMPLICIT_PRECOMP_GEMM", 2: "GEMM", 3: "DIRECT", 4: "FFT", 5: "FFT_TILING",
         6: "WINOGRAD", 7: "WINOGRAD_NONFUSED"}


class Pin(children.Case):
    def pin(self, request, api="graph", problem=PROBLEM, same=False, **more):
        return self.preloaded("convclient", "--api", api, "--check", problem, same=same, CONV_FWD_ALGO=request,
                              CONVPIN_PROFILE="off", **more)

    def output_of(self, algorithm):
        """The checksum of a bare program that asks the stand-in for this algorithm itself."""
        return self.bare("convclient", "--api", "legacy", "--fixed", str(algorithm), PROBLEM).fields()["checksum"]

    def test_numbers_on_the_graph_api(self):
        bare = self.bare("convclient", "--api", "graph", "--check", PROBLEM)
        engines = {0: "eng28", 2: "eng2", 3: "eng0"}
        for number in range(8):
            with self.subTest(number):
                possible = number not in WITHOUT_DEVICE
                child = self.pin(number, same=not possible)
                self.assertIn(f"convpin: forward algorithm requested: {number} ({NAMES[number]})\n", child.stderr)
                self.assertEqual(len(child.trace), 1)
                if possible:
                    self.assert_set(child, LEGACY_RUNS[number])
                    self.assertEqual(child.fields()["checksum"], self.output_of(number))
                    self.assertEqual(child.of_type("choice")[0]["algorithm"], number)
                    self.assertEqual(child.executed(), [engines.get(number, child.fields()["ran"].split("_")[0])])
                else:
                    self.assert_not_set(child, "unsupported", WITHOUT_DEVICE[number] + ": not supported")
                    self.assertEqual(child.trace, bare.trace)

    def test_numbers_on_the_legacy_api(self):
        for number in range(8):
            with self.subTest(number):
                child = self.pin(number, "legacy", same=number == 6)
                if number == 6:
                    self.assert_not_set(child, "unsupported", "not supported")
                    continue
                self.assert_set(child, LEGACY_RUNS[number])
                self.assertEqual(child.trace, [("legacy", str(number), LEGACY_RUNS[number])])
                self.assertEqual(child.fields()["checksum"], self.output_of(number))

    def test_winograd_where_the_gpu_has_it(self):
        sm80 = children.STANDIN + "/sm80-deviceprop.json"
        for api in ("graph", "legacy"):
            with self.subTest(api):
                self.assert_set(self.pin(6, api, STANDIN_DEVICE_JSON=sm80), "winograd")

    def test_names(self):
        for text in ("CUDNN_CONVOLUTION_FWD_ALGO_GEMM", "gemm", "Gemm", "cudnn_convolution_fwd_algo_Gemm", " 2 "):
            for api in ("graph", "legacy"):
                with self.subTest(text, api=api):
                    child = self.pin(text, api)
                    self.assert_set(child, "im2col_gemm")
                    self.assertIn("convpin: requested forward algorithm 2 (GEMM) is set\n", child.stderr)

    def test_engine_tags(self):
        for text, engine, how in (("eng28", "eng28", "implicit_gemm"), ("ENG2", "eng2", "im2col_gemm"),
                                  ("ConvFwd_eng0", "eng0", "direct"), ("eng38", "eng38", "implicit_gemm")):
            with self.subTest(text):
                child = self.pin(text)
                self.assert_set(child, how)
                self.assertEqual(child.executed(), [engine])
                self.assertIn(f"convpin: requested forward engine {engine} is set\n", child.stderr)

    def test_exact_knobs_in_any_order(self):
        tag = self.pin("eng38").of_type("choice")[0]["ran"]  # as a person takes it from a log
        knobs = tag.split("_")[1:]
        self.assertGreater(len(knobs), 1)
        for text in (tag, "_".join(["ConvFwd_eng38", *reversed(knobs)]), tag.upper()):
            with self.subTest(text):
                child = self.pin(text)
                self.assert_set(child)
                self.assertEqual((child.fields()["ran"], child.of_type("choice")[0]["ran"]), (tag, tag))
        # other knobs than the heuristics would take
        own = self.pin("eng70").fields()["ran"]
        other = own.replace("_k18=0", "_k18=1")
        self.assertNotEqual(own, other)
        self.assertEqual(self.pin(other).fields()["ran"], other)
        self.assertEqual(self.pin("eng70_k18=1").fields()["ran"].split("_")[-1], "k18=1")

    def test_impossible_engines(self):
        for text in ("eng999", "eng71", "eng38_k2=12345", "eng38_k63=1"):
            with self.subTest(text):
                self.assert_not_set(self.pin(text, same=True), "unsupported", text.split("_")[0] + ".*: .")

    def test_a_compiled_engine_is_not_compiled_in_vain(self):
        """Any other is tried before it is given to the program; one that is compiled at run time is the program's to build."""
        def plans(**more):
            self.write("plans", "")
            child = self.pin("eng2", STANDIN_TRACE_PLANS="plans", **more)
            return child, (self.folder / "plans").read_text().splitlines().count("eng2")

        tried, times = plans()
        self.assert_set(tried, "im2col_gemm")
        untried, once_less = plans(STANDIN_COMPILED="eng2")
        self.assert_set(untried, "im2col_gemm")
        self.assertEqual(once_less, times - 1)
        # Where it can't be built after all, the program takes what stands behind it, and cuDNN's reason is told.
        refused, _ = plans(STANDIN_COMPILED="eng2", STANDIN_FAIL_PLAN="eng2", same=True)
        self.assert_not_set(refused, "unsupported", "eng2: not supported .*STANDIN_FAIL_PLAN")

    def test_engines_are_the_graph_apis(self):
        self.assert_not_set(self.pin("eng2", "legacy", same=True), "unsupported", "engine of the graph API")

    def test_minus_one_and_empty_leave_it_alone(self):
        for api in ("graph", "legacy"):
            for text in ("-1", ""):
                with self.subTest(text, api=api):
                    child = self.pin(text, api, same=True)
                    self.assertEqual(child.choices(), ["left_alone"])
                    self.assertEqual(child.warnings(), [])
                    self.assertEqual(child.trace, self.bare("convclient", "--api", api, "--check", PROBLEM).trace)

    def test_types_and_layouts(self):
        for kind in ("half nhwc", "bfloat16 nhwc", "double nchw", "float nhwc"):
            problem = f"x=[2,16,14,14] w=[16,16,3,3] {kind} pad=1,1"
            with self.subTest(problem):
                child = self.pin("0", problem=problem)  # --check: within the bound of its type, or the status is not 0
                self.assertIn(child.choices()[0], ("set", "unsupported"))
                if child.choices() == ["set"]:
                    self.assertEqual(child.executed(), ["eng28"])
                else:
                    self.assertEqual(child.stdout, self.bare("convclient", "--api", "graph", "--check", problem).stdout)

    def test_each_problem_for_itself(self):
        problems = [PROBLEM, "x=[1,8,10,10] w=[8,4,3,3] float nchw pad=1,1 groups=2", children.STRIDED]
        child = self.preloaded("convclient", "--check", *problems, same=False, CONV_FWD_ALGO="GEMM", CONVPIN_PROFILE="off")
        self.assertEqual(len(child.of_type("problem")), 3)
        for line in range(3):
            choice = child.of_type("choice")[line]
            self.assertEqual(choice["ran"], child.fields(line)["ran"])
            self.assertEqual(choice["choice"] == "set", child.trace[line][1] == "eng2")
        self.assertEqual(child.choices()[0], "set")


if __name__ == "__main__":
    children.main()
