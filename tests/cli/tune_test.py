"""`convpin tune`, on the stand-in: its times are a CPU's, and no test depends on which engine is fastest.

Would fail when: a rule is written for what was not measured, is over its bound or may not be taken; a tuned file is not in
force when the program runs again; a tuning that was stopped begins anew, or loses what it had; a candidate's result is not
compared with float64; energy is not measured where it is asked for, or a clock that changes goes unseen; an engine is compiled
whose compilation nothing can repay, or is not where it may be taken; or a start that measured nothing doesn't say so, and why.
"""
import re
import signal
import subprocess

import command
from command import COMMAND, PROBLEM, STRIDED

OTHERS = ["backward_data " + PROBLEM, "backward_filter " + PROBLEM, "x=[2,16,14,14] w=[16,16,1,1] half nhwc", PROBLEM + " fused=add,relu"]
FEW = ["--rounds", "3"]
# The stand-in's NVML, whose counter moves fast enough for a test
NVML = {"LD_LIBRARY_PATH": f"{command.children.STANDIN}/nvml:{command.children.STANDIN}", "STANDIN_NVML_TICK_MS": 2}
SHORT = ["--energy-seconds", "0.02"]


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
        self.assertTrue(done.stderr.endswith("convpin: 6 rules in pins.toml; convpin run --config pins.toml -- ... uses them\n"), done.stderr)
        candidates, choices = self.measured("pins.toml.jsonl")
        self.assertEqual((len(candidates), len(choices)), (6, 6))
        self.assertEqual({c["choice"] for c in choices}, {"tuned"})
        for of, choice in zip(candidates, choices):
            own, = (c for c in of if c["framework_choice"])
            best, = (c for c in of if c["engine"] == choice["engine"])
            self.assertEqual(best["status"], "ok")
            self.assertFalse(any("host_timed" in c for c in of))
            self.assertLess(best["error"], 0.05)
            self.assertNotIn("DOWN_CONVERT_INPUTS", best["numerical_notes"])
            self.assertTrue(best is own or best["time_us"] < 0.98 * own["time_us"])
        self.convpin("check", "pins.toml", "--log", "run.jsonl")
        log = self.record("convclient", *problems, log="second.jsonl", options=["--config", "pins.toml"])
        self.assertEqual([(r["choice"], r["engine"]) for r in log if r["type"] == "choice"], [("set", c["engine"]) for c in sorted(choices, key=lambda c: c["problem_id"])])
        self.convpin("report", "pins.toml.jsonl", "-o", "report.html")
        self.convpin("freeze", "pins.toml.jsonl", "-o", "frozen.toml")
        self.assertEqual(*(re.findall("(?m)^algo = .*", (self.folder / name).read_text()) for name in ("frozen.toml", "pins.toml")))
        # what it took is not taken for what a program ran by itself, and a log of before, which says left_alone, is gone on with
        self.convpin("diff", "pins.toml.jsonl", "second.jsonl", status=0)
        text = (self.folder / "pins.toml.jsonl").read_text()
        self.write("pins.toml.jsonl", text.replace('"choice":"tuned"', '"choice":"left_alone"'))
        self.assertNotIn("[6/6", self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW).stderr)

    def test_fused_graphs_as_pytorch_builds_them(self):
        """Float between, half or bfloat16 in the end. One text from the first run to the last; the rules pin what they name."""
        problems = [f"x=[2,16,14,14] w=[16,16,3,3] {dtype} nhwc pad=1 ytype=float otype={dtype} fused={fused}"
                    for dtype in ("half", "bfloat16") for fused in ("add,relu", "add,add,relu")]
        log = self.record("convclient", "--check", *problems)
        texts = {r["problem_id"]: r["problem"] for r in log if r["type"] == "problem"}
        self.assertEqual({p["problem"] for p in self.json("list", *problems, "--device", "h200", status=None)}, set(texts.values()))
        ran = {texts[r["problem_id"]]: r["engine"] for r in log if r["type"] == "choice"}
        replayed = {row["problem"]: row for row in self.json("replay", "--log", "run.jsonl", *FEW)}
        self.assertEqual({text: row["engine"] for text, row in replayed.items()}, ran)
        for row in replayed.values():
            self.assertEqual(row["status"], "ok", row)
            self.assertTrue(0 < row["error"] < 0.02, row)  # rounded to half in the end, and once
        self.convpin("freeze", "run.jsonl", "-o", "frozen.toml")
        done = self.convpin("tune", "run.jsonl", "-o", "tuned.toml", *FEW)
        self.assertIn("4 rules in tuned.toml", done.stderr)
        tuned = {texts[r["problem_id"]]: r["engine"] for r in self.measured("tuned.toml.jsonl")[1]}
        for pins, wanted in (("frozen.toml", ran), ("tuned.toml", tuned)):
            again = self.record("convclient", "--check", *problems, log="again.jsonl", options=["--config", pins])
            same = {r["problem_id"]: r["problem"] for r in again if r["type"] == "problem"}
            self.assertEqual({(same[r["problem_id"]], r["choice"], r["engine"]) for r in again if r["type"] == "choice"},
                             {(text, "set", engine) for text, engine in wanted.items()})

    def test_what_ran_is_what_must_be_beaten(self):
        ran, = (r["engine"] for r in self.record("convclient", PROBLEM) if r["type"] == "choice")
        listed = [e["heuristics_rank"] for e in self.json("list", PROBLEM)[0]["engines"]]
        self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW)
        candidates, = self.measured("pins.toml.jsonl")[0]
        self.assertEqual([c["engine"] for c in candidates if c["framework_choice"]], [ran])
        self.assertEqual(candidates[0]["engine"], ran)
        self.assertEqual(candidates[0]["heuristics_rank"], 0)
        ranks = {c["heuristics_rank"] for c in candidates}
        self.assertLessEqual(set(range(min(10, len(listed)))), ranks)

    def test_what_another_gpu_ran_says_nothing_here(self):
        first, = (r["engine"] for r in self.record("convclient", PROBLEM) if r["type"] == "choice")
        log = (self.folder / "run.jsonl").read_text().replace(first, "eng0")
        for gpu, own in (("convpin stand-in (CPU)", "eng0"), ("NVIDIA A100", first)):
            self.write("theirs.jsonl", log.replace("convpin stand-in (CPU)", gpu))
            done = self.convpin("tune", "theirs.jsonl", "-o", f"{own}.toml", *FEW)
            candidates, = self.measured(f"{own}.toml.jsonl")[0]
            self.assertEqual([c["engine"] for c in candidates if c["framework_choice"]], [own])
            self.assertEqual("not of this GPU and cuDNN" in done.stderr, own == first)

    def test_what_cannot_be_captured_is_launched_one_by_one(self):
        ran, = (r["engine"] for r in self.record("convclient", PROBLEM) if r["type"] == "choice")
        self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW, STANDIN_FAIL_CAPTURE=ran.split("_")[0])
        candidates, = self.measured("pins.toml.jsonl")[0]
        self.assertEqual({c["engine"].split("_")[0] for c in candidates if "host_timed" in c}, {ran.split("_")[0]})
        self.assertTrue(candidates[0]["host_timed"])  # among the finalists whatever its time
        self.assertGreater(candidates[0]["time_us"], 0)

    def test_limits(self):
        self.record("convclient", PROBLEM)
        self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW, "--workspace-limit", "0", "--deterministic", "--tf32", "no")
        candidates, (choice,) = self.measured("pins.toml.jsonl")
        self.assertEqual(choice["workspace_bytes"], 0)
        self.assertNotIn("TENSOR_CORE", choice["numerical_notes"])
        self.assertTrue(all(c["workspace_bytes"] == 0 for c in candidates[0] if c["status"] == "ok"))
        self.convpin("tune", "run.jsonl", "-o", "least.toml", *FEW, "--policy", "least_memory")
        self.assertEqual(self.measured("least.toml.jsonl")[1][0]["workspace_bytes"], 0)

    def test_no_compilation_in_vain(self):
        self.record("convclient", PROBLEM, STRIDED)
        self.record("convclient", PROBLEM, log="one.jsonl")

        def plans_of_eng2(log, output, *options):
            """How many of its plans are built, and its candidates, the latest last."""
            (self.folder / "plans").write_text("")
            self.convpin("tune", log, "-o", output, *FEW, *options, STANDIN_COMPILED="eng2", STANDIN_TRACE_PLANS="plans")
            rows = [c for of in self.measured(f"{output}.jsonl")[0] for c in of if c["engine"].startswith("eng2_") or c["engine"] == "eng2"]
            self.assertTrue(all(not c["framework_choice"] and c["behavior_notes"] == ["RUNTIME_COMPILATION"] for c in rows), rows)
            return (self.folder / "plans").read_text().split().count("eng2"), rows

        never = ("--steps", "1e-9")  # not all that any convolution takes repays any compilation
        # Nothing is known of compilations at the first problem.
        built, (first, second) = plans_of_eng2("run.jsonl", "pins.toml", *never)
        self.assertEqual((built, first["status"], first["build_ms"] is None), (1, "ok", False))
        self.assertEqual((second["status"], second["build_ms"], second["time_us"]), ("skipped", None, None))
        self.assertRegex(second["reason"], r"^not built: compiled at run time, in \d+ ms or so, which all of the \S+ ms that the "
                                           r"framework's own choice takes would not repay in \d+ calls$")
        self.assertEqual(self.convpin("report", "pins.toml.jsonl").stdout.count("not built: compiled at run time"), 1)
        # It is known of an earlier start.
        self.assertEqual(plans_of_eng2("one.jsonl", "again.toml", *never)[0], 1)
        self.assertEqual(plans_of_eng2("run.jsonl", "again.toml", *never)[0], 0)
        # Where it is taken whatever it costs
        built, rows = plans_of_eng2("run.jsonl", "allowed.toml", *never, "--allow", "runtime_compilation")
        self.assertEqual((built, [c["status"] for c in rows]), (2, ["ok", "ok"]))

    def test_it_goes_on_where_it_was(self):
        self.record("convclient", PROBLEM, STRIDED)
        done = self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW, "--budget", "1 ms", status=1)
        self.assertIn("2 problems are not tuned yet", done.stderr)
        self.assertRegex(done.stderr, r'not one problem could be measured in --budget 1 ms: --budget "6 s" may do for all 2, and without --budget there are 30 min')
        self.assertFalse((self.folder / "pins.toml").exists())
        self.record("convclient", PROBLEM, log="one.jsonl")
        self.assertEqual(self.convpin("tune", "one.jsonl", "-o", "pins.toml", *FEW).stderr.count(" s left]"), 1)
        first = (self.folder / "pins.toml").read_text()
        done = self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW)
        self.assertEqual((done.stderr.count(" s left]"), done.stderr.count("stride=2,2")), (1, 1))
        for line in first.splitlines():
            if line.startswith(("problem", "algo")):
                self.assertIn(line, (self.folder / "pins.toml").read_text())
        self.assertNotIn("measured anew", done.stderr)
        done = self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW)
        self.assertEqual(done.stderr.count(" s left]"), 0)
        self.assertIn("nothing was measured anew: pins.toml.jsonl has 2 problems under these options", done.stderr)
        done = self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW, "--deterministic")  # another question
        self.assertEqual(done.stderr.count(" s left]"), 2)

    def test_what_nothing_can_run_is_not_measured_again(self):
        self.record("convclient", PROBLEM)
        none = {"STANDIN_FAIL_EXECUTE": ",".join(f"eng{n}" for n in range(100))}
        for times in (1, 0):
            done = self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW, status=1, **none)
            self.assertEqual((done.stderr.count(" s left]"), "nothing was tuned" in done.stderr), (times, True), done.stderr)

    def test_ctrl_c_keeps_what_is_done(self):
        # So many that some are left, however late the signal comes
        self.record("convclient", *(f"x=[{n},64,28,28] w=[64,64,3,3] float nchw pad=1,1" for n in range(1, 13)))
        with subprocess.Popen([COMMAND, "tune", "run.jsonl", "-o", "pins.toml"], env=command.children.environment(), cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            said = process.stderr.readline()
            self.assertIn("[1/12", said)
            process.send_signal(signal.SIGINT)
            said += process.stderr.read()
            process.wait(timeout=120)
        self.assertEqual(process.returncode, 0, said)
        done = said.count(" s left]")  # more than the first where the signal came late
        self.assertIn(f"{12 - done} problem", said)
        self.assertIn("interrupted", said)
        self.assertEqual((self.folder / "pins.toml").read_text().count("[[rule]]"), done)

    def rules_of(self, name):
        """The problem and the place of each rule of a file."""
        answer = self.json("check", name)
        return [(r["for"], r["asks"]) for r in answer["rules"]]

    def test_refresh(self):
        """A file of an older cuDNN, without the log that it was made from: what is stale is tuned, the rest stays."""
        self.record("convclient", PROBLEM, STRIDED)
        self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW)
        fresh = (self.folder / "pins.toml").read_text()
        version = fresh.partition('cudnn = "')[2].partition('"')[0]
        head, first, second = fresh.split("\n[[rule]]\n")
        other_gpu = '\n# theirs\n[[rule]]\nproblem = "' + STRIDED + '"\nalgo = "eng0"\nmatch = { device = "NVIDIA A100" }\n'
        mine = '\n# mine\n[[rule]]\noperation = "any"\nalgo = -1  # the rest\n'
        stale = first.replace(f'cudnn = "{version}"', 'cudnn = "9.1.0"')
        self.assertNotEqual(stale, first)
        old = head + "\n[[rule]]\n" + stale + "\n[[rule]]\n" + second + other_gpu + mine
        self.write("old.toml", old)
        done = self.convpin("tune", "--refresh", "old.toml", "-o", "new.toml", *FEW)
        self.assertIn("old.toml: 3 rules kept, 1 rule replaced, 1 new", done.stderr)
        self.assertEqual(done.stderr.count(" s left]"), 1)
        # Nobody counted calls: none are made up, in the log nor in the comment.
        self.assertNotIn("count", [r["type"] for r in command.children.read_log(self.folder / "new.toml.jsonl")])
        self.assertIn("graph API", (self.folder / "new.toml").read_text())
        new = (self.folder / "new.toml").read_text()
        self.assertNotIn("9.1.0", new)
        for kept in (head, second, other_gpu, mine):
            self.assertIn(kept.strip(), new)
        self.convpin("check", "new.toml", "--log", "run.jsonl", status=1)  # theirs is for another GPU
        log = self.record("convclient", PROBLEM, STRIDED, log="second.jsonl", options=["--config", "new.toml"])
        self.assertEqual([r["choice"] for r in log if r["type"] == "choice"], ["set", "set"])
        done = self.convpin("tune", "--refresh", "new.toml", "-o", "new.toml", *FEW)  # nothing is left to do
        self.assertEqual((done.stderr.count(" s left]"), (self.folder / "new.toml").read_text()), (0, new))
        # Beside a log: also what no rule covers; and with --keep the older rule stays.
        self.write("old.toml", head + "\n[[rule]]\n" + stale)
        done = self.convpin("tune", "--refresh", "old.toml", "run.jsonl", "-o", "new.toml", "--keep", *FEW)
        self.assertIn("old.toml: 1 rule kept, 0 rules replaced, 2 new", done.stderr)
        self.assertIn("9.1.0", (self.folder / "new.toml").read_text())
        # What was not tuned stays as it was, to be gone on with.
        done = self.convpin("tune", "--refresh", "old.toml", "-o", "none.toml", "--budget", "1 ms", *FEW)
        self.assertIn("1 problem is not tuned yet", done.stderr)
        self.assertEqual((self.folder / "none.toml").read_text().strip(), (head + "\n[[rule]]\n" + stale).strip())
        self.convpin("tune", "-o", "new.toml", status=2)
        self.convpin("tune", "--refresh", "run.jsonl", status=2)

    def test_generalize_needs_no_new_measurement(self):
        """An exact rule for each size stays first, whatever comes behind; which engine it is depends on the machine."""
        sizes = [PROBLEM.replace("[2,", f"[{n},") for n in (1, 2, 4)]
        self.record("convclient", *sizes)
        self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW)
        exact = (self.folder / "pins.toml").read_text()
        done = self.convpin("tune", "run.jsonl", "-o", "pins.toml", "--generalize", *FEW)
        self.assertEqual(done.stderr.count(" s left]"), 0)
        said = int(re.search(r"(\d+) rules? for other batch or image sizes", done.stderr)[1])
        text = (self.folder / "pins.toml").read_text()
        self.assertTrue(text.startswith(exact))
        self.assertEqual(text[len(exact):].count("x=[*,16,14,14]"), said)
        self.convpin("check", "pins.toml")

    def test_what_cannot_be_tuned(self):
        self.record("convclient", "--api", "legacy", PROBLEM)
        self.assertIn("legacy", self.convpin("tune", "run.jsonl", "-o", "pins.toml", status=1).stderr)
        self.record("convclient", PROBLEM)
        self.convpin("tune", "run.jsonl", "-o", "pins.toml", "--budget", "1 h", *FEW)  # as the help has it
        for wrong in (["--budget", "soon"], ["--allow", "everything"], ["--workspace-limit", "small"], ["--policy", "prettiest"]):
            self.convpin("tune", "run.jsonl", *wrong, status=2)

    def test_no_log_is_overwritten(self):
        """Not even by another name of it, nor by tune's own log."""
        self.record("convclient", PROBLEM)
        before = (self.folder / "run.jsonl").read_text()
        (self.folder / "link.jsonl").symlink_to("run.jsonl")
        for command_line in (["freeze", "run.jsonl", "-o", "run.jsonl"], ["report", "run.jsonl", "-o", "link.jsonl"],
                             ["tune", "run.jsonl", "-o", "run.jsonl"], ["tune", "run.jsonl", "-o", "run"]):
            self.assertIn("it needs another name", self.convpin(*command_line, status=2).stderr)
        self.assertEqual((self.folder / "run.jsonl").read_text(), before)

    def test_what_is_not_kept_is_not_gone_on_with(self):
        self.record("convclient", PROBLEM, STRIDED)
        self.assertIn("with -o what is measured is kept", self.convpin("tune", "run.jsonl", "--budget", "1 ms", status=1).stderr)
        self.assertIn("the same command goes on", self.convpin("tune", "run.jsonl", "-o", "pins.toml", "--budget", "1 ms", status=1).stderr)


class Energy(command.Case):
    def candidates(self, log):
        return [c for c in command.children.read_log(self.folder / log) if c["type"] == "candidate"]

    def test_it_is_measured_and_decides(self):
        self.record("convclient", PROBLEM)
        done = self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW, *SHORT, "--policy", "least_energy", **NVML, STANDIN_NVML_WATTS=50)
        # Watts are energy by a clock, between which a busy machine may stop the process: energy_test.cpp says how many, by a clock
        # of its own.
        self.assertGreater(float(re.search(r"the idle GPU takes (\d+(\.\d+)?) W", done.stderr)[1]), 0)
        measured = [c for c in self.candidates("pins.toml.jsonl") if "energy_mj" in c]
        self.assertTrue(1 <= len(measured) <= 4)
        self.assertTrue(any(c["framework_choice"] for c in measured))
        for c in measured:
            self.assertGreater(c["power_w"], 0)
            self.assertGreater(c["energy_mj"], 0)
            self.assertGreaterEqual(c["energy_sd_mj"], 0)
        self.assertIn("mJ", (self.folder / "pins.toml").read_text())
        choice, = (r for r in command.children.read_log(self.folder / "pins.toml.jsonl") if r["type"] == "choice")
        self.assertIn(choice["engine"], [c["engine"] for c in measured])
        rows = self.json("replay", PROBLEM, "--candidate", "eng2", "--candidate", "eng0", "--energy", *FEW, *SHORT, **NVML)
        self.assertTrue(all(row["energy_mj"] > 0 for row in rows), rows)
        self.assertNotIn("energy_mj", self.json("replay", PROBLEM, *FEW, **NVML)[0])

    def test_where_it_cannot_be_measured(self):
        self.record("convclient", PROBLEM)
        self.assertIn("energy can't be measured", self.convpin("tune", "run.jsonl", "--energy", *FEW, status=2).stderr)
        stands_still = NVML | {"STANDIN_NVML_WATTS": 0}
        self.assertIn("no energy counter that moves", self.convpin("tune", "run.jsonl", "--energy", *FEW, status=2, **stands_still).stderr)

    def test_the_clock_is_watched(self):
        self.record("convclient", PROBLEM)
        for variables, says in (({"STANDIN_NVML_CLOCKS": "1980,1500,1980,1700"}, "measured while the SM clock went from 1980 to 1700 MHz"),
                                ({"STANDIN_NVML_REASONS": 0x40}, "measured while HW thermal slowdown (at 50 C)"),
                                ({"STANDIN_NVML_CLOCKS": "1980,1500,1980,1970"}, None), ({"STANDIN_NVML_REASONS": 0x4}, None)):
            (self.folder / "pins.toml.jsonl").unlink(missing_ok=True)
            done = self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW, **NVML, **variables)
            self.assertEqual("1 problem was measured while" in done.stderr, says is not None, done.stderr)
            self.assertEqual("at its power limit" in done.stderr, variables.get("STANDIN_NVML_REASONS") == 0x4)
            if says:
                self.assertIn(says, (self.folder / "pins.toml").read_text())
        # What was measured first counts beside what is measured around the best of it.
        (self.folder / "pins.toml.jsonl").unlink()
        self.convpin("tune", "run.jsonl", "-o", "pins.toml", *FEW, "--knobs", **NVML, STANDIN_NVML_CLOCKS="1980,1500,1980,1700")
        self.assertIn("measured while the SM clock went from 1980 to 1700 MHz", (self.folder / "pins.toml").read_text())


if __name__ == "__main__":
    command.main()
