"""`convpin diff`.

Would fail when: two runs that agree are said to differ, or the other way round; a problem that only one side has is
lost; pin files are compared by their order; the exit status does not say whether choices differ.
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
        self.assertEqual([(r["verdict"], r["A"], r["B"]) for r in rows], [("changed", "eng0", "eng2")])
        self.record("convclient", SAME, STRIDED, log="d.jsonl", CONV_FWD_ALGO="DIRECT")
        rows = self.json("diff", "a.jsonl", "d.jsonl", "--all", status=1)["problems"]
        self.assertEqual(sorted((r["verdict"], r["A"], r["B"]) for r in rows),
                         [("appears", None, "eng0"), ("same", "eng0", "eng0"), ("vanishes", "eng0", None)])
        self.assertIn("1 appears, 1 same, 1 vanishes", self.convpin("diff", "a.jsonl", "d.jsonl", status=1).stderr)

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
        self.assertEqual((row["verdict"], row["problem"]), ("changed", "forward w=[16,16,1,1] half"))
        self.assertEqual((row["A"].split(",")[0], row["B"].split(",")[0]), ("eng1", "eng2"))
        self.write("bad.toml", "version = 2\n")
        self.convpin("diff", "a.toml", "bad.toml", status=2)
        self.record("convclient", PROBLEM)
        self.assertIn("convpin check", self.convpin("diff", "a.toml", "run.jsonl", status=2).stderr)


if __name__ == "__main__":
    command.main()
