"""The log, and what is said where: one JSON line a write, names with %p and friends, ranks, silence where nothing is asked.

Would fail when: a record is written in two pieces or is longer than a pipe takes at once; counts do not add up to the
calls that were made; a rank other than local rank 0 talks on stderr; a program for which nothing was asked is talked to,
computes something else, or finds a new file.
"""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import unittest

import children
from children import PROBLEM, STRIDED

CASES = [("--api", api, *more) for api in ("graph", "legacy") for more in ((), ("--benchmark",), ("--bias-relu",))]


class Log(children.Case):
    def test_nothing_asked(self):
        for options in CASES:
            with self.subTest(options):
                before = set(self.folder.iterdir()) | {self.folder / "trace.txt"}
                same = "--benchmark" not in options  # which engine is the fastest differs from run to run
                child = self.preloaded("convclient", "--check", *options, PROBLEM, STRIDED, log=None, same=same)
                self.assertEqual(child.stderr, "")
                self.assertEqual(set(self.folder.iterdir()) - before, set())
                bare = self.bare("convclient", "--check", *options, PROBLEM, STRIDED)
                self.assertEqual(set(child.executed()) if not same else child.trace,
                                 set(bare.executed()) if not same else bare.trace)

    def test_the_log_alone(self):
        for options in CASES:
            with self.subTest(options):
                same = "--benchmark" not in options
                child = self.preloaded("convclient", *options, "--repeat", "3", PROBLEM, STRIDED, same=same)
                self.assertEqual(set(child.choices()), {"left_alone"})
                self.assertEqual(child.log[-1]["calls"] + self.inside_find(child), len(child.trace))
                self.assertNotRegex(child.stderr, "warning|error| is set")

    def inside_find(self, child):
        """cudnnFind times algorithms inside cuDNN: executions that are no calls of the program's."""
        asked = [q for q in child.of_type("query") if "Find" in q["function"]]
        return sum(result["status"] == "ok" for q in asked for result in q["results"])

    def test_records(self):
        child = self.preloaded("convclient", PROBLEM, same=False, CONV_FWD_ALGO="2", RANK=3, LOCAL_RANK=0)
        header = child.log[0]
        self.assertEqual((header["schema"], header["rank"], header["local_rank"]), (1, 3, 0))
        self.assertEqual(header["host"], socket.gethostname())
        self.assertIn("convclient", header["command"])
        self.assertRegex(header["cudnn"], r"^9\.\d+\.\d+$")
        self.assertEqual(header["gpu"]["compute_capability"], 90)
        self.assertEqual({record["run_id"] for record in child.log}, {header["run_id"]})  # processes may share a file
        problem = child.of_type("problem")[0]
        self.assertEqual((problem["problem"], problem["api"]),
                         ("forward " + PROBLEM + " stride=1,1 dilation=1,1 groups=1", "graph"))
        self.assertEqual(child.log[-1] | {"type": "", "run_id": ""}, {"type": "", "run_id": "", "problems": 1, "calls": 1, "pinned_problems": 1,
                                                        "unsupported_problems": 0, "pinned_calls": 1,
                                                        "failed_problems": 0, "failed_calls": 0})

    def test_what_the_program_asked_cudnn_for(self):
        for options, function in (((), "cudnnGetConvolutionForwardAlgorithm_v7"),
                                  (("--benchmark",), "cudnnFindConvolutionForwardAlgorithmEx")):
            query, = self.preloaded("convclient", "--api", "legacy", *options, PROBLEM, same=not options).of_type("query")
            self.assertEqual(query["function"], function)
            self.assertEqual(sorted(r["algorithm"] for r in query["results"]), list(range(8)))

    @unittest.skipUnless(shutil.which("strace"), "no strace")
    def test_one_write_a_record(self):
        env = children.environment(CONV_FWD_ALGO="2", CONVPIN_PROFILE="engines", CONVPIN_LOG="log.jsonl")
        trace = self.folder / "strace.txt"
        done = subprocess.run(["strace", "-f", "-s", "5000", "-o", str(trace), "-y", "-e", "trace=write", "-E",
                               "LD_PRELOAD=" + children.LIBRARY, *children.command(["convclient", PROBLEM])],
                              env=env, cwd=self.folder, capture_output=True)
        if done.returncode != 0:
            self.skipTest("strace can't trace here")
        writes = re.findall(r'write\(\d+<[^>]*log\.jsonl>, "(.*)", (\d+)\) += (\d+)', trace.read_text())
        lines = (self.folder / "log.jsonl").read_bytes().splitlines(keepends=True)
        self.assertGreater(len(lines), 60)
        self.assertEqual([int(size) for _, size, _ in writes], [len(line) for line in lines])
        self.assertLess(max(len(line) for line in lines), 4096)

    def test_names(self):
        name = "log-%h-%r-%q{JOB}-%q{NOT_SET}-%%-%p.jsonl"
        self.preloaded("convclient", PROBLEM, log=name, JOB="j7", RANK="5")
        log, = self.folder.glob("log-*.jsonl")
        self.assertRegex(log.name, rf"^log-{re.escape(socket.gethostname())}-5-j7--%-\d+\.jsonl$")
        records = children.read_log(log)
        self.check_log(records)
        self.assertEqual(str(records[0]["pid"]), log.stem.rsplit("-", 1)[1])

    def test_two_runs_append_to_one_file(self):
        env = children.environment(LD_PRELOAD=children.LIBRARY, CONVPIN_LOG="both.jsonl")
        for _ in range(2):
            children.execute(("convclient", PROBLEM), self.folder, env)
        records = children.read_log(self.folder / "both.jsonl")
        begin = [i for i, record in enumerate(records) if record["type"] == "header"]
        self.assertEqual(len(begin), 2)
        self.assertNotEqual(records[0]["run_id"], records[begin[1]]["run_id"])
        self.check_log(records[:begin[1]])
        self.check_log(records[begin[1]:])

    def test_only_local_rank_0_talks(self):
        loud = self.preloaded("convclient", PROBLEM, same=False, CONV_FWD_ALGO="2", RANK="9", LOCAL_RANK="0")
        self.assertIn("is set", loud.stderr)
        for rank in ({"RANK": "1", "LOCAL_RANK": "1"}, {"OMPI_COMM_WORLD_LOCAL_RANK": "2"}, {"SLURM_LOCALID": "3"}):
            with self.subTest(rank):
                child = self.preloaded("convclient", PROBLEM, same=False, CONV_FWD_ALGO="2", **rank)
                self.assertEqual((child.stderr, child.choices()), ("", ["set"]))
                self.assertEqual(child.log[0]["local_rank"], int(list(rank.values())[-1]))
                self.assertEqual([r["type"] for r in child.log], [r["type"] for r in loud.log])
        self.assertEqual(self.preloaded("convclient", PROBLEM, CONV_FWD_ALGO="foo", LOCAL_RANK="1").stderr, "")

    def test_a_log_that_cant_be_written(self):
        (self.folder / "folder").mkdir()
        for name in ("none/log.jsonl", "folder", "/proc/log.jsonl"):
            with self.subTest(name):
                child = self.preloaded("convclient", PROBLEM, same=False, log=None, CONVPIN_LOG=name, CONV_FWD_ALGO="2")
                self.assertIn("is set", child.stderr)
                told = [line for line in child.warnings() if "log file" in line]
                self.assertEqual(len(told), 1)
                self.assertTrue(told[0].endswith("the run goes on without a log"))
        self.preloaded("convclient", PROBLEM, same=False, log=None, CONVPIN_LOG="/dev/full", CONV_FWD_ALGO="2")

    def test_a_pipe_that_nobody_reads(self):
        os.mkfifo(self.folder / "pipe")
        child = self.preloaded("convclient", PROBLEM, log=None, CONVPIN_LOG="pipe")  # must not wait for a reader
        self.assertEqual(len(child.warnings()), 1)

    def test_no_convolution_reached(self):
        for arguments in (("convclient", "--help"), children.on_python("pass")):
            with self.subTest(arguments):
                child = self.preloaded(*arguments, CONV_FWD_ALGO="2")
                self.assertRegex(child.stderr, "^convpin: 0 convolutions reached")
                self.assertEqual(child.stderr.count("\n"), 1)
                self.assertFalse(pathlib.Path(self.folder, "log.jsonl").exists())


if __name__ == "__main__":
    children.main()
