"""Graphs with more than a convolution in them, and graphs with none.

Would fail when: an engine tag doesn't pin a fused graph, or an algorithm's number is taken for one of its engines; the text
of a problem leaves out what is around the convolution, or the type of what it ends in; a graph that holds no convolution, or two, is counted, profiled,
denied or changed.
"""
import children
from children import PROBLEM

FUSED = PROBLEM + " fused=add,relu"
STATISTICS = "statistics behind"
# As PyTorch builds them: what the convolution writes stays in float, a tensor and a bias of the inputs' type are added to it,
# and what relu writes has that type again.
LIKE_PYTORCH = ["forward x=[2,16,14,14] w=[16,16,3,3] %s nhwc pad=1,1 stride=1,1 dilation=1,1 groups=1 ytype=float otype=%s fused=add,add,relu"
                % (dtype, dtype) for dtype in ("half", "bfloat16")]


class Fused(children.Case):
    def pin(self, request, *options, problems=(FUSED,), same=False, **more):
        return self.preloaded("convclient", *options, "--check", *problems, same=same, **{"CONV_FWD_ALGO": request, "CONVPIN_PROFILE": "off"} | more)

    def test_engine_tags(self):
        for request, engine, how in (("eng36", "eng36", "im2col_gemm"), ("eng0", "eng0", "direct")):
            for options in ((), ("--benchmark",), ("--own-config",), ("--from-json",)):
                with self.subTest(request, options=options):
                    child = self.pin(request, *options)
                    self.assert_set(child, how)
                    self.assertEqual(child.executed(), [engine])
                    choice = child.of_type("choice")[0]
                    self.assertEqual((choice["algorithm"], choice["algorithm_name"]), (None, None))
        exact = self.bare("convclient", "--check", FUSED).fields()["ran"]
        self.assertEqual(self.pin(exact, same=True).choices(), ["set"])

    def test_algorithms_are_the_bare_convolutions(self):
        for request in ("2", "GEMM", "0", "WINOGRAD"):
            child = self.pin(request, same=True)
            self.assert_not_set(child, "unsupported", r"numbers its engines apart, .* an engine can be named \(eng10\)")
        self.write("pins.toml", 'version = 1\n[[rule]]\nalgo = ["GEMM", "eng36"]\n')
        child = self.preloaded("convclient", "--check", PROBLEM, FUSED, same=False, CONVPIN_CONFIG="pins.toml")
        self.assert_set(child, "im2col_gemm")
        self.assertEqual(child.executed(), ["eng2", "eng36"])

    def test_engines_that_are_not_possible(self):
        for request, reason in (("eng1", "eng1: not supported: arch mismatch"), ("eng999", "eng999: not supported .*")):
            self.assert_not_set(self.pin(request, same=True), "unsupported", reason)

    def test_the_legacy_call(self):
        for options in ((), ("--fixed", "1"), ("--benchmark",)):
            child = self.pin("GEMM", "--api", "legacy", *options)
            self.assertEqual({c["choice"] for c in child.of_type("choice")}, {"set"})
            self.assertEqual(child.trace[-1][1:], ("2", "im2col_gemm"))
            ran = {p["problem_id"]: p["problem"] for p in child.of_type("problem")}
            self.assertIn("fused=add,relu", ran[child.of_type("choice")[-1]["problem_id"]])

    def test_the_profile(self):
        child = self.pin("eng36", CONVPIN_PROFILE="engines")
        rows = {c["engine"].split("_")[0]: c for c in child.of_type("candidate") if c["status"] in ("ok", "too_slow") and c["engine"]}
        self.assertLessEqual({"eng0", "eng36", "eng44"}, set(rows))
        self.assertTrue(rows["eng36"]["requested"])
        self.assertTrue(rows["eng44"]["framework_choice"])
        self.assertEqual({(c["algorithm"], c["kernels"]) for c in rows.values()}, {(None, None)})  # no GPU counts them here
        self.assertLess(max(c["error"] for c in rows.values() if c["status"] == "ok"), 1e-5)
        numbers = self.pin("eng36", CONVPIN_PROFILE="algorithms")
        self.assertEqual({c["engine"].split("_")[0] for c in numbers.of_type("candidate")}, {"eng36", "eng44"})

    def test_a_policy(self):
        self.write("pins.toml", 'version = 1\n[profile]\nwarmup = 0\nrepeats = 1\n[[rule]]\npolicy = "fastest"\nmin_gain = 0.5\n')
        slow = ",".join(f"eng{n}:15" for n in range(80) if n != 36)
        child = self.preloaded("convclient", "--check", FUSED, same=False, CONVPIN_CONFIG="pins.toml", STANDIN_SLOW=slow)
        self.assertEqual((child.trace[-1][1], child.choices()), ("eng36", ["set"]))

    def test_what_is_around_a_convolution(self):
        child = self.preloaded("fused_graphs")
        texts = [record["problem"].split("groups=1 ")[-1] for record in child.of_type("problem")]
        self.assertEqual(texts, ["fused=pre.relu", "fused=gen_stats", "ytype=float fused=reduction", "fused=relu",
                                 "ytype=float otype=half fused=relu"])  # two convolutions: no text
        self.assertFalse(child.of_type("choice"))
        silent = self.preloaded("fused_graphs", log=None)
        self.assertEqual(silent.stderr, "")

    def test_the_type_of_the_last_tensor(self):
        """Read from descriptors or from a plan's text, it is in the problem's."""
        for options in ((), ("--benchmark",), ("--own-config",), ("--from-json",)):
            with self.subTest(options):
                child = self.pin("eng36", *options, problems=LIKE_PYTORCH)
                self.assert_set(child, "im2col_gemm")
                self.assertEqual([p["problem"] for p in child.of_type("problem")], LIKE_PYTORCH)

    def test_rules_for_the_type_of_the_last_tensor(self):
        """A rule that was written before the text had the word is for any."""
        of_before = LIKE_PYTORCH[0].replace(" otype=half", "")
        for text, choice in ((of_before, "set"), (LIKE_PYTORCH[0], "set"), (of_before + " otype=float", None), (LIKE_PYTORCH[1], None)):
            with self.subTest(text):
                self.write("pins.toml", f'version = 1\n[[rule]]\nproblem = "{text}"\nalgo = "eng36"\n')
                child = self.preloaded("convclient", "--check", LIKE_PYTORCH[0], same=False, CONVPIN_CONFIG="pins.toml")
                self.assertEqual(child.executed() == ["eng36"], choice == "set")
                self.assertEqual("set" in child.choices(), choice == "set", child.stderr)

    def graphs(self, **variables):
        env = children.environment(LD_PRELOAD=children.LIBRARY, CONVPIN_PROFILE="off", **variables)
        child = children.execute(("fused_graphs",), self.folder, env)
        self.assertEqual(child.status, 0, child.stderr)
        return dict(line.split(": ", 1) for line in child.stdout.splitlines()), child

    def test_a_graph_that_is_only_known_by_name_is_pinned_too(self):
        bare = dict(line.split(": ", 1) for line in self.bare("fused_graphs").stdout.splitlines())
        count, first = bare[STATISTICS].split(" configurations, ")
        self.write("deny.toml", f'version = 1\n[[deny]]\noperation = "forward"\ntag = "{first}"\nproblem = "fused=gen_stats"\n')
        denied, _ = self.graphs(CONVPIN_CONFIG="deny.toml")
        left, second = denied[STATISTICS].split(" configurations, ")
        self.assertLess(int(left), int(count))
        self.assertNotEqual(second, first)
        pinned, child = self.graphs(CONV_FWD_ALGO=second)
        self.assertEqual(pinned[STATISTICS].split(", ")[1], second, child.stderr)
        self.assertEqual({name: text for name, text in pinned.items() if name != STATISTICS},
                         {name: text for name, text in bare.items() if name != STATISTICS})

    def test_errors_are_for_what_holds_one_convolution(self):
        graphs, child = self.graphs(CONVPIN_ON_MISS="error", CONV_BWD_DATA_ALGO="1")
        self.assertEqual(child.stderr.count("convpin: error:"), 5)
        self.assertIn("no rule covers it", graphs[STATISTICS])
        self.assertNotIn("no rule covers it", graphs["two convolutions"])

    def test_graphs_without_a_convolution(self):
        self.write("deny.toml", "version = 1\n[defaults]\non_miss = \"error\"\n" +
                   "".join(f'[[deny]]\noperation = "forward"\nengine = {n}\n' for n in range(100)))
        bare = self.bare("other_graphs")
        for variables in ({}, {"CONVPIN_PROFILE": "engines"}, {"CONV_FWD_ALGO": "eng0", "CONVPIN_PROFILE": "engines"},
                          {"CONVPIN_CONFIG": "deny.toml"}, {"CONV_FWD_ALGO": "GEMM", "CONVPIN_ON_UNSUPPORTED": "error"}):
            with self.subTest(variables):
                child = self.preloaded("other_graphs", **variables)
                self.assertEqual(child.trace, bare.trace)
                self.assertLessEqual({record["type"] for record in child.log}, {"header", "end"})
                self.assertNotRegex(child.stderr, "warning|error:|problem")


if __name__ == "__main__":
    children.main()
