"""`convpin bisect`: the rules of a pin file that make a command fail.

Would fail when: another rule than the guilty one is named; a rule that was taken out still acts, or lets the rules behind
it act on its problems; a command that fails by itself, or not at all, is blamed on a rule; the file without the rules that
were found is another in any line but theirs.
"""
import json

import command
from command import PROBLEM, STRIDED

POINTWISE = "x=[2,16,14,14] w=[16,16,1,1] float nchw"


class Bisect(command.Case):
    def pins(self, *rules, name="pins.toml"):
        self.write(name, "version = 1\n# a comment\n" + "".join(f'[[rule]]\nproblem = "{problem}"\nalgo = {algo}\n' for problem, algo in rules))

    def command(self, code):
        """A command that runs three convolutions and looks at what ran them: eng2 is what must not be."""
        client = command.children.CLIENTS / "convclient"
        return self.write("command.sh", f'ran=$("{client}" "{PROBLEM}" "{STRIDED}" "{POINTWISE}" --print engine | tr "\\n" " ")\n{code}\n')

    def bisect(self, *options, **more):
        return self.convpin("bisect", "--config", "pins.toml", *options, "--", "sh", "command.sh", **more)

    def test_one_rule(self):
        self.pins(("stride=2,2", 0), ("w=[16,16,1,1]", 3), ("w=[16,16,3,3]", 2), ("x=[9,9,9,9]", 2))
        self.command('echo "$ran"; case "$ran" in "eng2 "*) exit 3;; esac')
        done = self.bisect("-o", "good.toml")
        self.assertEqual(done.stdout.splitlines()[1].split(), ["pins.toml:9:1", "w=[16,16,3,3]", "2", "(GEMM)"])
        self.assertIn("bad (exit status 3)", done.stderr)
        log = self.record("convclient", PROBLEM, STRIDED, POINTWISE, options=["--config", "good.toml"])
        self.assertEqual([r["choice"] for r in log if r["type"] == "choice"], ["left_alone", "set", "set"])

    def test_the_file_stays_as_it_was_written(self):
        """What was found is taken out where it stands; every other line, comments too, is as it was."""
        before = """# mine
version = 1  # of the file

# the first layer
[[rule]]
name = "stem"
problem = "w=[16,16,3,3]"  # all strides
# tuned last week
algo = [  # the fast ones
  "eng2",
  # not sure of this one
  "eng0",
]
on_unsupported = "error"
[rule.match]
cudnn = ">=9"  # and later

# the last
[[rule]]
problem = "w=[16,16,1,1]"
algo = 3
"""
        after = before.replace('[[rule]]\nname', '[[rule]]\nalgo = -1\nname').replace('algo = [', '# algo = [').replace('  "eng', '#   "eng')
        after = after.replace(']\non_unsupported', '# ]\n# on_unsupported')
        self.write("pins.toml", before)
        self.command('case "$ran" in "eng2 "*) exit 3;; esac')
        done = self.bisect("-o", "good.toml")
        self.assertEqual(done.stdout.splitlines()[1].split()[0], "stem")
        self.assertEqual((self.folder / "good.toml").read_text(), after)
        self.assertEqual((self.folder / "pins.toml").read_text(), before)
        self.convpin("check", "good.toml")

    def test_rules_in_an_array(self):
        """They can't be edited line by line."""
        self.write("pins.toml", 'version = 1\nrule = [{ problem = "w=[16,16,3,3]", algo = 2 }, { problem = "w=[16,16,1,1]", algo = 3 }]\n')
        self.command('case "$ran" in "eng2 "*) exit 3;; esac')
        self.assertIn("w=[16,16,3,3]", self.bisect("-o", "good.toml").stdout)
        log = self.record("convclient", PROBLEM, POINTWISE, options=["--config", "good.toml"])
        self.assertEqual([r["choice"] for r in log if r["type"] == "choice"], ["left_alone", "set"])

    def test_what_is_taken_out_does_not_let_others_act(self):
        self.pins(("w=[16,16,3,3] stride=1,1", 2), ("w=[16,16,3,3]", 3), ("", 0))
        self.command('case "$ran" in "eng2 "*) exit 1;; "eng0 "*|"eng28"*) exit 4;; esac')  # the others on the first problem
        self.assertIn("pins.toml:3:1", self.bisect().stdout)

    def test_two_together(self):
        self.pins(("stride=2,2", 2), ("w=[16,16,1,1]", 2), ("w=[16,16,3,3]", 3))
        self.command('case "$ran" in *"eng2 eng2 ") exit 1;; esac')
        done = self.bisect()
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()[1:]], ["pins.toml:3:1", "pins.toml:6:1"])
        rows = json.loads(self.bisect("--json").stdout)
        self.assertEqual([(row["rule"], row["problem"], row["asks"]) for row in rows],
                         [("pins.toml:3:1", "stride=2,2", "2 (GEMM)"), ("pins.toml:6:1", "w=[16,16,1,1]", "2 (GEMM)")])
        self.assertIn("2 rules together make it fail", done.stderr)

    def test_skipped_runs(self):
        self.pins(("stride=2,2", 2), ("w=[16,16,1,1]", 3), ("w=[16,16,3,3]", 3))
        self.command('case "$ran" in *"eng2 eng0 ") exit 1;; *" eng2 "*) exit 125;; esac')
        done = self.bisect()
        self.assertEqual(len(done.stdout.splitlines()), 3)
        self.assertIn("some were skipped", done.stderr)

    def test_where_there_is_nothing_to_find(self):
        self.pins(("stride=2,2", 2))
        for code, said in (("exit 1", "are not what is wrong"), ("exit 0", "nothing to find")):
            self.command(code)
            self.assertIn(said, self.bisect(status=1).stderr)
        self.convpin("bisect", "--config", "pins.toml", "--", "no-such-command", status=2)
        self.assertIn("convpin bisect --config", self.convpin("bisect", "--config", "pins.toml", status=2).stderr)
        self.convpin("bisect", "--", "true", status=2)
        self.write("pins.toml", "version = 1\n[[rule]]\nalgo = 99\n")
        self.bisect(status=2)


if __name__ == "__main__":
    command.main()
