"""`convpin diff`.

Would fail when: two runs that agree are said to differ, or the other way round; a problem that only one side has is lost; pin
files are compared by their order where it says nothing, or not where it does; or they are said to be alike where a default, a
denial or a limit differs; the exit status does not say whether choices differ.
"""
import command
from command import PROBLEM, STRIDED

SAME = "x=[1,16,8,8] w=[16,16,1,1]"


class Diff(command.Case):
    def test_logs(self):
        self.record("convclient", PROBLEM, SAME, log="a.jsonl", CONV_FWD_ALGO="DIRECT")
        self.record("convclient", SAME, PROBLEM, log="b.jsonl", CONV_FWD_ALGO="DIRECT")
        self.assertEqual(self.convpin("diff", "a.jsonl", "b.jsonl").stdout, "")
        self.write("pins.toml", 'version = 1\n[[rule]]\nproblem = "w=[16,16,3,3]"\nalgo = 2\n[[rule]]\nalgo = 3\n')
        self.record("convclient", PROBLEM, SAME, log="c.jsonl", options=["--config", "pins.toml"])
        rows = self.json("diff", "a.jsonl", "c.jsonl", status=1)["problems"]
        self.assertEqual([(r["verdict"], r["api"], r["A"], r["B"]) for r in rows], [("changed", "graph", "eng0", "eng2")])
        self.assertTrue(rows[0]["problem"].endswith(" groups=1"), rows)  # it can be given to other commands
        self.record("convclient", SAME, STRIDED, log="d.jsonl", CONV_FWD_ALGO="DIRECT")
        rows = self.json("diff", "a.jsonl", "d.jsonl", "--all")["problems"]
        self.assertEqual(sorted((r["verdict"], r["A"], r["B"]) for r in rows),
                         [("appears", None, "eng0"), ("same", "eng0", "eng0"), ("vanishes", "eng0", None)])
        # What only one of them met is no disagreement, unless that is all there is.
        self.assertIn("1 appears, 1 same, 1 vanishes: what they have in common runs the same\n", self.convpin("diff", "a.jsonl", "d.jsonl").stderr)
        self.record("convclient", STRIDED, log="e.jsonl", CONV_FWD_ALGO="DIRECT")
        self.assertIn("no problem in common", self.convpin("diff", "a.jsonl", "e.jsonl", status=1).stderr)
        # That a third lacks a problem hides nothing.
        rows = self.json("diff", "c.jsonl", "e.jsonl", "a.jsonl", status=1)["problems"]
        self.assertEqual([r["verdict"] for r in rows if "w=[16,16,3,3]" in r["problem"] and "stride=1,1" in r["problem"]], ["changed"])

    def test_what_fails(self):
        self.record_failing()
        self.record("convclient", PROBLEM, STRIDED, log="ran.jsonl")
        rows = self.json("diff", "ran.jsonl", "failing.jsonl", status=1)["problems"]
        self.assertEqual([(r["verdict"], r["B"]) for r in rows], [("changed", "fails")])
        self.convpin("diff", "failing.jsonl", "failing.jsonl")

    def test_times_stand_side_by_side(self):
        for log in ("a.jsonl", "b.jsonl"):
            self.record("convclient", PROBLEM, log=log, CONV_FWD_ALGO="DIRECT", CONVPIN_PROFILE="algorithms")
        row, = self.json("diff", "a.jsonl", "b.jsonl", "--all")["problems"]
        self.assertGreater(row["A_time_ms"], 0)
        self.assertGreater(row["B_time_ms"], 0)

    def test_the_runs_of_one_log(self):
        self.record("convclient", PROBLEM, CONV_FWD_ALGO="DIRECT", RANK="0")
        self.assertIn("nothing to compare", self.convpin("diff", "run.jsonl", status=2).stderr)
        self.record("convclient", PROBLEM, append=True, CONV_FWD_ALGO="DIRECT", RANK="1")
        self.assertIn("rank 1", self.convpin("diff", "run.jsonl").stderr)
        self.record("convclient", PROBLEM, append=True, CONV_FWD_ALGO="GEMM", RANK="2")
        row, = self.json("diff", "run.jsonl", status=1)["problems"]
        self.assertEqual([row[side] for side in "ABC"], ["eng0", "eng0", "eng2"])

    def test_pin_files(self):
        rules = ('[[rule]]\nproblem = "w=[16,16,3,3]"\nalgo = 2\n', '[[rule]]\nproblem = "w=[16,16,1,1] half"\nalgo = ["eng1", 3]\n')
        self.write("a.toml", "version = 1\n" + "".join(rules))
        self.write("b.toml", "version = 1\n" + "".join(reversed(rules)))
        self.convpin("diff", "a.toml", "b.toml")
        self.write("c.toml", "version = 1\n" + rules[0] + rules[1].replace("eng1", "eng2"))
        row, = self.json("diff", "a.toml", "c.toml", status=1)["problems"]
        self.assertEqual((row["verdict"], row["kind"], row["problem"]), ("changed", "rule", "forward w=[16,16,1,1] half"))
        self.assertEqual((row["A"].split(",")[0], row["B"].split(",")[0]), ("eng1", "eng2"))
        self.write("bad.toml", "version = 2\n")
        self.convpin("diff", "a.toml", "bad.toml", status=2)
        self.record("convclient", PROBLEM)
        self.assertIn("convpin check", self.convpin("diff", "a.toml", "run.jsonl", status=2).stderr)

    def test_pin_files_that_differ_in_a_limit_alone(self):
        """Each is something else that runs, or doesn't."""
        rule = 'problem = "half"\nalgo = "eng1"\n'
        plain = "version = 1\n[[rule]]\n" + rule
        self.write("a.toml", plain)
        deny = '[[deny]]\noperation = "forward"\nengine = 5\n'
        here, there = ('match = { cudnn = "%s" }\n' % version for version in ("9.19.0", "9.22.0"))
        for name, text, found in (
                ("default", "version = 1\n[defaults]\non_unsupported = \"error\"\n[[rule]]\n" + rule,
                 [("changed", "rule", "eng1", "eng1; else it fails"), ("appears", "defaults.on_unsupported", None, "error")]),
                ("miss", "version = 1\n[defaults]\non_miss = \"error\"\n[[rule]]\n" + rule, [("appears", "defaults.on_miss", None, "error")]),
                ("same default", "version = 1\n[defaults]\non_miss = \"leave\"\n[log]\npath = \"a.jsonl\"\n[[rule]]\n" + rule, []),
                ("rule's own", plain + 'on_unsupported = "error"\n', [("changed", "rule", "eng1", "eng1; else it fails")]),
                ("limit", plain + "workspace_limit = 4096\n", [("changed", "rule", "eng1", "eng1; workspace at most 4096 bytes")]),
                ("require", plain + 'require = ["deterministic"]\n', [("changed", "rule", "eng1", "eng1, only if deterministic")]),
                ("place", plain + here, [("elsewhere", "rule", "eng1 (anywhere)", "eng1 (cuDNN 9.19.0)")]),
                ("denial", plain + deny, [("appears", "deny", None, "never eng5")]),
                ("match", plain + "match = { groups = 2 }\n", [("vanishes", "rule", "eng1", None), ("appears", "rule", None, "eng1")])):
            with self.subTest(name):
                self.write("b.toml", text)
                rows = self.json("diff", "a.toml", "b.toml", status=int(bool(found)))["problems"]
                self.assertEqual([(r["verdict"], r["kind"], r["A"], r["B"]) for r in rows], found)
        # Rules for the same problem on several machines, and denials, in any order
        both = "version = 1\n[[rule]]\n%s[[rule]]\n%s" + deny
        self.write("a.toml", both % (rule + here, rule.replace("eng1", "eng2") + there) + deny.replace("5", "6"))
        self.write("b.toml", both.replace(deny, deny.replace("5", "6")) % (rule.replace("eng1", "eng2") + there, rule + here) + deny)
        self.assertEqual([r["verdict"] for r in self.json("diff", "a.toml", "b.toml", "--all")["problems"]], ["same", "same"])
        self.write("b.toml", both % (rule + there, rule.replace("eng1", "eng2") + here) + deny)
        rows = self.json("diff", "a.toml", "b.toml", status=1)["problems"]
        self.assertEqual([(r["verdict"], r["A"]) for r in rows], [("changed", "eng1 (cuDNN 9.19.0) | eng2 (cuDNN 9.22.0)"),
                                                                  ("changed", "never eng5 | never eng6")])
        later = there.replace("9.22.0", "9.23.0")
        self.write("b.toml", both % (rule + here, rule.replace("eng1", "eng2") + later) + deny.replace("5", "6"))
        self.assertEqual([r["verdict"] for r in self.json("diff", "a.toml", "b.toml", status=1)["problems"]], ["elsewhere"])

    def test_the_order_of_rules_that_meet(self):
        """The first that matches counts: only where something matches both it is another choice."""
        three, half, one = (f'[[rule]]\nproblem = "{problem}"\nalgo = {algo}\n' for problem, algo in (("w=[*,*,3,3]", 2), ("half", 1), ("w=[*,*,1,1]", 3)))
        self.write("a.toml", "version = 1\n" + three + half + one)
        self.write("b.toml", "version = 1\n" + half + three + one)
        row, = self.json("diff", "a.toml", "b.toml", status=1)["problems"]
        self.assertEqual((row["verdict"], row["problem"], row["A"], row["B"]), ("order", "forward half", "behind forward w=[*,*,3,3]", "before it"))
        self.write("a.toml", "version = 1\n" + three + half.replace("1\n", "2\n") + one.replace("w=[*,*,1,1]", "w=[*,*,1,1] float"))
        self.write("b.toml", "version = 1\n" + one.replace("w=[*,*,1,1]", "w=[*,*,1,1] float") + half.replace("1\n", "2\n") + three)
        self.convpin("diff", "a.toml", "b.toml")  # what meets asks for the same, and the rest doesn't meet
        here = half.replace("1\n", "2\n") + 'match = { cudnn = "9.19" }\n'  # before the one for anywhere it holds, behind it it is dead
        self.write("a.toml", "version = 1\n" + here + half)
        self.write("b.toml", "version = 1\n" + half + here)
        row, = self.json("diff", "a.toml", "b.toml", status=1)["problems"]
        self.assertEqual((row["verdict"], row["problem"], row["A"]), ("order", "forward half", "behind forward half (cuDNN 9.19)"))


if __name__ == "__main__":
    command.main()
