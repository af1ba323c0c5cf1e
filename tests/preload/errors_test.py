"""on_unsupported = "error" and on_miss = "error": the program sees a failing status, whose text names the rule.

Would fail when: a convolution runs as something else than its rule insists on, by whatever way the program comes; the
failure is silent, is said twice, or blames cuDNN or the program for our doing; the log has no choice that tells what was
asked and why nothing ran, or more than one; such a problem is said to wait for its profile; a rule that is met is reported
as failing; it is not counted among what failed; with fallback anything but the framework's own choice runs.
"""
import children
from children import PROBLEM, STRIDED

APIS = ("graph", "legacy")
WAYS = [("--api", "graph"), ("--api", "graph", "--benchmark"), ("--api", "graph", "--own-config"), ("--api", "graph", "--from-json"),
        ("--api", "graph", "--cuda-graph-api"), ("--api", "legacy"), ("--api", "legacy", "--benchmark"), ("--api", "legacy", "--fixed", "1")]


class Errors(children.Case):
    def rule(self, algo, on_unsupported="error", more=""):
        self.write("pins.toml", f'version = 1\n[[rule]]\nname = "stem"\nalgo = {algo}\non_unsupported = "{on_unsupported}"\n{more}')

    def run_with(self, *arguments, **variables):
        env = children.environment(LD_PRELOAD=children.LIBRARY, CONVPIN_CONFIG="pins.toml", CONVPIN_LOG="log.jsonl", **variables)
        (self.folder / "log.jsonl").unlink(missing_ok=True)
        child = children.execute(("convclient", *arguments), self.folder, env)
        child.log = children.read_log(self.folder / "log.jsonl")
        return child

    def assert_fails(self, child, reason, status=True):
        """One line of ours; and the program's own message, which it has from cudnnGetLastErrorString."""
        self.assertEqual((child.status, child.stdout), (1, ""), child.stderr)
        errors = [line for line in child.stderr.splitlines() if line.startswith("convpin: error:")]
        self.assertEqual(len(errors), 1, child.stderr)
        self.assertRegex(errors[0], reason)
        self.assertTrue(errors[0].endswith(": this convolution fails"))
        self.assertEqual(child.warnings(), [])
        if status:
            self.assertRegex(child.stderr, r"(?m)^convclient: .*NOT_SUPPORTED: convpin: .*" + reason)
        self.assertEqual((child.log[-1]["calls"], child.log[-1]["failed_problems"]), (0, 1))
        self.assertRegex(child.stderr, r"(?m)^convpin: 1 problem, 0 calls, 0 pinned, [01] unsupported, 1 failed$")
        choice, = child.of_type("choice")  # nothing ran
        self.assertEqual([choice[key] for key in ("ran", "engine", "algorithm", "workspace_bytes")], [None] * 4)
        self.assertRegex(choice["reason"], reason)

    def test_what_is_not_possible(self):
        self.rule('"WINOGRAD"')  # on neither API, on this GPU
        for way in WAYS:
            with self.subTest(way):
                child = self.run_with(*way, PROBLEM)
                self.assert_fails(child, r'rule stem asks for 6 \(WINOGRAD\), which is not possible here \(.*not supported.*\), '
                                         'and its on_unsupported is "error"')
                self.assertIn("convpin: 1 rule could not be met everywhere: stem\n", child.stderr)
                self.assertEqual(child.log[-1]["unsupported_problems"], 1)
                choice, = child.of_type("choice")
                self.assertEqual([choice[key] for key in ("choice", "api", "rule", "requested")], ["unsupported", way[1], "stem", "6 (WINOGRAD)"])
                legacy = "--legacy " if way[1] == "legacy" else ""
                self.assertEqual(choice["replay"], f"convpin replay {legacy}'{child.of_type('problem')[-1]['problem']}' --candidate 6")
                self.assertLessEqual({what.split("/")[0] for what, _, _ in child.trace}, {"legacy"} if "--benchmark" in way else set())

    def test_of_an_engine_that_is_compiled_at_run_time(self):
        """Such a pin goes to the program untried, but not where it must run: the failure has its reason."""
        self.rule('"eng2"')
        for way in (("--api", "graph"), ("--api", "graph", "--benchmark"), ("--api", "graph", "--own-config")):
            with self.subTest(way):
                child = self.run_with(*way, PROBLEM, STANDIN_COMPILED="eng2", STANDIN_FAIL_PLAN="eng2")
                self.assert_fails(child, r"rule stem asks for eng2, which is not possible here \(eng2: .*STANDIN_FAIL_PLAN")

    def test_the_same_with_fallback(self):
        self.rule('"WINOGRAD"', "fallback")
        for way in WAYS:
            if "--benchmark" in way:
                continue  # the fastest differs from run to run
            with self.subTest(way):
                child = self.run_with(*way, PROBLEM)
                bare = self.bare("convclient", *way, PROBLEM)
                self.assertEqual((child.status, child.stdout, child.trace), (0, bare.stdout, bare.trace), child.stderr)
                self.assertEqual(child.stderr.count("convpin: warning:"), 1, child.stderr)

    def test_what_is_possible_is_no_error(self):
        self.rule('"GEMM"')
        for way in WAYS:
            with self.subTest(way):
                child = self.run_with(*way, PROBLEM, STRIDED)
                self.assertEqual(child.status, 0, child.stderr)
                self.assertNotRegex(child.stderr, "error|warning|not be met")
                self.assertEqual(set(child.choices()), {"set"})
                if way[1] == "graph":
                    self.assertEqual({how for api, _, how in child.trace}, {"im2col_gemm"})

    def test_the_programs_filter_drops_it(self):
        self.rule('"eng38"')
        for more in ((), ("--benchmark",), ("--own-config",)):
            with self.subTest(more):
                child = self.run_with("--deny-note", "tensor_core", *more, PROBLEM)
                self.assert_fails(child, "rule stem asks for eng38, .*eng38.* was dropped by the program itself", status=False)
                self.assertEqual(child.choices(), ["refused"])
                self.assertEqual(child.trace, [])

    def test_it_does_not_fit(self):
        self.rule('"GEMM"')
        for way in (("--api", "graph"), ("--api", "graph", "--benchmark"), ("--api", "legacy"), ("--api", "legacy", "--benchmark")):
            with self.subTest(way):
                child = self.run_with(*way, "--max-workspace", "1000", PROBLEM)
                self.assert_fails(child, r"rule stem asks for 2 \(GEMM\), .*(built and then dropped by the program|gave a workspace of \d+ bytes)",
                                  status=way[1] == "legacy")
        self.assert_fails(self.run_with("--own-config", "--max-workspace", "1000", PROBLEM), "rule stem asks for 2", status=False)
        self.rule('"GEMM"', more="workspace_limit = 1000\n")
        for api in APIS:
            self.assert_fails(self.run_with("--api", api, PROBLEM), "needs a workspace of 225792 bytes, more than the limit of 1000")

    def test_its_plan_or_execution_fails(self):
        self.rule('"GEMM"')
        self.assert_fails(self.run_with(PROBLEM, STANDIN_FAIL_PLAN="eng2"), "eng2: not supported")
        child = self.run_with(PROBLEM, STANDIN_FAIL_EXECUTE="eng2")
        self.assert_fails(child, "eng2 was built, but failed to run", status=False)
        self.assertRegex(child.stderr, "convclient: .*EXECUTION_FAILED: stand-in")  # cuDNN's own words stay the program's
        self.assertEqual(child.trace, [])
        for repeat in ("1", "3"):
            child = self.run_with("--api", "legacy", "--fixed", "1", "--repeat", repeat, PROBLEM, STANDIN_FAIL_EXECUTE="algo2")
            self.assert_fails(child, "execution failed")
            self.assertEqual(child.trace, [])

    def test_one_of_several_problems(self):
        self.rule('"WINOGRAD"', more='problem = "stride=2,2"\n')
        for api in APIS:
            with self.subTest(api):
                child = self.run_with("--api", api, PROBLEM, STRIDED, PROBLEM)
                self.assertEqual(child.status, 1)
                self.assertEqual(child.stdout.count("\n"), 2)
                self.assertEqual(child.stderr.count("convpin: error:"), 1)
                self.assertIn("convpin: 2 problems, 2 calls, 0 pinned, 1 unsupported, 1 failed\n", child.stderr)
                self.assertEqual(child.trace, self.bare("convclient", "--api", api, PROBLEM, PROBLEM).trace)

    def test_what_fails_does_not_wait_for_its_profile(self):
        self.rule('"WINOGRAD"', more='problem = "stride=2,2"\n')
        for api in APIS:
            with self.subTest(api):
                child = self.run_with("--api", api, PROBLEM, STRIDED, CONVPIN_PROFILE="algorithms")
                self.assertEqual(child.stderr.count("this convolution fails"), 1)
                self.assertEqual({c["problem_id"] for c in child.of_type("candidate")}, {1})
                self.assertNotIn("never profiled", child.stderr)

    def test_a_forked_child_logs_its_own(self):
        run = "convlib.convlib_run(b'x')\n"
        for name, choice in (("rule", "unsupported"), ("denials", "left_alone")):
            self.rule('"WINOGRAD"')
            if name == "denials":
                self.write("pins.toml", "version = 1\n" + "".join(f'[[deny]]\noperation = "forward"\nalgo = {n}\n' for n in range(8)))
            env = children.environment(LD_PRELOAD=children.LIBRARY, CONVPIN_CONFIG="pins.toml", CONVPIN_LOG=name + "-%p.jsonl")
            child = children.execute(children.on_python(run + "if os.fork() == 0:\n    " + run + "else: os.wait()\n"), self.folder, env)
            logs = [children.read_log(path) for path in self.folder.glob(name + "-*.jsonl")]
            self.assertEqual(len(logs), 2, child.stderr)
            for log in logs:
                failed = [r for r in log if r["type"] == "choice"]
                self.assertTrue(failed, log)
                self.assertEqual({(r["choice"], r["ran"]) for r in failed}, {(choice, None)})
                self.assertLessEqual({r["problem_id"] for r in failed}, {r["problem_id"] for r in log if r["type"] == "problem"})

    def test_the_settings_default_and_the_rules_own_word(self):
        self.write("pins.toml", 'version = 1\n[defaults]\non_unsupported = "error"\n[[rule]]\nname = "stem"\nalgo = "WINOGRAD"\n')
        self.assert_fails(self.run_with(PROBLEM), "rule stem asks for 6")
        self.write("pins.toml", 'version = 1\n[defaults]\non_unsupported = "error"\n[[rule]]\nalgo = "WINOGRAD"\non_unsupported = "fallback"\n')
        self.assertEqual(self.run_with(PROBLEM).status, 0)
        child = children.execute(("convclient", PROBLEM), self.folder,
                                 children.environment(LD_PRELOAD=children.LIBRARY, CONV_FWD_ALGO="WINOGRAD", CONVPIN_ON_UNSUPPORTED="error"))
        self.assertRegex(child.stderr, "rule CONV_FWD_ALGO asks for 6")
        self.assertEqual(child.status, 1)

    def test_what_no_rule_covers(self):
        self.write("pins.toml", 'version = 1\n[defaults]\non_miss = "error"\n[[rule]]\nproblem = "stride=2,2"\nalgo = ["GEMM", -1]\n')
        for way in WAYS:
            with self.subTest(way):
                child = self.run_with(*way, STRIDED)
                self.assertEqual(child.status, 0, child.stderr)
                child = self.run_with(*way, PROBLEM)
                self.assert_fails(child, 'no rule covers it, and defaults.on_miss is "error"')
                self.assertEqual([(c["choice"], c["rule"], c["requested"]) for c in child.of_type("choice")], [("left_alone", None, None)])
                self.assertIn("convpin: 1 problem that no rule covers\n", child.stderr)
                child = self.run_with(*way, PROBLEM, CONVPIN_ON_MISS="leave")
                self.assertEqual(child.status, 0, child.stderr)

    def test_minus_one_covers(self):
        self.write("pins.toml", 'version = 1\n[defaults]\non_miss = "error"\n[[rule]]\noperation = "any"\nalgo = -1\n')
        for way in WAYS:
            if "--benchmark" not in way:
                child = self.run_with(*way, PROBLEM)
                self.assertEqual((child.status, child.stdout), (0, self.bare("convclient", *way, PROBLEM).stdout), child.stderr)
        self.assertEqual(self.run_with(f"backward_data {PROBLEM}", f"backward_filter {PROBLEM}", f"{PROBLEM} fused=add,relu").status, 0)


if __name__ == "__main__":
    children.main()
