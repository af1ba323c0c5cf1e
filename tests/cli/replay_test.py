"""`convpin replay`, on the stand-in: its times are a CPU's, and no test depends on which engine is fastest.

Would fail when: something else is run than what ran most in each log, what was named, or all engines; a row does not tell
where it comes from; a candidate's result is not compared with float64; the programs for a bug report don't run as they are,
or differ in what they compute, find or say.
"""
import ast
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

import command
from command import PROBLEM, STRIDED, children

OTHERS = ["backward_data " + PROBLEM, "backward_filter " + PROBLEM, "x=[2,16,14,14] w=[16,16,1,1] half nhwc", PROBLEM + " fused=add,relu"]
LIKE_PYTORCH = "x=[2,16,14,14] w=[16,16,3,3] half nhwc pad=1 ytype=float otype=half fused=add,add,relu"
FEW = ["--rounds", "3"]


class Replay(command.Case):
    def test_candidates(self):
        rows = self.json("replay", PROBLEM, "--candidate", "eng2", "--candidate", "DIRECT", "--candidate", "eng12", *FEW)
        self.assertEqual({row["engine"]: row["status"] for row in rows}, {"eng2": "ok", "eng0": "ok", "eng12": "unsupported"})
        for row in rows:
            if row["status"] == "ok":
                self.assertGreater(row["time_ms"], 0)
                self.assertTrue(0 < row["error"] < 1e-5)
        first, = self.json("replay", PROBLEM, *FEW)
        listed, = self.json("list", PROBLEM)
        self.assertEqual([first["engine"]], [e["engine"] for e in listed["engines"] if e["heuristics_rank"] == 0])
        self.assertEqual(len(self.json("replay", PROBLEM, "--all", *FEW)), len(listed["engines"]))

    def test_what_ran_in_a_log(self):
        self.record("convclient", PROBLEM, *OTHERS, CONV_FWD_ALGO="GEMM")
        rows = {row["problem"].split()[0]: row for row in self.json("replay", "--log", "run.jsonl", "--cold-cache", *FEW)}
        self.assertEqual(set(rows), {"forward", "backward_data", "backward_filter"})
        ran = self.json("replay", "--log", "run.jsonl", PROBLEM, *FEW)
        self.assertEqual([(row["engine"], row["logs"]) for row in ran][0], ("eng2", ["run.jsonl"]))

    def test_what_ran_in_each_of_several_logs(self):
        self.record("convclient", PROBLEM, PROBLEM, log="a.jsonl", CONV_FWD_ALGO="GEMM")
        self.record("convclient", PROBLEM, STRIDED, log="b.jsonl", CONV_FWD_ALGO="DIRECT")
        self.convpin("run", "--record", "a.jsonl", "--", *children.command(["convclient", PROBLEM]), CONV_FWD_ALGO="IMPLICIT_GEMM")  # less often
        self.convpin("tune", "a.jsonl", "-o", "pins.toml", *FEW)
        tuned, = (r for r in children.read_log(self.folder / "pins.toml.jsonl") if r["type"] == "choice")
        logs = ["--log", "a.jsonl", "--log", "b.jsonl", "--log", "pins.toml.jsonl"]
        expected = {}
        for engine, log in (("eng2", "a.jsonl"), ("eng0", "b.jsonl"), (tuned["engine"], "pins.toml.jsonl")):
            expected.setdefault(engine, []).append(log)
        rows = self.json("replay", *logs, *FEW)
        self.assertEqual({row["engine"]: row["logs"] for row in rows if "stride=1,1" in row["problem"]}, expected)
        self.assertEqual([(row["engine"], row["logs"]) for row in rows if "stride=2,2" in row["problem"]], [("eng0", ["b.jsonl"])])
        # What is named comes beside what ran; each configuration once
        rows = self.json("replay", *logs, "--candidate", "-1", "--candidate", "eng0", *FEW)
        rows = {row["engine"]: row for row in rows if "stride=1,1" in row["problem"]}
        self.assertIn("b.jsonl", rows["eng0"]["logs"])
        first, = (row for row in rows.values() if row["heuristics_rank"] == 0)
        self.assertIn("-1", first["candidate"])
        self.assertLessEqual(set(expected), set(rows))

    def test_an_engine_that_does_not_exist(self):
        row, = self.json("replay", PROBLEM, "--candidate", "eng999", *FEW, status=1)
        self.assertEqual((row["candidate"], row["status"], row["reason"]), (["eng999"], "skipped", "this cuDNN has no engine for it"))

    def test_a_wrong_result_is_refused(self):
        rows = self.json("replay", PROBLEM, "--candidate", "eng2", *FEW, status=1, STANDIN_FAIL_EXECUTE="eng2")
        self.assertNotEqual(rows[0]["status"], "ok")
        self.convpin("replay", PROBLEM, "--candidate", "eng1e", status=2)
        self.assertIn("can't be checked", self.json("replay", "x=[1,16,8,8] w=[16,16,1,1] int8", status=1)[0]["reason"])

    def test_what_needs_too_much_memory_takes_none_from_others(self):
        candidates = ["--candidate", "eng41", "--candidate", "eng2"]
        needs = {row["engine"].split("_")[0]: row["workspace_bytes"] for row in self.json("replay", PROBLEM, *candidates, *FEW)}
        self.assertTrue(0 < needs["eng41"] < needs["eng2"], needs)
        rows = {row["engine"].split("_")[0]: row for row in self.json("replay", PROBLEM, *candidates, *FEW, STANDIN_LARGEST_BUFFER=needs["eng2"] - 1)}
        self.assertEqual({engine: row["status"] for engine, row in rows.items()}, {"eng41": "ok", "eng2": "no_memory"}, rows)

    def test_legacy_algorithms(self):
        for operation, ran in (("forward ", {0, 1, 2, 3}), ("backward_data ", {0, 1}), ("backward_filter ", {0, 1})):
            rows = self.json("replay", "--legacy", operation + PROBLEM, *FEW)
            status = {row["algo"]: row["status"] for row in rows}
            self.assertLessEqual(ran, {algo for algo in status if status[algo] == "ok"}, rows)
            for row in rows:
                self.assertEqual((row["api"], row["engine"]), ("legacy", None))
                self.assertTrue(row["status"] != "ok" or (row["time_ms"] > 0 and 0 < row["error"] < 0.05), row)
        self.assertEqual(status[4], "unsupported")
        row, = self.json("replay", "--legacy", PROBLEM, "--candidate", "2", *FEW, status=1, STANDIN_FAIL_EXECUTE="algo2")
        self.assertIn("EXECUTION_FAILED", row["reason"])
        self.convpin("replay", "--legacy", PROBLEM, "--candidate", "eng2", status=2)

    def test_what_ran_on_the_legacy_api(self):
        self.record("convclient", "--api", "legacy", PROBLEM, log="legacy.jsonl", CONV_FWD_ALGO="GEMM")
        self.record("convclient", PROBLEM, log="graph.jsonl", CONV_FWD_ALGO="GEMM")
        rows = self.json("replay", "--log", "legacy.jsonl", "--log", "graph.jsonl", *FEW)
        self.assertEqual({(row["api"], row["algo"], *row["logs"]) for row in rows}, {("legacy", 2, "legacy.jsonl"), ("graph", 2, "graph.jsonl")})

    def test_what_the_legacy_api_has_not_is_said_before_anything_runs(self):
        self.record("convclient", "--api", "legacy", PROBLEM)
        for arguments in (["--log", "run.jsonl", "--cold-cache"], ["--log", "run.jsonl", "--energy"], ["--legacy", PROBLEM, "--cold-cache"]):
            done = self.convpin("replay", *arguments, status=2, STANDIN_TRACE="trace")
            self.assertIn(f"{arguments[-1]}: not of the legacy API's algorithms", done.stderr)
            self.assertFalse((self.folder / "trace").exists())

    def test_a_logs_line_replays_its_choice(self):
        for api in ("graph", "legacy"):
            for problem in (PROBLEM, LIKE_PYTORCH):
                choice, = (r for r in self.record("convclient", "--api", api, problem) if r["type"] == "choice")
                row, = self.json(*shlex.split(choice["replay"])[1:], *FEW)
                self.assertEqual((row["api"], row["engine"], row["status"]), (api, choice["engine"], "ok"))
                self.assertEqual(row["algo"] if api == "legacy" else None, choice["algorithm"] if api == "legacy" else None)

    def test_a_logs_line_replays_a_candidate(self):
        for api in ("graph", "legacy"):
            log = self.record("convclient", "--api", api, PROBLEM, CONVPIN_PROFILE="algorithms")
            gemm, = (r for r in log if r["type"] == "candidate" and r["algorithm"] == 2)  # not what ran
            row, = self.json(*shlex.split(gemm["replay"])[1:], *FEW)
            self.assertEqual((row["api"], row["engine"], row["algo"], row["status"]), (api, gemm["engine"], 2, "ok"))

    def driver_on_host(self):
        source = pathlib.Path(__file__).with_name("cuda_on_host.c")
        subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", "libcuda.so.1"], cwd=self.folder, check=True)

    def includes(self):
        lines = (pathlib.Path(command.COMMAND).parent / "CMakeCache.txt").read_text().splitlines()
        cache = dict(line.split("=", 1) for line in lines if "=" in line)
        return ["-isystem", cache["CUDA_INCLUDE_DIR:PATH"], "-isystem", cache["CUDNN_INCLUDE_DIR:PATH"]]

    def program(self, *arguments, before=children.STANDIN):
        """A child that finds its libraries in a folder and in the test's own."""
        environment = children.environment(LD_LIBRARY_PATH=f"{before}:{self.folder}")
        return subprocess.run(arguments, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120)

    @unittest.skipUnless(shutil.which("g++"), "no compiler here")
    def test_programs_for_a_bug_report(self):
        """C++ compiles without a warning, Python is 3.8's and needs its standard library alone. Both run on the stand-in, with the
        driver's functions on host memory, and say the same: the same data went through the same plan, or the same step failed.
        """
        self.driver_on_host()
        checksums = []
        for problem, engine in ((PROBLEM, "eng2"), ("backward_data x=[2,16,14,14] w=[16,4,3,3] half nhwc dilation=2 groups=4", "eng0"),
                                ("backward_filter x=[2,8,6,6,6] w=[8,8,3,3,3] bfloat16 ndhwc", "eng0"),
                                ("x=[2,16,14,14] w=[16,16,3,3] double stride=2", "eng0"),
                                ("x=[1,8,360,360] w=[4,8,1,1] float nchw", "eng0"),  # more elements than the data's period
                                (PROBLEM + " fused=add,relu", "eng0"), (PROBLEM + " fused=add,add,relu", "eng0"),
                                (LIKE_PYTORCH, "eng0"),
                                (PROBLEM + " fused=add", "eng0"),  # replay has no reference for it, and doesn't run it
                                (PROBLEM, "eng12"), (PROBLEM, "eng38_k2=999")):
            with self.subTest(problem=problem, engine=engine):
                of = [problem, "--candidate", engine]
                cpp, python = (self.convpin("replay", "--repro", language, *of).stdout for language in ("cpp", "python"))
                self.write("repro.cpp", cpp)
                built = self.program("g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", *self.includes(), "repro.cpp", "libcuda.so.1",
                                     children.STANDIN + "/libcudnn.so.9", "-o", "repro")
                self.assertEqual(built.returncode, 0, built.stderr + cpp)
                done = self.program("./repro")
                replayed, = self.json("replay", *of, *FEW, status=None)
                unchecked = "can't be checked" in str(replayed["reason"])  # by replay, which then doesn't run it
                fails = replayed["status"] != "ok" and not unchecked
                self.assertEqual(done.returncode, int(fails), done.stdout + done.stderr + str(replayed))
                if done.returncode == 0:
                    workspace = r"\d+" if unchecked else replayed["workspace_bytes"]
                    self.assertRegex(done.stdout, rf"^cuDNN \d+ on the host\nworkspace: {workspace} bytes\n"
                                                  r"checksum: [0-9a-f]{8}, first NaN: -1 \(none\)\ntime: .* ms\n$")
                    checksums.append(done.stdout.splitlines()[2])
                else:
                    self.assertRegex(done.stdout, r"\n(finalize|set) .*: CUDNN_STATUS_\w+: ")
                self.write("repro.py", python)
                ast.parse(python, feature_version=(3, 8))
                same = self.program(sys.executable, "-S", "-W", "error", "repro.py")
                self.assertEqual((same.returncode, same.stdout, same.stderr), (done.returncode, done.stdout, ""))
        self.assertEqual((len(checksums), len(set(checksums))), (9, 9), checksums)  # what was computed is in the checksum

    @unittest.skipUnless(shutil.which("g++"), "no compiler here")
    def test_a_programs_first_nan(self):
        """Where the data's -1 is made a NaN in w: in channels last, the first output channel whose filter has one."""
        seed, found = 2, []
        for i in range(32):
            seed = (seed * 1664525 + 1013904223) % 2**32
            if (seed >> 16) % 5 == 0:
                found.append(i // 2)
        self.driver_on_host()
        for language, line in (("cpp", "w_data = filled(64, 2, {0xbc00,"), ("python", 'w_data = filled(32, "H", [0xbc00,')):
            text = self.convpin("replay", "--repro", language, "x=[1,2,5,7] w=[16,2,1,1] half nhwc", "--candidate", "eng0").stdout
            self.assertIn(line, text)
            self.write("repro." + language, text.replace(line, line.replace("0xbc00", "0x7e00")))
        compiled = self.program("g++", "-std=c++17", *self.includes(), "repro.cpp", "libcuda.so.1",
                                children.STANDIN + "/libcudnn.so.9", "-o", "repro")
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        cpp, python = self.program("./repro"), self.program(sys.executable, "-S", "repro.python")
        self.assertRegex(cpp.stdout, rf"checksum: [0-9a-f]{{8}}, first NaN: {found[0]}\n")
        self.assertGreater(found[0], 0)
        self.assertEqual(python.stdout, cpp.stdout)

    @unittest.skipUnless(shutil.which("gcc"), "no compiler here")
    def test_where_the_python_program_finds_cudnn(self):
        """By its argument, by the loader, else in NVIDIA's wheel; else it says what to do."""
        self.write("repro.py", self.convpin("replay", "--repro", "python", PROBLEM, "--candidate", "eng2").stdout)
        self.driver_on_host()
        self.write("libcudnn.so.9", "")  # what the loader finds can't be loaded
        python = [sys.executable, "-S", "repro.py"]
        done = self.program(*python, before=self.folder)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"libcudnn\.so\.9.*; its path may be the argument")
        named = self.program(*python, children.STANDIN + "/libcudnn.so.9", before=self.folder)
        self.assertEqual(named.returncode, 0, named.stderr)
        shutil.copytree(children.STANDIN, self.folder / "nvidia" / "cudnn" / "lib")
        self.assertEqual(self.program(*python, before=self.folder).stdout, named.stdout)

    def test_programs_that_are_refused(self):
        for language in ("cpp", "python"):
            for wrong in (["--candidate", "DIRECT"], [], ["--candidate", "eng1", "--candidate", "eng2"]):
                self.convpin("replay", "--repro", language, PROBLEM, *wrong, status=2)
            for problem, why in (("x=[1,16,8,8] w=[16,16,1,1] int8", "no data of type int8"), (PROBLEM + " fused=gen_stats", "gen_stats"),
                                 (PROBLEM + " fused=pre.relu", "pre.relu")):
                done = self.convpin("replay", "--repro", language, problem, "--candidate", "eng1", status=2)
                self.assertIn(why, done.stderr)
                self.assertEqual(done.stdout, "")
            for other in (["--json"], ["--all"], ["--legacy"], ["--cudnn", children.STANDIN]):
                done = self.convpin("replay", "--repro", language, PROBLEM, "--candidate", "eng1", *other, status=2)
                self.assertIn(other[0], done.stderr)
        # A log's, where none is named; what is named comes in its place
        self.record("convclient", PROBLEM, CONV_FWD_ALGO="GEMM")
        of = ["replay", "--repro", "cpp", "--log", "run.jsonl"]
        ran, named = (self.convpin("replay", "--repro", "cpp", PROBLEM, "--candidate", engine).stdout for engine in ("eng2", "eng0"))
        self.assertNotEqual(ran, named)
        self.assertEqual((self.convpin(*of).stdout, self.convpin(*of, "--candidate", "eng0").stdout), (ran, named))
        self.convpin("replay", "--repro", "fortran", PROBLEM, "--candidate", "eng1", status=2)

    def two_cudnns(self):
        """Two folders: the stand-in as an H200, and as a GPU of sm_80, which has other engines."""
        for name in "ab":
            shutil.copytree(children.STANDIN, self.folder / name)
        shutil.copy(self.folder / "b" / "sm80-deviceprop.json", self.folder / "b" / "h200-deviceprop.json")

    def turns(self):
        """Which of the two each process opened, by the loader's own notes, a file a process; takes them away."""
        files = sorted(self.folder.glob("loaded.*"), key=lambda path: path.stat().st_mtime_ns)
        found = [re.search(r"/([ab])/libcudnn\.so", path.read_text()) for path in files]
        for path in files:
            path.unlink()
        return [match[1] for match in found if match]

    def test_two_cudnns_in_turns(self):
        self.two_cudnns()
        # Engine 12 (WINOGRAD) has no plan on sm_90, and one on sm_80
        both = [PROBLEM, "--candidate", "eng2", "--candidate", "eng12", *FEW, "--alternations", "2"]
        for first, second, verdict in (("a", "b", "only B"), ("b", "a", "only A")):
            done = self.convpin("replay", "--json", *both, "--cudnn", first, "--cudnn", second, status=None,
                                LD_DEBUG="files", LD_DEBUG_OUTPUT=self.folder / "loaded")
            rows = {row["candidate"]: row for row in json.loads(done.stdout)}
            self.assertEqual(rows["eng12"]["verdict"], verdict)
            self.assertIsNone(rows["eng12"]["ratio"])
            self.assertIn(rows["eng2"]["verdict"], ("faster", "slower", "same"))
            self.assertAlmostEqual(rows["eng2"]["ratio"], rows["eng2"]["time_ms_b"] / rows["eng2"]["time_ms_a"])
            self.assertEqual(done.returncode, int("only A" in (verdict, rows["eng2"]["verdict"]) or rows["eng2"]["verdict"] == "slower"), done.stderr)
            self.assertIn("slower and faster are by more than 5 % and the spread", done.stderr)
            self.assertEqual(re.findall(r"/([ab])/libcudnn", done.stderr), [first, second])  # said once, and not in each turn
            self.assertEqual(self.turns(), [first, second] * 2)
        done = self.convpin("replay", "--json", PROBLEM, "--candidate", "eng999", *FEW, "--cudnn", "a", "--cudnn", "b", status=1)
        self.assertEqual([row["verdict"] for row in json.loads(done.stdout)], ["neither"])
        self.assertIn("nothing ran on either side", done.stderr)
        self.convpin("replay", PROBLEM, "--cudnn", "a", "--cudnn", "nowhere", status=2)
        self.convpin("replay", PROBLEM, *(word for name in "aba" for word in ("--cudnn", name)), status=2)


if __name__ == "__main__":
    command.main()
