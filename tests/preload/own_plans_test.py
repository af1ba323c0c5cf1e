"""Programs that don't take the heuristics' configurations as they are: they build their own from engine and knobs (XLA),
restore a plan from its text, or put it into a CUDA graph instead of executing it.

Would fail when: one of these ways gets around a pin without a word, or is not counted; our plan in another's place is given
the program's workspace where it needs more, or leaves memory behind; a program that drops the pin for its memory is left
with nothing; what stands in the log is not what ran.
"""
import children
from children import PROBLEM, STRIDED

NEEDS = 225792   # the workspace of GEMM here, engine 2; the framework's own choice, eng70, needs none


class OwnPlans(children.Case):
    def pin(self, request, *options, problems=(PROBLEM,), same=False, **more):
        return self.preloaded("convclient", *options, "--check", *problems, same=same, **{"CONV_FWD_ALGO": request, "CONVPIN_PROFILE": "off"} | more)

    def plan(self, problem=PROBLEM):
        """A plan's text, made without us."""
        name = f"plan{len(list(self.folder.glob('plan*')))}.json"
        self.write(name, self.bare("convclient", "--print", "json", problem).stdout)
        return name

    def output_of(self, algorithm, problem=PROBLEM):
        return self.bare("convclient", "--api", "legacy", "--fixed", str(algorithm), problem).fields()["checksum"]

    def test_own_configurations(self):
        for request, how in (("GEMM", "im2col_gemm"), ("eng0", "direct"), ("IMPLICIT_GEMM", "implicit_gemm")):
            for options in (("--own-config",), ("--own-config", "--from-json"), ("--own-config", "--cuda-graph-api"), ("--own-config", "--benchmark")):
                with self.subTest(request, options=options):
                    child = self.pin(request, *options)
                    self.assert_set(child, how)
                    self.assertEqual({choice["ran"].split("_")[0] for choice in child.of_type("choice")}, {child.fields()["ran"].split("_")[0]})

    def test_an_own_configuration_of_an_engine_that_the_list_does_not_give(self):
        """The program's filter leaves it another engine than the pin, and it builds that: the plan is given the pin's."""
        child = self.pin("eng38", "--own-config", "--deny-note", "tensor_core")
        self.assert_set(child)
        self.assertEqual(child.executed(), ["eng38"])

    def test_own_configurations_of_each_operation(self):
        problems = (f"backward_data {PROBLEM}", f"backward_filter {PROBLEM}", f"{PROBLEM} fused=add,relu")
        child = self.pin("eng0", "--own-config", problems=problems, CONV_BWD_DATA_ALGO="0", CONV_BWD_FILTER_ALGO="0")
        self.assert_set(child)
        self.assertEqual([(api, engine) for api, engine, _ in child.trace],
                         [("graph/backward_data", "eng25"), ("graph/backward_filter", "eng20"), ("graph", "eng0")])

    def test_an_own_configuration_that_does_not_fit_is_undone(self):
        for more in ((), ("--repeat", "3")):
            with self.subTest(more):
                options = ("--own-config", "--max-workspace", "1000", *more)
                child = self.pin("GEMM", *options, same=True)
                self.assert_not_set(child, "refused", "eng2 was built and then dropped by the program")
                self.assertEqual(child.trace, self.bare("convclient", *options, "--check", PROBLEM).trace)
        # for that problem alone
        child = self.pin("GEMM", "--own-config", "--max-workspace", "100000", problems=(PROBLEM, STRIDED))
        self.assertEqual(sorted(child.choices()), ["refused", "set"])

    def test_what_is_not_possible(self):
        for options in (("--own-config",), ("--from-json",), ("--plan", self.plan()), ("--cuda-graph-api",)):
            with self.subTest(options):
                child = self.pin("WINOGRAD", *options, same=True)
                self.assert_not_set(child, "unsupported", "eng12: not supported")
                child = self.pin("GEMM", *options, same=True, CONVPIN_WORKSPACE_LIMIT=NEEDS - 1)
                self.assert_not_set(child, "unsupported", f"eng2 needs a workspace of {NEEDS} bytes")

    def test_a_plan_that_was_pinned_before_it_became_a_text(self):
        for request, how in (("GEMM", "im2col_gemm"), ("3", "direct")):
            child = self.pin(request, "--from-json", "--repeat", "2")
            self.assert_set(child, how)
            self.assertEqual((len(child.trace), child.log[-1]["calls"]), (2, 2))

    def test_a_text_that_was_made_without_us(self):
        """Ours runs in its place, on a workspace of ours: the program gives none."""
        plan = self.plan()
        for request, algorithm, how in (("GEMM", 2, "im2col_gemm"), ("eng0", 3, "direct"), ("eng38", None, "implicit_gemm")):
            with self.subTest(request):
                child = self.pin(request, "--plan", plan, "--repeat", "3")
                self.assert_set(child, how)
                self.assertEqual(child.fields()["workspace"], "0")  # the program's own plan's
                if algorithm:
                    self.assertEqual(child.fields()["checksum"], self.output_of(algorithm))
                self.assertEqual((len(child.trace), child.log[-1]["calls"], child.log[-1]["pinned_calls"]), (3, 3, 3))
                choice, = child.of_type("choice")
                self.assertEqual(choice["ran"].split("_")[0], child.trace[0][1])
        left = self.pin("-1", "--plan", plan, same=True)
        self.assertEqual((left.choices(), left.executed()), (["left_alone"], ["eng70"]))

    def test_a_text_of_each_kind(self):
        kinds = {f"backward_data {PROBLEM}": "eng25", f"backward_filter {PROBLEM}": "eng20", STRIDED: "eng2",
                 "x=[2,16,14,14] w=[16,16,3,3] half nhwc pad=1,1": "eng2", "backward_data x=[1,4,5,6,7] w=[4,4,3,3,3] float ncdhw pad=1,1,1": "eng25", f"{PROBLEM} fused=add,relu": "eng36"}
        for problem, engine in kinds.items():
            with self.subTest(problem):
                fused = "fused" in problem
                child = self.pin("eng36" if fused else "GEMM", "--plan", self.plan(problem), problems=(problem,), CONV_BWD_DATA_ALGO="0", CONV_BWD_FILTER_ALGO="0")
                self.assert_set(child)
                self.assertEqual(child.executed(), [engine])
                text = child.of_type("problem")[0]["problem"]
                self.assertEqual(text, self.preloaded("convclient", problem, same=True).of_type("problem")[0]["problem"])

    def test_a_texts_profile(self):
        child = self.pin("GEMM", "--plan", self.plan(), CONVPIN_PROFILE="algorithms")
        rows = {c["algorithm"]: c for c in child.of_type("candidate")}
        self.assertEqual([n for n, c in rows.items() if c["requested"]], [2])
        self.assertEqual(child.trace[0][1], "eng2")
        self.assertEqual(child.choices(), ["set"])

    def test_where_ours_can_not_run_in_its_place(self):
        plan, bare = self.plan(), self.bare("convclient", "--check", PROBLEM)
        for variables, reason in (({"STANDIN_CAPTURING": "1"}, "the stream is being captured"),
                                  ({"STANDIN_FAIL_EXECUTE": "eng2"}, "eng2 was run, and failed"),
                                  ({"STANDIN_FREE_BYTES": "1000"}, f"eng2 needs a workspace of {NEEDS} bytes, .* no memory for it")):
            with self.subTest(reason):
                child = self.pin("GEMM", "--plan", plan, "--repeat", "3", same=True, **variables)
                self.assert_not_set(child, child.choices()[-1], reason)
                self.assertEqual((child.trace, child.fields()["checksum"]), (bare.trace * 3, bare.fields()["checksum"]))
                self.assertEqual((child.log[-1]["calls"], child.log[-1]["pinned_calls"]), (3, 0))
                env = children.environment(LD_PRELOAD=children.LIBRARY, CONV_FWD_ALGO="GEMM", CONVPIN_PROFILE="off", CONVPIN_ON_UNSUPPORTED="error", **variables)
                child = children.execute(("convclient", "--plan", plan, PROBLEM), self.folder, env)
                self.assertEqual((child.status, child.trace), (1, []), child.stderr)
                self.assertRegex(child.stderr, "convclient: .*NOT_SUPPORTED: convpin: rule CONV_FWD_ALGO asks for 2 .*" + reason.split(",")[0])
                self.assertEqual(child.stderr.count("convpin: error:"), 1)

    def test_memory_of_ours_is_given_back(self):
        child = self.pin("GEMM", "--plan", self.plan(), "--repeat", "50", STANDIN_FREE_BYTES=NEEDS * 2)  # else the third would fail
        self.assert_set(child, "im2col_gemm")

    def test_cuda_graphs(self):
        for request, how in (("GEMM", "im2col_gemm"), ("eng0", "direct")):
            child = self.pin(request, "--cuda-graph-api", "--repeat", "3")
            self.assert_set(child, how)
            self.assertEqual([api for api, _, _ in child.trace], ["populate", "graph", "update", "graph", "update", "graph"])
            self.assertEqual((child.log[-1]["calls"], child.log[-1]["pinned_calls"]), (3, 3))  # as often as it was put there
        plan = self.plan()
        child = self.pin("GEMM", "--cuda-graph-api", "--plan", plan, "--repeat", "3", same=True)
        self.assert_not_set(child, "refused", "the plan goes into a CUDA graph: the program's own does")
        self.assertEqual((child.log[-1]["calls"], child.executed()), (3, ["eng70"]))
        env = children.environment(LD_PRELOAD=children.LIBRARY, CONV_FWD_ALGO="GEMM", CONVPIN_ON_UNSUPPORTED="error")
        child = children.execute(("convclient", "--cuda-graph-api", "--plan", plan, PROBLEM), self.folder, env)
        self.assertEqual((child.status, child.trace), (1, []))
        self.assertRegex(child.stderr, "NOT_SUPPORTED: convpin: rule CONV_FWD_ALGO asks for 2 .*CUDA graph")

    def test_nothing_asked(self):
        plan = self.plan()
        for options in (("--own-config",), ("--from-json",), ("--plan", plan), ("--cuda-graph-api",), ("--own-config", "--from-json", "--cuda-graph-api")):
            with self.subTest(options):
                child = self.preloaded("convclient", *options, "--repeat", "3", PROBLEM)
                self.assertEqual((child.choices(), child.log[-1]["calls"]), (["left_alone"], 3))
                self.assertEqual(child.trace, self.bare("convclient", *options, "--repeat", "3", PROBLEM).trace)
                silent = self.preloaded("convclient", *options, "--repeat", "3", PROBLEM, log=None)
                self.assertEqual(silent.stderr, "")

    def test_threads(self):
        plan = self.plan()
        for options in (("--own-config",), ("--plan", plan), ("--from-json",)):
            with self.subTest(options):
                child = self.pin("GEMM", *options, "--threads", "4", "--repeat", "25")
                self.assert_set(child, "im2col_gemm")
                self.assertEqual((len(child.trace), child.log[-1]["pinned_calls"]), (100, 100))


if __name__ == "__main__":
    children.main()
