"""Denials: what is denied never runs, whoever asks for it.

Would fail when: a denied engine or algorithm is in a list that the program is given, in the profile, behind a pin, in a plan
that the program builds or restores by itself; more is denied than was meant (another operation, type, version, other
knobs); the log does not say that a denial is why the framework chose otherwise, or says it where none is; a program that is left with nothing isn't told why and by which denials, or its log has no choice that tells it.
"""
import json
import re

import children
from children import PROBLEM

FAMILY = "IMPLICIT_PRECOMP_GEMM"  # the framework's own choice for PROBLEM is of it: eng70, algorithm 1
ALGORITHMS = "".join(f'[[deny]]\noperation = "forward"\nalgo = {n}\n' for n in range(8))
ALL = ALGORITHMS + "".join(f'[[deny]]\noperation = "forward"\nengine = {n}\n' for n in range(100))


def deny(what, operation="forward", **keys):
    more = "".join(f"{key} = {value}\n" for key, value in keys.items())
    return f'[[deny]]\noperation = "{operation}"\n{what}\n{more}'


class Deny(children.Case):
    def run_with(self, text, *options, problems=(PROBLEM,), same=False, **variables):
        self.write("pins.toml", "version = 1\n" + text)
        return self.preloaded("convclient", *options, "--check", *problems, same=same, CONVPIN_CONFIG="pins.toml", **variables)

    def failing(self, text, *options, **variables):
        self.write("pins.toml", "version = 1\n" + text)
        env = children.environment(LD_PRELOAD=children.LIBRARY, CONVPIN_CONFIG="pins.toml", CONVPIN_LOG="log.jsonl", **variables)
        (self.folder / "log.jsonl").unlink(missing_ok=True)
        child = children.execute(("convclient", *options, PROBLEM), self.folder, env)
        child.log = children.read_log(self.folder / "log.jsonl")
        self.assertEqual((child.status, child.stdout), (1, ""), child.stderr)
        choice, = child.of_type("choice")
        self.assertEqual([choice[key] for key in ("ran", "engine", "algorithm")], [None] * 3)
        self.assertRegex(choice["reason"], "(is|are) denied by ")
        self.assertEqual((child.log[-1]["problems"], child.log[-1]["failed_problems"]), (1, 1))
        self.assertRegex(child.stderr, "(?m)^convpin: 1 problem, 0 calls, .*, 1 failed$")
        return child

    def choice(self, child, *keys):
        choice, = child.of_type("choice")
        return tuple(choice[key] for key in keys)

    def test_an_algorithm_and_its_engines(self):
        text = deny(f'algo = "{FAMILY}"')
        for options in ((), ("--own-config",), ("--from-json",), ("--cuda-graph-api",)):
            with self.subTest(options):
                self.assertEqual(self.run_with(text, *options).trace[-1][1], "eng28")
        self.assertEqual(self.run_with(text, "--api", "legacy").executed()[0], "0")
        timed = self.run_with(text, "--benchmark")
        self.assertEqual(set(timed.executed()), {"eng28", "eng2", "eng0"} & set(timed.executed()))

    def test_an_engine(self):
        child = self.run_with(deny("engine = 70"))
        self.assertNotIn("eng70", child.executed())
        self.assertEqual(child.stderr.count("\n"), 2)  # the settings, the end: nobody asked for it, so nobody is told
        own = self.bare("convclient", "--api", "graph", "--check", PROBLEM).fields()["ran"]
        for tag, denied in ((own, True), ("eng70_k2=12", True), ("eng70_k18=1", False), ("eng70_k2=12_k18=1", False), ("eng71", False)):
            with self.subTest(tag):
                child = self.run_with(deny(f'tag = "{tag}"'))
                self.assertEqual(child.fields()["ran"] == own, not denied)

    def test_the_log_says_what_it_changed(self):
        before = "before it in cuDNN's list: "
        for options in ((), ("--own-config",), ("--from-json",)):
            with self.subTest(options):
                child = self.run_with(deny("engine = 70", reason='"wrong"'), *options)
                what, reason = self.choice(child, "choice", "reason")
                self.assertEqual(what, "left_alone")
                self.assertRegex(reason, rf"^{before}eng70_k2=\d+_k18=\d+ is denied by pins.toml:2:1 \(wrong\)$")
                self.assertEqual(child.warnings(), [])
        both = self.run_with(deny(f'algo = "{FAMILY}"') + deny("tag = 'eng28'"))
        self.assertEqual(both.executed(), ["eng0"])
        self.assertRegex(self.choice(both, "reason")[0], rf"^{before}eng70_\S+ and \d+ more are denied by pins.toml:2:1; eng28_\S+ is denied by pins.toml:5:1$")
        legacy = self.run_with(deny("algo = 1"), "--api", "legacy")
        self.assertEqual(self.choice(legacy, "choice", "reason"), ("left_alone", f"{before}1 IMPLICIT_PRECOMP_GEMM is denied by pins.toml:2:1"))
        # beside what a rule asks for and can't have
        child = self.run_with(deny("engine = 70") + '[[rule]]\nalgo = "WINOGRAD"\n')
        self.assert_not_set(child, "unsupported", rf"^(requested .*: )?.*eng12: not supported: arch mismatch; {before}eng70_\S+ is denied")
        # what was not the framework's choice changes nothing, and a pin is what was asked for
        for more, options in ((deny("tag = 'eng28'"), ()), (deny("engine = 70", "wgrad"), ()), (deny("algo = 0"), ("--api", "legacy"))):
            with self.subTest(more, options=options):
                self.assertEqual(self.choice(self.run_with(more, *options, same=True), "choice", "reason"), ("left_alone", None))
        self.assertEqual(self.choice(self.run_with(deny("engine = 70") + '[[rule]]\nalgo = "GEMM"\n'), "choice", "reason"), ("set", None))

    def test_only_what_is_meant(self):
        for more in ({"cudnn": '"<9.1"'}, {"match": '{ dtype = "half" }'}, {"match": "{ dims = 3 }"}, {"match": '{ device = "*H200*" }'},
                     {"problem": '"stride=2,2"'}, {"match": "{ fused = true }"}, {"operation": "wgrad"}):
            with self.subTest(more):
                text = deny("engine = 70", **more)
                self.run_with(text, same=True)
        for more in ({"cudnn": '"9.1 - 9.99"'}, {"match": '{ dtype = ["half", "float"], dims = 2, device = "*stand-in*" }'}, {"problem": '"float nchw"'}):
            with self.subTest(more):
                self.assertNotIn("eng70", self.run_with(deny("engine = 70", **more)).executed())

    def test_the_other_operations(self):
        problems = (f"backward_data {PROBLEM}", f"backward_filter {PROBLEM}")
        text = deny('algo = "ALGO_0"', "wgrad") + deny("algo = 1", "dgrad") + deny("engine = 0", "wgrad")
        child = self.run_with(text, problems=problems)
        self.assertNotIn("eng0", child.executed())
        self.assertNotEqual(child.trace[0][1], "eng74")
        child = self.run_with(text, "--api", "legacy", problems=problems)
        self.assertEqual([how for _, _, how in child.trace if how in ("implicit_gemm", "scatter")][:1], ["scatter"])
        self.assertNotIn(("legacy/backward_filter", "0", "scatter"), child.trace)

    def test_with_the_programs_own_filter(self):
        """Both take something away; the program finds what neither has."""
        for options in ((), ("--benchmark",)):
            text = deny(f'algo = "{FAMILY}"') + deny("algo = 0") + deny("algo = 2")
            child = self.run_with(text, "--deny-note", "tensor_core", *options)
            self.assertEqual(set(child.executed()), {"eng0"})

    def test_pins_and_policies_go_around_it(self):
        text = deny("engine = 2", reason='"wrong with padding"')
        child = self.run_with(text + '[[rule]]\nalgo = ["GEMM", "DIRECT"]\n')
        self.assert_set(child, "direct")
        child = self.run_with(text + '[[rule]]\nalgo = "GEMM"\n', same=True)
        self.assert_not_set(child, "unsupported", r"eng2 is denied by pins.toml:2:1 \(wrong with padding\)")
        child = self.run_with(deny("algo = 2") + '[[rule]]\nalgo = "GEMM"\n', "--api", "legacy", same=True)
        self.assert_not_set(child, "unsupported", "denied by pins.toml:2:1")
        # several denials, of several requests
        child = self.run_with(text + deny("algo = 3") + deny("tag = 'eng28'") + '[[rule]]\nalgo = ["IMPLICIT_GEMM", "GEMM", "DIRECT"]\n', same=True)
        self.assert_not_set(child, "unsupported", r"eng28_\S+ is denied by pins.toml:9:1; eng2 is denied by pins.toml:2:1 \(.*\); "
                                                  r"eng0 is denied by pins.toml:6:1")
        child = self.run_with(deny("algo = 2") + '[[rule]]\nalgo = ["GEMM", "WINOGRAD"]\n', "--api", "legacy", same=True)
        self.assert_not_set(child, "unsupported", r"2 \(GEMM\): it is denied by pins.toml:2:1; 6 \(WINOGRAD\): not supported")
        child = self.run_with(deny("engine = 70") + f'[[rule]]\nalgo = "{FAMILY}"\n')
        self.assert_set(child)
        self.assertNotIn("eng70", child.executed())
        for api in ("graph", "legacy"):
            child = self.run_with(deny("algo = 1") + deny("algo = 3") + '[[rule]]\npolicy = "least_memory"\nmin_gain = 0.0\n', "--api", api)
            self.assertFalse({"eng0", "eng1", "eng70", "1", "3"} & set(child.executed()), child.trace)

    def test_the_profile(self):
        for api, denied in (("graph", {"eng2", "eng0"}), ("legacy", {"2", "3"})):
            for level in ("algorithms", "engines"):
                with self.subTest(api, level=level):
                    child = self.run_with(deny('algo = "GEMM"') + deny("algo = 3"), "--api", api, same=True, CONVPIN_PROFILE=level)
                    self.assertFalse(denied & set(child.executed()))
                    rows = {c["algorithm"]: c for c in child.of_type("candidate")}
                    for number in (2, 3):
                        self.assertEqual(rows[number]["status"], "unsupported")
                        self.assertRegex(rows[number]["reason"], r"^denied by pins.toml:\d+:1")
        child = self.run_with(deny("algo = 1"), "--api", "legacy", CONVPIN_PROFILE="algorithms")
        self.assertEqual([c["algorithm"] for c in child.of_type("candidate") if c["framework_choice"]], [0])

    def test_a_program_with_its_own_configuration_or_algorithm(self):
        own = self.bare("convclient", "--print", "json", PROBLEM).stdout
        self.write("plan.json", own)
        child = self.failing(deny("engine = 70"), "--plan", "plan.json")
        self.assertEqual(self.choice(child, "choice", "rule"), ("left_alone", None))
        self.assertRegex(child.stderr, r"(?m)^convpin: error: .*: eng70_.* is denied by pins.toml:2:1: this convolution fails$")
        self.assertRegex(child.stderr, "convclient: .*NOT_SUPPORTED: convpin: eng70_.* is denied")
        self.assertEqual(child.trace, [])
        for options in (("--fixed", "1"), ("--fixed", "1", "--repeat", "3")):
            child = self.failing(deny("algo = 1"), "--api", "legacy", *options)
            self.assertEqual(child.stderr.count("convpin: error:"), 1)
            self.assertRegex(child.stderr, "NOT_SUPPORTED: convpin: algorithm 1 .* is denied by pins.toml:2:1")
            self.assertEqual(child.trace, [])
        # a rule that has something else for it
        child = self.run_with(deny("algo = 1") + '[[rule]]\nalgo = ["GEMM", "DIRECT"]\n', "--api", "legacy", "--fixed", "1")
        self.assert_set(child, "im2col_gemm")

    def test_a_denied_algorithm_is_not_what_runs_where_the_pin_does_not_fit(self):
        text = deny("algo = 1") + '[[rule]]\nalgo = "FFT"\n'
        child = self.run_with(text, "--api", "legacy", "--max-workspace", "1000")
        self.assertNotIn("1", child.executed())

    def test_everything(self):
        for options in ((), ("--benchmark",), ("--own-config",), ("--api", "legacy"), ("--api", "legacy", "--benchmark")):
            with self.subTest(options):
                child = self.failing(ALL, *options)
                self.assertEqual(child.stderr.count("all that cuDNN's list offers is denied"), 1, child.stderr)
                by, = re.findall("is denied, so the program is given nothing of it: (.*)", child.stderr)
                self.assertEqual(self.choice(child, "choice", "rule", "requested", "reason"),
                                 ("left_alone", None, None, f"all that cuDNN's list offers is denied: {by}"))
                # a benchmark's list is in the order of its times
                first = (r"^eng70_k2=\d+_k18=\d+ and \d+ more are denied by pins.toml:5:1" if "legacy" not in options else
                         r"^\d [A-Z_]+ is denied by pins.toml:\d+:1" if "--benchmark" in options else r"^1 IMPLICIT_PRECOMP_GEMM is denied by pins.toml:5:1")
                self.assertRegex(by, first + "; ")
                self.assertNotRegex(by, r"pins.toml:(\d+):1.*pins.toml:\1:1")  # each once
                if "--benchmark" not in options:
                    self.assertEqual(child.trace, [])

    def test_one_list_that_is_denied_and_one_that_is_not(self):
        # Would fail where a list of which nothing is left counted as the problem's failure, though another holds what runs.
        denials = "version = 1\n" + "".join(f'[[deny]]\nengine = {n}\nproblem = "forward"\n' for n in range(100) if n != 38)
        self.write("pins.toml", denials)
        child = self.preloaded("convclient", "--own-config", "--benchmark", "--check", PROBLEM, same=False, CONVPIN_CONFIG="pins.toml")
        self.assertEqual(child.executed(), ["eng38"])
        self.assertTrue(all(c["ran"] for c in child.of_type("choice")))
        self.assertEqual((child.log[-1]["failed_problems"], child.log[-1]["unsupported_problems"], child.warnings()), (0, 0, []))

    def test_everything_and_a_rule(self):
        for options in ((), ("--api", "legacy")):
            with self.subTest(options):
                child = self.failing(ALL + '[[rule]]\nname = "stem"\nalgo = "GEMM"\n', *options)
                self.assertEqual(self.choice(child, "choice", "rule", "requested"), ("unsupported", "stem", "2 (GEMM)"))
                self.assertRegex(self.choice(child, "reason")[0], r"^(eng2|it) is denied by pins.toml:8:1; all that cuDNN's list offers is denied: ")
                self.assertEqual(child.log[-1]["unsupported_problems"], 1)
                child = self.failing(ALL + '[[rule]]\nname = "stem"\npolicy = "least_memory"\non_unsupported = "error"\n', *options)
                self.assertEqual(child.stderr.count("convpin: error:"), 1)
                self.assertNotIn("convpin: warning:", child.stderr)  # what fails says it
                self.assertRegex(self.choice(child, "reason")[0], r"rule stem asks for the least memory.* 1 \(IMPLICIT_PRECOMP_GEMM\) is denied by pins.toml:5:1"
                                 if options else r"rule stem asks for the least memory.* eng70_\S+ and \d+ more are denied by pins.toml:5:1")
        child = self.failing(ALL + '[[rule]]\nname = "stem"\nalgo = "GEMM"\non_unsupported = "error"\n')
        self.assertRegex(child.stderr, r"rule stem asks for 2 \(GEMM\), which is not possible here \(eng2 is denied by")

    def test_errata(self):
        def errata(**fields):
            rule = {"rule_id": "seen", "operation": "ConvFwd", "engine": 70, "cudnn_version_start": 8000, "cudnn_version_end": -1} | fields
            self.write("errata.json", json.dumps({"version": 1, "rules": [rule]}))
            return self.preloaded("convclient", "--check", PROBLEM, same=False, CONVPIN_ERRATA="errata.json", CONVPIN_PROFILE="engines")
        child = errata()
        self.assertNotIn("eng70", child.executed())
        reasons = [c["reason"] for c in child.of_type("candidate") if c["engine"].split("_")[0] == "eng70"]
        self.assertEqual(len(reasons), 1)
        self.assertRegex(reasons[0], r"^denied by errata.json: rule 1 \(seen\)")
        for fields in ({"engine": 69}, {"knob": ["k2=5"]}, {"cudnn_version_end": 9100}, {"operation": "ConvBwdData"},
                       {"filter_shape": [16, 16, 5, 5]}):
            with self.subTest(fields):
                self.assertIn("eng70", errata(**fields).executed())
        for fields in ({"knob": ["k2=12"]}, {"filter_shape": [-1, 16, 3, 3], "input_shape": [2, 16, -1, -1], "shape_format": "NCHW"}):
            with self.subTest(fields):
                self.assertNotIn("eng70", errata(**fields).executed())


if __name__ == "__main__":
    children.main()
