"""The backward operations, as pin_test.py tests the forward one: what is asked for is what the stand-in executes.

Would fail when: a number, name or tag of one operation is taken for another's; the three variables get in each other's
way; a refusal has no reason or changes an output; dx and dw are not those of the algorithm that was asked for; the
profile or its table mixes operations up.
"""
import re

import children
from children import PROBLEM

DATA, FILTER = "backward_data", "backward_filter"
VARIABLE = {DATA: "CONV_BWD_DATA_ALGO", FILTER: "CONV_BWD_FILTER_ALGO", "forward": "CONV_FWD_ALGO"}
WORDS = {DATA: "backward data", FILTER: "backward filter", "forward": "forward"}
NAMES = {DATA: ["ALGO_0", "ALGO_1", "FFT", "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED"],
         FILTER: ["ALGO_0", "ALGO_1", "FFT", "ALGO_3", "WINOGRAD", "WINOGRAD_NONFUSED", "FFT_TILING"]}
NO_ENGINE = "no engine of the graph API is known to run this algorithm"
# What the stand-in calls the algorithm that runs, or why none does.
RUNS = {
    ("graph", DATA): ["scatter", "implicit_gemm"],
    ("graph", FILTER): ["scatter", "implicit_gemm", None, "scatter"],
    ("legacy", DATA): ["scatter", "implicit_gemm", "fft", "fft_tiling", None, "winograd_nonfused"],
    ("legacy", FILTER): ["scatter", "implicit_gemm", "fft", "scatter", None, "winograd_nonfused", None],
}
REFUSED = {
    ("graph", DATA): {2: "eng4: not supported", 3: "eng50: not supported", 4: "eng19: not supported: arch mismatch",
                      5: "eng7: not supported"},
    ("graph", FILTER): {2: "eng18: not supported", 4: NO_ENGINE, 5: "eng17: not supported", 6: NO_ENGINE},
    ("legacy", DATA): {4: "not supported"},
    ("legacy", FILTER): {4: "not supported", 6: "not supported"},
}
ENGINES = {(DATA, 0): "eng25", (FILTER, 0): "eng20", (FILTER, 3): "eng20"}


def both(problem=PROBLEM):
    return f"{DATA} {problem}", f"{FILTER} {problem}"


class Backward(children.Case):
    def pin(self, *problems, api="graph", options=(), same=False, **more):
        return self.preloaded("convclient", "--api", api, *options, "--check", *problems, same=same, **{"CONVPIN_PROFILE": "off"} | more)

    def output_of(self, operation, algorithm):
        """The checksum of a bare program that asks the stand-in for this algorithm itself."""
        bare = self.bare("convclient", "--api", "legacy", "--fixed", str(algorithm), f"{operation} {PROBLEM}")
        return bare.fields()["checksum"]

    def test_numbers(self):
        """All three operations in one process, each with its own number."""
        for api in ("graph", "legacy"):
            bare = self.bare("convclient", "--api", api, "--check", *both(), PROBLEM)
            for number in range(7):
                asked = {DATA: min(number, 5), FILTER: number}
                with self.subTest(api=api, **asked):
                    child = self.pin(*both(), PROBLEM, api=api, CONV_FWD_ALGO="2", **{VARIABLE[o]: n for o, n in asked.items()})
                    choices = child.of_type("choice")
                    self.assertEqual((len(child.trace), len(choices)), (3, 3))
                    self.assertEqual((choices[2]["choice"], child.trace[2]), ("set", (api, "eng2" if api == "graph" else "2", "im2col_gemm")))
                    warnings = 0
                    for line, (operation, n) in enumerate(asked.items()):
                        name = f"{n} ({NAMES[operation][n]})"
                        self.assertIn(f"convpin: {WORDS[operation]} algorithm requested: {name}\n", child.stderr)
                        self.assertEqual((choices[line]["requested"], choices[line]["rule"]), (name, VARIABLE[operation]))
                        if n in REFUSED[api, operation]:
                            warnings += 1
                            self.assertEqual(choices[line]["choice"], "unsupported")
                            self.assertTrue(choices[line]["reason"].startswith(REFUSED[api, operation][n]), choices[line])
                            self.assertEqual((child.trace[line], child.fields(line)), (bare.trace[line], bare.fields(line)))
                            continue
                        self.assertEqual(choices[line]["choice"], "set")
                        self.assertIn(f"convpin: requested {WORDS[operation]} algorithm {name} is set\n", child.stderr)
                        ran = child.trace[line]
                        self.assertEqual((ran[0], ran[2]), (f"{api}/{operation}", RUNS[api, operation][n]))
                        self.assertEqual(child.fields(line)["checksum"], self.output_of(operation, n))
                        if api == "legacy":
                            self.assertEqual((ran[1], choices[line]["algorithm"]), (str(n), n))
                        elif (operation, n) in ENGINES:
                            self.assertEqual(ran[1], ENGINES[operation, n])
                    self.assertEqual(len(child.warnings()), warnings, child.stderr)

    def test_each_variable_is_for_its_operation_alone(self):
        bare = self.bare("convclient", "--api", "graph", "--check", *both(), PROBLEM)
        for line, operation in enumerate((DATA, FILTER, "forward")):
            child = self.pin(*both(), PROBLEM, **{VARIABLE[operation]: "ALGO_0" if line < 2 else "GEMM"})
            self.assertEqual(child.choices(), ["set" if i == line else "left_alone" for i in range(3)])
            for other in {0, 1, 2} - {line}:
                self.assertEqual((child.trace[other], child.fields(other)), (bare.trace[other], bare.fields(other)))

    def test_names_and_tags(self):
        same_tag = self.pin(both()[0], CONV_BWD_DATA_ALGO="eng25").of_type("choice")[0]["ran"]  # as taken from a log
        self.assertIn("_", same_tag)
        for data, filter_, engines in (("CUDNN_CONVOLUTION_BWD_DATA_ALGO_0", "cudnn_convolution_bwd_filter_algo_0", ["eng25", "eng20"]),
                                       ("ConvBwdData_eng25", "ConvBwdFilter_eng20", ["eng25", "eng20"]),
                                       ("eng0", "eng1", ["eng0", "eng1"]), (same_tag.upper(), "algo_3", ["eng25", "eng20"])):
            with self.subTest(data, filter=filter_):
                child = self.pin(*both(), CONV_BWD_DATA_ALGO=data, CONV_BWD_FILTER_ALGO=filter_)
                self.assert_set(child)
                self.assertEqual([engine for _, engine, _ in child.trace], engines)
                self.assertEqual([line["ran"] for line in child.of_type("choice")], [child.fields(0)["ran"], child.fields(1)["ran"]])

    def test_what_is_another_operations(self):
        for variable, value, words in (("CONV_BWD_DATA_ALGO", "6", ["'6'", "0-5", "ALGO_0", "eng38"]),
                                       ("CONV_BWD_DATA_ALGO", "GEMM", ["'GEMM'", "backward data"]),
                                       ("CONV_BWD_FILTER_ALGO", "7", ["'7'", "0-6", "ALGO_3"]),
                                       ("CONV_BWD_FILTER_ALGO", "ConvBwdData_eng25", ["backward filter"])):
            with self.subTest(variable, value=value):
                child = self.pin(*both(), same=True, **{variable: value})
                self.assertEqual(set(child.choices()), {"left_alone"})
                line = next(line for line in child.stderr.splitlines() if "convpin: error:" in line)
                for word in (variable, *words):
                    self.assertIn(word, line)

    def test_problems(self):
        """3-D, groups, depthwise, dilation, stride, unequal types and layouts, strided views: each by 0, the scattering engine."""
        for problem in ("x=[1,4,5,6,7] w=[4,4,3,3,3] float ncdhw pad=1,1,1", "x=[2,8,9,9] w=[8,4,3,3] float nchw pad=1,1 groups=2",
                        "x=[2,8,9,9] w=[8,1,3,3] float nchw pad=1,1 groups=8", "x=[2,8,12,12] w=[8,8,3,3] float nchw pad=2,2 dilation=2,2",
                        "x=[2,8,12,12] w=[8,8,3,3] float nchw pad=1,1 stride=2,2", "x=[2,8,12,12] w=[8,8,3,3] half nhwc pad=1,1",
                        "x=[2,8,12,12] w=[8,8,3,3] float nchw pad=1,1 xstride=[2304,288,24,1]", "x=[2,8,12,12] w=[8,8,5,3] double nchw pad=2,1"):
            for api in ("graph", "legacy"):
                with self.subTest(problem, api=api):
                    child = self.pin(*both(problem), api=api, CONV_BWD_DATA_ALGO="0", CONV_BWD_FILTER_ALGO="0")
                    self.assert_set(child, "scatter")
                    texts = [record["problem"].split()[0] for record in child.of_type("problem")]
                    self.assertEqual(texts, [DATA, FILTER])

    def test_a_fixed_algorithm_is_replaced(self):
        for operation, own in ((DATA, "0"), (FILTER, "1")):
            with self.subTest(operation):
                child = self.pin(f"{operation} {PROBLEM}", api="legacy", options=("--fixed", own), **{VARIABLE[operation]: "WINOGRAD_NONFUSED"})
                self.assert_set(child, "winograd_nonfused")
                self.assertEqual(child.fields()["checksum"], self.output_of(operation, 5))

    def test_beta(self):
        for api in ("graph", "legacy"):
            child = self.pin(*both(), api=api, options=("--beta", "1"), CONV_BWD_DATA_ALGO="0", CONV_BWD_FILTER_ALGO="0")
            self.assert_set(child, "scatter")  # and --check: its output is right

    def test_dropped_by_the_programs_filter(self):
        child = self.pin(*both(), options=("--deny-note", "nondeterministic"), same=True, CONV_BWD_DATA_ALGO="0", CONV_BWD_FILTER_ALGO="0")
        self.assertEqual(child.choices(), ["refused", "refused"])
        for record in child.of_type("choice"):
            self.assertRegex(record["reason"], r"^eng2[05]_.* dropped by the program itself")

    def test_the_profile(self):
        for api in ("graph", "legacy"):
            with self.subTest(api):
                child = self.pin(*both(), api=api, CONV_BWD_DATA_ALGO="1", CONV_BWD_FILTER_ALGO="1", CONVPIN_PROFILE="algorithms")
                self.assertEqual(child.choices(), ["set", "set"])
                for line, operation in enumerate((DATA, FILTER)):
                    rows = [c for c in child.of_type("candidate") if c["problem_id"] == line + 1]
                    self.assertEqual(sorted(c["algorithm"] for c in rows if c["algorithm"] is not None), list(range(len(NAMES[operation]))))
                    self.assertEqual([c["algorithm_name"] for c in rows if c["requested"]], ["ALGO_1"])
                    self.assertEqual(sum(c["framework_choice"] for c in rows), 1)
                    status = {c["algorithm"]: c["status"] for c in rows if c["algorithm"] is not None}
                    refused = {n for n, s in status.items() if s == "unsupported"}
                    self.assertEqual(refused, set(REFUSED[api, operation]))
                    self.assertLess(max(c["error"] for c in rows if c["status"] == "ok"), 1e-5)
                    deterministic = {c["engine"].split("_")[0]: c["deterministic"] for c in rows if c["status"] == "ok" and c["engine"]}
                    self.assertNotEqual(deterministic.get(ENGINES[operation, 0]), True)
                    order = re.search(rf"^convpin: supported {WORDS[operation]} algorithms, fastest first: ([\d ]+)$", child.stderr, re.M)[1]
                    self.assertEqual({int(n) for n in order.split()}, set(status) - refused)
                    self.assertIn(f"convpin: {operation} x=[2,16,14,14]", child.stderr)

    def test_the_profile_leaves_the_output_alone(self):
        for api in ("graph", "legacy"):
            for options in ((), ("--beta", "1")):
                with self.subTest(api, options=options):
                    child = self.pin(*both(), api=api, options=options, same=True, CONVPIN_PROFILE="engines")
                    self.assertEqual({c["problem_id"] for c in child.of_type("candidate")}, {1, 2})

    def test_benchmark(self):
        for api in ("graph", "legacy"):
            with self.subTest(api):
                child = self.pin(*both(), api=api, options=("--benchmark",), CONV_BWD_DATA_ALGO="0", CONV_BWD_FILTER_ALGO="0")
                self.assertEqual(set(child.choices()), {"set"})
                self.assertEqual({child.fields(line)["checksum"] for line in (0, 1)}, {self.output_of(DATA, 0), self.output_of(FILTER, 0)})


if __name__ == "__main__":
    children.main()
