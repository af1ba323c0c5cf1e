"""`convpin tune`, on the stand-in: its times are a CPU's, and no test depends on which engine is fastest.

Would fail when: a rule is written for what was not measured, is over its bound or may not be taken; a tuned file is not in
force when the program runs again; a tuning that was stopped begins anew, or loses what it had; a candidate's result is not
compared with float64.
"""
import signal
import subprocess

import command
from command import COMMAND, PROBLEM, STRIDED

OTHERS = ["backward_data " + PROBLEM, "backward_filter " + PROBLEM, "x=[2,16,14,14] w=[16,16,1,1] half nhwc", PROBLEM + " fused=add,relu"]
FEW = ["--rounds", "3"]


class Tune(command.Case):
    def measured(self, log):
        """The candidates by problem, and what was chosen."""
        records = command.children.read_log(self.folder / log)
        return ([[c for c in records if c["type"] == "candidate" and c["problem_id"] == p["problem_id"]] for p in records if p["type"] == "problem"],
                [r for r in records if r["type"] == "choice"])

    def test_tuned_rules_are_in_force(self):
        problems = [PROBLEM, STRIDED, *OTHERS]
        self.record("convclient", *problems)
        done = self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW)
        self.assertIn("[6/6", done.stderr)
        candidates, choices = self.measured("pins.toml.jsonl")
        self.assertEqual((len(candidates), len(choices)), (6, 6))
        for of, choice in zip(candidates, choices):
            own, = (c for c in of if c["framework_choice"])
            best, = (c for c in of if c["engine"] == choice["engine"])
            self.assertEqual(best["status"], "ok")
            self.assertLess(best["error"], 0.05)
            self.assertNotIn("DOWN_CONVERT_INPUTS", best["numerical_notes"])
            self.assertTrue(best is own or best["time_us"] < 0.98 * own["time_us"])
        self.convpin("check", "pins.toml", "--log", "run.jsonl")
        log = self.record("convclient", *problems, log="second.jsonl", options=["--config", "pins.toml"])
        self.assertEqual([(r["choice"], r["engine"]) for r in log if r["type"] == "choice"], [("set", c["engine"]) for c in sorted(choices, key=lambda c: c["problem_id"])])
        self.convpin("report", "pins.toml.jsonl", "-o", "report.html")

    def test_limits(self):
        self.record("convclient", PROBLEM)
        self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW, "--workspace-limit", "0", "--deterministic", "--tf32", "no")
        candidates, (choice,) = self.measured("pins.toml.jsonl")
        self.assertEqual(choice["workspace_bytes"], 0)
        self.assertNotIn("TENSOR_CORE", choice["numerical_notes"])
        self.assertTrue(all(c["workspace_bytes"] == 0 for c in candidates[0] if c["status"] == "ok"))
        self.convpin("tune", "run.jsonl", "-o", "least.toml", *FEW, "--policy", "least_memory")
        self.assertEqual(self.measured("least.toml.jsonl")[1][0]["workspace_bytes"], 0)

    def test_it_goes_on_where_it_was(self):
        self.record("convclient", PROBLEM, STRIDED)
        done = self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW, "--budget", "1 ms", status=1)
        self.assertIn("2 problems are not tuned yet", done.stderr)
        self.assertFalse((self.folder / "pins.toml").exists())
        self.record("convclient", PROBLEM, log="one.jsonl")
        self.assertEqual(self.convpin("tune", "one.jsonl", "-o", "pins.toml", *FEW).stderr.count(" s left]"), 1)
        first = (self.folder / "pins.toml").read_text()
        done = self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW)
        self.assertEqual((done.stderr.count(" s left]"), done.stderr.count("stride=2,2")), (1, 1))
        for line in first.splitlines():
            if line.startswith(("problem", "algo")):
                self.assertIn(line, (self.folder / "pins.toml").read_text())
        self.assertEqual(self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW).stderr.count(" s left]"), 0)
        done = self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW, "--deterministic")  # another question
        self.assertEqual(done.stderr.count(" s left]"), 2)

    def test_ctrl_c_keeps_what_is_done(self):
        # Larger ones, so that the second is still under way
        self.record("convclient", *(f"x=[{n},64,28,28] w=[64,64,3,3] float nchw pad=1,1" for n in (1, 2, 4)))
        with subprocess.Popen([COMMAND, "tune", "run.jsonl", "-o", "pins.toml"], env=command.children.environment(), cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            line = process.stderr.readline()
            self.assertIn("[1/3", line)
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
            process.wait(timeout=120)
        self.assertEqual(process.returncode, 0, rest)
        self.assertIn("interrupted", rest)
        self.assertEqual((self.folder / "pins.toml").read_text().count("[[rule]]"), 1)

    def test_what_cannot_be_tuned(self):
        self.record("convclient", "--api", "legacy", PROBLEM)
        self.assertIn("legacy", self.convpin("tune", "run.jsonl", "-o", "pins.toml", status=1).stderr)
        self.record("convclient", PROBLEM)
        for wrong in (["--budget", "soon"], ["--allow", "everything"], ["--workspace-limit", "small"], ["--policy", "prettiest"]):
            self.convpin("tune", "run.jsonl", *wrong, status=2)


if __name__ == "__main__":
    command.main()
