"""`convpin check`.

Would fail when: an error in a file is not found, or not said with its place; a rule is held to match what the library
would not give it; a stale rule is not named; what is not stale is; the environment changes the answer about a file.
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
        self.assertIn("none.toml", self.convpin("check", "none.toml", status=1).stderr)
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
        self.assertIn("1 of 3 problems are covered by no rule", text.stderr)
        self.assertRegex(text.stderr, "pins.toml: 1 of 4 rules are stale .*: convpin tune --refresh .*pins.toml -o .*pins.toml")

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
