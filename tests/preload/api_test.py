"""The C API: what a program changes while it runs is what runs, from the next execution of a plan that it has kept.

Would fail when: a plan that was built before a change goes on as it was, or one that was built under a pin keeps it after
the pin is gone; another algorithm's output comes out; a change breaks a capture, a program without memory, or one with
several threads; a refusal has no reason; a call returns an error and has changed something; a workspace of ours stays.
"""
import json
import unittest

import children
from children import LEGACY_RUNS, PROBLEM

APIS = ("graph", "legacy")
# What the stand-in calls an algorithm of a backward operation, and a number that both APIs have for it.
BACKWARD = {"backward_data": {0: "scatter", 1: "implicit_gemm"}, "backward_filter": {0: "scatter", 1: "implicit_gemm"}}


class Api(children.Case):
    def steps(self, *steps, api="graph", problem=PROBLEM, log="log.jsonl", preload=True, status=0, **variables):
        """Runs the client. `values`: what came of each step, in order."""
        arguments = ["repin", *(["--legacy"] if api == "legacy" else []), problem, *steps]
        for old in self.folder.glob("*.jsonl"):
            old.unlink()
        env = children.environment(LD_PRELOAD=children.LIBRARY if preload else "", CONVPIN_LOG=log if preload else "", **variables)
        child = children.execute(arguments, self.folder, env)
        self.assertEqual(child.status, status, child.stdout + child.stderr)
        for path in self.folder.glob("*.jsonl"):
            child.log = children.read_log(path)
            self.check_log(child.log)
        child.values = [line.split(": ", 1) for line in child.stdout.splitlines() if ": " in line]
        child.checksums = [value for step, value in child.values if step in ("run", "kept")]
        child.how = [how for _, _, how in child.trace]
        return child

    def problems(self, child):
        return json.loads(child.values[-1][1])

    def output_of(self, algorithm, problem=PROBLEM):
        return self.bare("convclient", "--api", "legacy", "--fixed", str(algorithm), problem).fields()["checksum"]

    def own(self, api, problem=PROBLEM):
        """What the bare program runs: its trace line, and the output."""
        child = self.steps("run", api=api, problem=problem, preload=False)
        return child.trace[0], child.checksums[0]

    def test_one_plan_under_several_algorithms(self):
        for api in APIS:
            with self.subTest(api):
                trace, checksum = self.own(api)
                numbers = [0, 2, 3, 1, 2] + ([5, 7, 4] if api == "legacy" else [])
                steps = ["enable", "run"]
                for number in numbers:
                    steps += ["set", "forward", str(number), "run"]
                child = self.steps(*steps, "clear", "-", "run", "allocations", api=api)
                self.assertEqual(child.how[1:-1], [LEGACY_RUNS[number] for number in numbers], child.stderr)
                self.assertEqual(child.checksums[1:-1], [self.output_of(number) for number in numbers])
                self.assertEqual((child.trace[0], child.trace[-1]), (trace, trace))
                self.assertEqual((child.checksums[0], child.checksums[-1]), (checksum, checksum))
                self.assertEqual(child.values[-1], ["allocations", "0"])
                self.assertEqual([r["calls"] for r in child.log if r["type"] == "end"], [len(numbers) + 2])
                self.assertEqual(len([c for c in child.of_type("choice") if c["choice"] == "set"]), len(set(numbers)))
                self.assertEqual({c["rule"] for c in child.of_type("choice") if c["choice"] == "set"}, {"convpin_set_algo"})

    def test_backward_operations(self):
        for operation, runs in BACKWARD.items():
            problem = operation + " " + PROBLEM
            for api in APIS:
                with self.subTest(operation, api=api):
                    trace, checksum = self.own(api, problem)
                    child = self.steps("enable", "run", "set", operation, "0", "run", "set", "any", "1", "run", "clear", operation, "run",
                                       api=api, problem=problem)
                    self.assertEqual(child.how[1:3], [runs[0], runs[1]], child.stderr)
                    self.assertEqual(child.checksums[1:3], [self.output_of(0, problem), self.output_of(1, problem)])
                    self.assertEqual((child.trace[0], child.trace[3]), (trace, trace))
                    self.assertEqual((child.checksums[0], child.checksums[3]), (checksum, checksum))

    def test_names_tags_and_lists(self):
        child = self.steps("set", "fwd", "CUDNN_CONVOLUTION_FWD_ALGO_GEMM", "run", "set", "fprop", "eng0", "run",
                           "set", "forward", "6, eng999, direct", "run", "set", "forward", "6,-1", "run")
        self.assertEqual(child.how[:3], ["im2col_gemm", "direct", "direct"])
        self.assertEqual(child.trace[3], self.own("graph")[0])
        self.assertEqual(child.warnings(), [])

    def test_the_environments_pin(self):
        """What the program sets comes before it, -1 too, and without it the environment's rule is in force again."""
        for api in APIS:
            with self.subTest(api):
                trace, _ = self.own(api)
                child = self.steps("run", "set", "forward", "0", "run", "set", "forward", "-1", "run", "clear", "forward", "run", api=api,
                                   CONV_FWD_ALGO="2", CONVPIN_PROFILE="off")
                self.assertEqual(child.how[:2], ["im2col_gemm", "implicit_gemm"])
                self.assertEqual((child.trace[2], child.how[3]), (trace, "im2col_gemm"))

    def test_a_plan_that_was_built_under_a_pin(self):
        for api in APIS:
            with self.subTest(api):
                trace, checksum = self.own(api)
                child = self.steps("set", "forward", "GEMM", "run", "clear", "forward", "run", "set", "forward", "6", "run", "build", "run",
                                   api=api)
                self.assertEqual(child.how[0], "im2col_gemm")
                self.assertEqual(child.trace[1:], [trace] * 3, child.stderr)
                self.assertEqual(child.checksums[1:], [checksum] * 3)

    def test_variant_packs_that_are_kept(self):
        child = self.steps("enable", "kept", "set", "forward", "GEMM", "kept", "kept", "clear", "-", "kept")
        self.assertEqual(child.how[1:3], ["im2col_gemm"] * 2, child.stderr)
        self.assertEqual(child.trace[3], child.trace[0])
        # Made before anybody looked: a plan that needs more workspace than the program's can't know where the data lies.
        child = self.steps("run", "pack", "set", "forward", "GEMM", "kept", "set", "forward", "DIRECT", "kept", "set", "forward", "2", "run", "problems")
        self.assertEqual(child.how, [child.how[0], child.how[0], "direct", "im2col_gemm"], child.stderr)
        self.assertEqual(len(child.warnings()), 1)
        self.assertIn("was not seen", child.warnings()[0])
        self.assertEqual([r["reason"] is not None for r in child.of_type("choice")], [False, True, False, False])
        self.assertEqual(self.problems(child)[0]["choice"], "set")

    def test_inside_a_capture(self):
        for api in APIS:
            with self.subTest(api):
                trace, _ = self.own(api)
                child = self.steps("enable", "run", "set", "forward", "GEMM", "env", "STANDIN_CAPTURING=1", "run", "problems", "env", "STANDIN_CAPTURING=0",
                                   "run", "env", "STANDIN_CAPTURING=1", "run", "env", "STANDIN_CAPTURING=0", "run", api=api)
                self.assertEqual(child.trace, [trace, trace, child.trace[2], trace, child.trace[2]], child.stderr)
                self.assertEqual(child.how[2], "im2col_gemm")
                self.assertEqual(len(child.warnings()), 1, child.stderr)
                self.assertIn("captured", child.warnings()[0])
                self.assertIn("captured", " ".join(str(r["reason"]) for r in child.of_type("choice")))
                then = json.loads(next(value for step, value in child.values if step == "problems"))
                self.assertEqual(then[0]["choice"], "refused")

    def test_what_is_not_possible(self):
        for api in APIS:
            with self.subTest(api):
                child = self.steps("enable", "run", "set", "forward", "6", "run", "problems", api=api)
                self.assertEqual(child.trace[1], child.trace[0])
                problem = self.problems(child)[0]
                self.assertEqual((problem["choice"], problem["requested"]), ("unsupported", "6 (WINOGRAD)"))
                self.assertIn("not supported", problem["reason"])
                self.assertEqual(len(child.warnings()), 1)
        child = self.steps("enable", "run", "set", "forward", "eng2", "run", "problems", api="legacy")
        self.assertIn("engine of the graph API", self.problems(child)[0]["reason"])

    def test_no_memory_for_the_workspace(self):
        for api in APIS:
            with self.subTest(api):
                child = self.steps("enable", "run", "set", "forward", "GEMM", "env", "STANDIN_FREE_BYTES=1000", "run", "problems",
                                   "env", "STANDIN_FREE_BYTES=100000000", "run", api=api)
                self.assertEqual(child.trace[1], child.trace[0], child.stderr)
                then = json.loads(next(value for step, value in child.values if step == "problems"))
                self.assertEqual(then[0]["choice"], "refused")
                self.assertIn("no memory", then[0]["reason"])
                self.assertEqual(child.how[2], "im2col_gemm")  # no longer short of it

    def test_what_fails_when_it_runs(self):
        for api, fault in (("graph", "eng2"), ("legacy", "algo2")):
            with self.subTest(api):
                child = self.steps("enable", "run", "set", "forward", "GEMM", "run", "run", "problems", "clear", "-", "run", api=api, STANDIN_FAIL_EXECUTE=fault)
                self.assertEqual(child.trace, [child.trace[0]] * 4, child.stderr)
                self.assertEqual(len(set(child.checksums)), 1)
                self.assertEqual(len(child.warnings()), 1)
                self.assertIn("STANDIN_FAIL_EXECUTE", child.warnings()[0])

    def test_rules(self):
        rules = ('[[rule]]\nname = "small"\nproblem = "w=[16,16,3,3]"\nalgo = ["WINOGRAD", "GEMM"]\n'
                 '[[rule]]\nalgo = "DIRECT"\n')
        for api in APIS:
            with self.subTest(api):
                child = self.steps("run", "rules", rules, "run", "set", "forward", "0", "run", "clear", "forward", "run", "rules", "", "run", "rules",
                                   "version = 1\n[[rule]]\nalgo = 3", "run", "problems", api=api)
                self.assertEqual(child.how[1:4] + child.how[5:], ["im2col_gemm", "implicit_gemm", "im2col_gemm", "direct"], child.stderr)
                self.assertEqual(child.trace[4], child.trace[0])
                self.assertEqual({c["rule"] for c in child.of_type("choice") if c["ran"] in ("eng2", "2 GEMM")}, {"small"})
                self.assertEqual(self.problems(child)[0]["rule"], "convpin_set_rules:2:1")

    def test_a_rule_that_must_be_met(self):
        must = '[[rule]]\nname = "must"\nalgo = 6\non_unsupported = "error"'
        for api in APIS:
            with self.subTest(api):
                child = self.steps("enable", "run", "rules", must, "run", "run", "clear", "-", "run", api=api)
                for checksum in child.checksums[1:3]:
                    self.assertRegex(checksum, "^failed: .*rule must")
                self.assertEqual(child.checksums[3], child.checksums[0])
                self.assertEqual(child.stderr.count("this convolution fails"), 1)
                self.assertEqual([(c["choice"], c["ran"] is None) for c in child.of_type("choice")][:2], [("left_alone", False), ("unsupported", True)])
                self.assertEqual(child.log[-1]["failed_problems"], 0)  # it has run
                self.assertEqual([(c["choice"], c["ran"] is None) for c in child.of_type("choice")][2:], [("left_alone", False)])
                child = self.steps("enable", "run", "rules", must, "run", api=api)
                self.assertEqual((child.log[-1]["calls"], child.log[-1]["failed_problems"]), (1, 0))  # it ran once
                child = self.steps("enable", "run", "rules", must, "run", "rules", must.replace("error", "fallback"), "run", api=api)
                self.assertEqual(len(child.warnings()), 1, child.stderr)  # another thing to say than that it fails
                child = self.steps("rules", must, "run", "problems", api=api)
                self.assertEqual([(p["choice"], p["rule"], p["ran"]) for p in self.problems(child)], [("unsupported", "must", [])])

    def test_a_policy(self):
        child = self.steps("enable", "run", "rules", '[[rule]]\npolicy = "least_memory"', "run", "set", "forward", "2", "run", "clear", "forward", "run")
        self.assertEqual(child.checksums[2], self.output_of(2))
        self.assertEqual(child.checksums[1], child.checksums[3])
        self.assertIn("the least memory", [c["requested"] for c in child.of_type("choice")])
        self.assertTrue(child.of_type("try"))
        self.assertEqual(len(child.of_type("try")), len({json.dumps(r) for r in child.of_type("try")}))  # it was profiled once

    def test_plans_from_before_it_was_enabled(self):
        """Nothing asked for anything: they stay as they are, and what is built later is watched."""
        child = self.steps("run", "set", "forward", "GEMM", "run", "build", "run", "problems", log="")
        self.assertEqual(child.trace[1], child.trace[0])
        self.assertEqual(child.how[2], "im2col_gemm")
        self.assertEqual([(p["choice"], p["calls"]) for p in self.problems(child)], [("set", 1)])

    def test_labels(self):
        for api in APIS:
            with self.subTest(api):
                child = self.steps("enable", "run", "label", "layer1.0.conv2", "run", "run", "label", "layer2.conv1", "set", "forward", "6", "run",
                                   "label", "-", "run", "problems", api=api)
                self.assertEqual([r["label"] for r in child.of_type("label")], ["layer1.0.conv2", "layer2.conv1"])
                self.assertEqual(self.problems(child)[0]["labels"], ["layer1.0.conv2", "layer2.conv1"])
                self.assertIn("groups=1 [layer2.conv1]", child.warnings()[0])

    def test_many_labels(self):
        steps = [word for i in range(70) for word in ("label", f"m{i}", "run")]
        child = self.steps("enable", *steps, "problems")
        self.assertEqual(self.problems(child)[0]["labels"], [f"m{i}" for i in range(64)])

    def test_a_label_in_the_table(self):
        child = self.steps("label", "stem", "run", CONVPIN_PROFILE="algorithms")
        self.assertIn("groups=1 [stem]", child.stderr)

    def test_threads(self):
        """Several execute, every second one the same plan, while the rules change: each result is one of the algorithms'."""
        of = {self.output_of(number) for number in (0, 1, 2, 3)}
        for api in APIS:
            for again in range(3):
                with self.subTest(api, again=again):
                    child = self.steps("enable", "threads", "4", "60", "clear", "-", "run", "allocations", api=api)
                    seen = set(child.values[1][1].split())
                    self.assertLessEqual(seen, of, child.stdout + child.stderr)
                    self.assertLessEqual({how for _, _, how in child.trace}, {"implicit_gemm", "im2col_gemm", "direct"})
                    self.assertEqual(child.trace[-1], self.own(api)[0])
                    self.assertEqual(child.values[-1][1], "0")
                    self.assertEqual(child.log[-1]["calls"], len(child.trace))

    def test_fork(self):
        for api in APIS:
            with self.subTest(api):
                child = self.steps("set", "forward", "GEMM", "label", "parent", "run", "fork", "run", "set", "forward", "DIRECT", "run", "clear", "-", "run",
                                   "problems", api=api, log="log-%p.jsonl")
                self.assertEqual(len(list(self.folder.glob("*.jsonl"))), 2)
                self.assertEqual(child.how[:3], ["im2col_gemm", "im2col_gemm", "direct"], child.stderr)
                self.assertEqual(child.trace[3], self.own(api)[0])
                self.assertEqual(child.values[-1], ["parent", "0"])
                problem = json.loads(child.values[-2][1])[0]
                self.assertEqual((problem["calls"], problem["labels"]), (3, ["parent"]))

    def test_errors(self):
        for operation, text, expected in (("sideways", "1", "'sideways' is not an operation: allowed are forward, backward_data"),
                                          ("forward", "8", "'8' is not a forward algorithm: allowed are 0-7"), ("forward", "", "allowed are"),
                                          ("forward", "-1,2", "would never be tried"), ("any", "eng3", "name the operation"),
                                          ("any", "NONSENSE", "backward filter algorithm"), ("NULL", "1", "is not an operation"), ("forward", "NULL", "allowed are")):
            with self.subTest(operation, text=text):
                child = children.execute(("api_in_c", operation, text), self.folder, children.environment(LD_PRELOAD=children.LIBRARY))
                self.assertEqual(child.status, 0)
                self.assertIn(expected, child.stdout)
        for toml, expected in (("[[rule]]\nalgo = 9", "convpin_set_rules"), ("[[rule]", "convpin_set_rules"), ("[log]\npath = 'x'", "can't be set while the program runs"),
                               ("version = 2", "version = 1 is"), ("[[deny]]\nengine = 1", "can't be set")):
            with self.subTest(toml):
                child = self.steps("enable", "run", "rules", toml, "run")
                self.assertRegex(child.stdout, r"(?s)rules: error: .*" + expected)
                self.assertEqual(child.trace[1], child.trace[0])

    def test_nothing_changes_by_itself(self):
        bare = self.steps("run", "kept", preload=False)
        child = self.steps("enable", "run", "kept")
        self.assertEqual((child.trace, child.checksums), (bare.trace, bare.checksums))
        self.assertEqual(child.choices(), ["left_alone"])

    def test_without_the_library(self):
        child = self.steps("enable", "set", "forward", "1", "run", preload=False)
        self.assertEqual([value for _, value in child.values][:2], ["no convpin"] * 2)
        self.assertEqual(self.bare("api_in_c").stdout, "no convpin\n")

    def test_disabled(self):
        child = self.steps("set", "forward", "2", "run", "label", "x", "problems", log="", CONVPIN_DISABLE="1")
        self.assertEqual(child.trace, self.steps("run", preload=False).trace)
        self.assertIn("CONVPIN_DISABLE", child.values[0][1])
        self.assertEqual((child.values[-1][1], child.stderr), ("[]", ""))


if __name__ == "__main__":
    children.main()
