"""The ways in which a framework comes to an algorithm: graph or legacy API, benchmark on or off, a fixed algorithm
(a deterministic PyTorch), bias and activation fused.

Would fail when: a pin holds in one of them only; a benchmarking program times and takes something else than the pin; a
graph with fused operations, whose engines are numbered apart, is given the algorithm table of the plain convolution.
"""
import children
from children import LEGACY_RUNS, PROBLEM


class FourCases(children.Case):
    def pin(self, request, *options, same=False, **more):
        return self.preloaded("convclient", "--check", *options, PROBLEM, same=same, CONV_FWD_ALGO=request,
                              CONVPIN_PROFILE="off", **more)

    def test_graph_and_legacy_with_and_without_benchmark(self):
        for api in ("graph", "legacy"):
            for benchmark in ([], ["--benchmark"]):
                for number in (0, 2, 3):
                    with self.subTest(api=api, benchmark=benchmark, number=number):
                        child = self.pin(number, "--api", api, *benchmark)
                        self.assertEqual(child.choices(), ["set"])
                        self.assertEqual(child.trace[-1][2], LEGACY_RUNS[number])
                        if api == "graph":  # nothing else was even timed: no other plan was built
                            self.assert_set(child, LEGACY_RUNS[number])

    def test_benchmark_times_the_whole_family(self):
        child = self.pin(1, "--benchmark")
        self.assertEqual(set(child.choices()), {"set"})
        self.assertEqual({how for _, _, how in child.trace}, {"implicit_gemm"})
        self.assertNotIn("eng28", child.executed())  # the same kernel in the stand-in, but not of the family

    def test_an_impossible_pin_leaves_the_benchmark_as_it_was(self):
        bare = self.bare("convclient", "--check", "--benchmark", PROBLEM)
        child = self.pin(6, "--benchmark")
        self.assert_not_set(child, "unsupported", "arch mismatch")
        self.assertEqual(set(child.executed()), set(bare.executed()))

    def test_a_fixed_algorithm(self):
        for number in (0, 2, 4, 7):
            with self.subTest(number):
                child = self.pin(number, "--api", "legacy", "--fixed", "1")
                self.assert_set(child, LEGACY_RUNS[number])
                self.assertEqual(child.executed(), [str(number)])
        self.assert_not_set(self.pin(6, "--api", "legacy", "--fixed", "1", same=True), "unsupported", "not supported")

    def test_repeated_calls_are_all_pinned_and_counted(self):
        for api in ("graph", "legacy"):
            with self.subTest(api):
                child = self.pin(2, "--api", api, "--repeat", "50")
                self.assert_set(child, "im2col_gemm")
                self.assertEqual(len(child.trace), 50)
                self.assertEqual((child.log[-1]["calls"], child.log[-1]["pinned_calls"]), (50, 50))

    def test_bias_and_relu_on_the_legacy_api(self):
        for options in ([], ["--benchmark"], ["--fixed", "1"]):
            with self.subTest(options):
                child = self.pin(2, "--api", "legacy", "--bias-relu", *options)
                self.assertEqual(child.choices()[-1:], ["set"])
                self.assertEqual(child.trace[-1][2], "im2col_gemm")
                self.assertIn("fused=add,relu", [p["problem"] for p in child.of_type("problem")][-1])

    def test_bias_and_relu_on_the_graph_api(self):
        bare = self.bare("convclient", "--check", "--bias-relu", PROBLEM)
        for request in ("2", "DIRECT", "0"):
            with self.subTest(request):
                child = self.pin(request, "--bias-relu", same=True)
                self.assert_not_set(child, "unsupported", "fused")
                self.assertEqual(child.trace, bare.trace)
        child = self.pin("eng36", "--bias-relu")  # im2col in this graph (tests/standin/README.md)
        self.assert_set(child, "im2col_gemm")
        self.assertEqual(child.executed(), ["eng36"])

    def test_bias_and_relu_with_benchmark(self):
        bare = self.bare("convclient", "--check", "--bias-relu", "--benchmark", PROBLEM)
        child = self.pin("2", "--bias-relu", "--benchmark")
        self.assert_not_set(child, "unsupported", "fused")
        self.assertEqual(set(child.executed()), set(bare.executed()))
        child = self.pin("eng36", "--bias-relu", "--benchmark")
        self.assert_set(child, "im2col_gemm")


if __name__ == "__main__":
    children.main()
