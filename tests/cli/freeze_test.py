"""`convpin freeze`: record, freeze, and run again.

Would fail when: the second run does not run what the first one did; a frozen file is refused; a failed freeze writes or
harms a file; a problem that a benchmark tried in several ways is frozen to a trial, or one that failed to anything; or nobody says that a
log was cut off.
"""
import command
from command import PROBLEM, STRIDED

POINTWISE = "x=[2,16,14,14] w=[16,16,1,1] float nchw"


class Freeze(command.Case):
    def round_trip(self, *client, **first):
        first_log = self.record(*client, **first)
        done = self.convpin("freeze", "run.jsonl", "-o", "pins.toml")
        self.assertEqual(done.stdout, "")
        self.assertEqual(self.convpin("freeze", "run.jsonl").stdout, (self.folder / "pins.toml").read_text())
        second_log = self.record(*client, log="second.jsonl", options=["--config", "pins.toml"])
        return first_log, second_log

    def ran(self, log):
        """What ran most, by problem."""
        texts = {r["problem_id"]: r["problem"] for r in log if r["type"] == "problem"}
        counts = {(r["problem_id"], r["ran"]): r["calls"] for r in log if r["type"] == "count"}
        return {texts[problem]: ran for (problem, ran), _ in sorted(counts.items(), key=lambda item: item[1])}

    def test_the_second_run_is_pinned_to_what_the_first_ran(self):
        for api in ("graph", "legacy"):
            for variables in ({}, {"CONV_FWD_ALGO": "GEMM"}):
                with self.subTest(api=api, variables=variables):
                    first, second = self.round_trip("convclient", "--api", api, PROBLEM, STRIDED, POINTWISE, **variables)
                    self.assertEqual(len(self.ran(first)), 3)
                    self.assertEqual(self.ran(first), self.ran(second))
                    self.assertEqual({r["choice"] for r in second if r["type"] == "choice"}, {"set"})

    def test_a_benchmark_freezes_what_stayed(self):
        first, second = self.round_trip("convclient", "--benchmark", "--repeat", "4", PROBLEM)
        self.assertGreater(len([r for r in first if r["type"] == "choice"]), 1)
        self.assertEqual(self.ran(first), self.ran(second))

    def test_what_failed_is_left_out(self):
        self.record_failing()
        done = self.convpin("freeze", "failing.jsonl")
        self.assertEqual(done.stdout.count("[[rule]]"), 1)
        self.assertRegex(done.stderr, "left out: .*stride=2,2.*: it failed: rule stem asks for 6")

    def test_a_log_that_was_cut_off(self):
        """Of a program that died or still runs: whatever is made of its log says once that the last counts are missing."""
        self.record("convclient", PROBLEM, log="whole.jsonl")
        lines = (self.folder / "whole.jsonl").read_text().splitlines(keepends=True)
        self.assertIn('"end"', lines[-1])
        self.write("cut.jsonl", "".join(lines[:-1]))
        self.write("pins.toml", "version = 1\n")
        said = "convpin: cut.jsonl: the run did not end in an orderly way, or still goes on: the last counts are missing\n"
        for arguments in (["freeze", "LOG"], ["diff", "whole.jsonl", "LOG"], ["check", "pins.toml", "--log", "LOG"], ["tune", "LOG", "--rounds", "3"]):
            for log, times in (("cut.jsonl", 1), ("whole.jsonl", 0)):
                done = self.convpin(*(log if word == "LOG" else word for word in arguments))
                self.assertEqual((done.stderr.count(said), done.stderr.count("orderly")), (times, times), done.stderr)

    def test_where_nothing_ran_nothing_is_written(self):
        self.write("empty.jsonl", "")
        self.write("other.jsonl", '{"lr": 0.1}\n')
        self.write("pins.toml", "mine")
        for log, where in (("empty.jsonl", "empty.jsonl is empty"), ("other.jsonl", "other.jsonl:1"), ("none.jsonl", "none.jsonl")):
            done = self.convpin("freeze", log, "-o", "pins.toml", status=2)
            self.assertIn(where, done.stderr)
        header = '{"type":"header","schema":1,"run_id":"x","cudnn":"9.19.0","gpu":{"name":"NVIDIA H200"}}\n'
        self.write("idle.jsonl", header)
        self.assertIn("nothing to freeze", self.convpin("freeze", "idle.jsonl", "-o", "pins.toml", status=1).stderr)
        self.assertEqual((self.folder / "pins.toml").read_text(), "mine")
        self.record("convclient", PROBLEM)
        self.convpin("freeze", "run.jsonl", "-o", "no/such/folder/pins.toml", status=2)
        self.convpin("freeze", "run.jsonl", "-o", "pins.toml")


if __name__ == "__main__":
    command.main()
