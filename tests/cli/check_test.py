"""`convpin check`.

Would fail when: an error in a file is not found, or not said with its place; a rule is held to match what the library
would not give it; a stale rule is not named; what is not stale is; the environment changes the answer about a file; a rule that can't come to anything is not said to be
one; a message speaks of a variable where the person named a file, or a file that isn't there counts as an answer.
"""
import command
from command import PROBLEM, STRIDED

PINS = f"""version = 1
[[rule]]
name = "strided"
problem = "stride=2,2"
algo = 2
[[rule]]
problem = "x=[2,16,14,14]"
algo = "DIRECT"
[[rule]]
operation = "backward_filter"
algo = 1
[[rule]]
name = "old"
algo = "eng99"
match = {{ device = "*A100*", cudnn = "<9" }}
"""


class Check(command.Case):
    def test_errors(self):
        self.write("pins.toml", 'version = 1\n[[rule]]\nalgo = "WINOGARD"\n[[rule]]\nalgorithm = 1\n')
        done = self.convpin("check", "pins.toml", status=1)
        self.assertEqual(done.stdout, "")
        for part in ("WINOGARD", "algorithm", "pins.toml"):
            self.assertIn(part, done.stderr)
        self.assertGreaterEqual(len(self.json("check", "pins.toml", status=1)["errors"]), 2)
        self.assertEqual(self.convpin("check", "none.toml", status=2).stderr, "convpin: 'none.toml' can't be read: No such file or directory\n")
        self.assertEqual(self.convpin("check", ".", status=2).stderr, "convpin: '.' can't be read: Is a directory\n")
        done = self.convpin("check", status=2, CONVPIN_CONFIG="pins.toml:none.toml")
        self.assertIn("CONVPIN_CONFIG: 'none.toml' can't be read", done.stderr)
        self.assertIn("--config: 'none.toml' can't be read", self.convpin("run", "--config", "none.toml", "true", status=2).stderr)
        self.write("log.toml", '{"type":"header"}\n')
        for arguments, status in ((["check", "log.toml"], 1), (["run", "--config", "log.toml", "true"], 2)):
            self.assertTrue(self.convpin(*arguments, status=status).stderr.startswith("convpin: 'log.toml' is a log of convpin's"))
        self.write("pins.toml", "garbage\n")  # toml11's own words, without its own function's name
        self.assertRegex(self.convpin("check", "pins.toml", status=1).stderr, r"^convpin: missing key-value separator .*\n --> pins.toml")

    def test_what_each_rule_would_match(self):
        self.write("pins.toml", PINS)
        self.record("convclient", "--repeat", "3", PROBLEM, STRIDED, "x=[1,16,8,8] w=[16,16,1,1]")
        answer = self.json("check", "pins.toml", "--log", "run.jsonl", status=1)
        rules = {rule["rule"]: rule for rule in answer["rules"]}
        self.assertEqual([(r["problems"], r["calls"]) for r in rules.values()], [(1, 3), (1, 3), (0, 0), (0, 0)])
        self.assertEqual([p["rule"] for p in answer["problems"]], [None, "pins.toml:6:1", "strided"][1:] + [None])
        self.assertIn("matches nothing", rules["pins.toml:9:1"]["note"])
        self.assertRegex(rules["old"]["note"], r"stale: for \*A100\* with cuDNN <9; here is .* with cuDNN 9\.")
        # The library agrees.
        log = self.record("convclient", PROBLEM, STRIDED, log="second.jsonl", options=["--config", "pins.toml"])
        self.assertEqual([r["rule"].rpartition("/")[2] for r in log if r["type"] == "choice"], [p["rule"] for p in answer["problems"]][:2])
        text = self.convpin("check", "pins.toml", "--log", "run.jsonl", status=1)
        self.assertIn("1 of 3 problems is covered by no rule", text.stderr)
        self.assertRegex(text.stderr, "pins.toml: 1 of 4 rules is stale .*: convpin tune --refresh .*pins.toml -o .*pins.toml")

    def test_rules_that_are_never_come_to(self):
        """A note, and no error: the file is right, and such a rule may be meant for the day when the other goes."""
        self.write("pins.toml", """version = 1
[[rule]]
name = "all half"
problem = "half"
algo = 1
[[rule]]
name = "hidden"
problem = "x=[2,16,14,14] half nhwc"
algo = 2
[[rule]]
name = "none"
problem = "w=[16,16,3,3]"
match = { w = ["32..", -1, -1, -1] }
algo = 2
[[rule]]
name = "rest"
algo = 1
""")
        notes = {rule["rule"]: rule["note"] for rule in self.json("check", "pins.toml")["rules"]}
        self.assertEqual(notes, {"all half": None, "hidden": "never matches: all half comes first, and matches all that it would",
                                 "none": "never matches: no convolution is all that its problem and its match ask for", "rest": None})
        self.assertIn("where w=[32..,*,*,*]", self.convpin("check", "pins.toml").stdout)
        done = self.json("check", CONVPIN_CONFIG="pins.toml", CONV_FWD_ALGO="1")["rules"]
        self.assertEqual([rule["note"] for rule in done][-1], "never matches: CONV_FWD_ALGO comes first, and matches all that it would")

    def test_an_engine_on_the_legacy_api(self):
        """A note where the log's program could not meet the rule; the library agrees."""
        self.record("convclient", "--api", "legacy", PROBLEM, STRIDED)
        rule = '[[rule]]\nproblem = "{}"\nalgo = {}\n'
        self.write("pins.toml", "version = 1\n" + rule.format("stride=2,2", '["eng2", "GEMM"]') + rule.format("", '"eng2"'))
        self.assertEqual([r["note"] for r in self.json("check", "pins.toml", "--log", "run.jsonl")["rules"]],
                         [None, "1 of its problems is of the legacy API, which takes algorithms and no engines: the framework's choice runs there"])
        log = self.record("convclient", "--api", "legacy", PROBLEM, STRIDED, log="second.jsonl", options=["--config", "pins.toml"])
        self.assertEqual([r["choice"] for r in log if r["type"] == "choice"], ["unsupported", "set"])
        self.record("convclient", PROBLEM, STRIDED)
        self.assertEqual([r["note"] for r in self.json("check", "pins.toml", "--log", "run.jsonl")["rules"]], [None, None])

    def test_stale_by_options(self):
        self.write("pins.toml", 'version = 1\n[[rule]]\nalgo = 1\nmatch = { device = "NVIDIA H200", cudnn = "9.19.0" }\n')
        self.convpin("check", "pins.toml")
        self.convpin("check", "pins.toml", "--device", "NVIDIA H200", "--cudnn", "9.19.0")
        self.convpin("check", "pins.toml", "--device", "NVIDIA H200")
        for options, said in ((["--cudnn", "9.22.0"], "cuDNN 9.22.0"), (["--device", "NVIDIA A100"], "NVIDIA A100")):
            done = self.convpin("check", "pins.toml", *options, status=1)
            self.assertIn(said, done.stdout)
        self.convpin("check", "pins.toml", "--cudnn", "newest", status=2)

    def test_the_environment(self):
        self.write("pins.toml", "version = 1\n[[rule]]\nalgo = 1\n")
        self.assertEqual(len(self.json("check", "pins.toml", CONV_FWD_ALGO="nonsense")["rules"]), 1)
        self.assertIn("nonsense", self.convpin("check", status=1, CONV_FWD_ALGO="nonsense").stderr)
        rules = self.json("check", CONV_FWD_ALGO="2", CONVPIN_CONFIG="pins.toml")["rules"]
        self.assertEqual([rule["rule"] for rule in rules], ["CONV_FWD_ALGO", "pins.toml:2:1"])


if __name__ == "__main__":
    command.main()
