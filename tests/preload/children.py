"""What the tests of this folder share: running a program bare and preloaded, and reading what it leaves behind.

Would fail for any program that `Case.preloaded` runs: a status other than the bare run's, a word of ours on stdout,
another output where the library should change nothing, a log that is not as documented.
"""
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

LIBRARY = os.environ["CONVPIN_LIBRARY"]
CLIENTS = pathlib.Path(os.environ["CONVPIN_CLIENTS_DIR"])
STANDIN = os.environ["CONVPIN_STANDIN_DIR"]
CUDNN = os.environ["CUDNN_LIBRARY_DIR"]

PROBLEM = "x=[2,16,14,14] w=[16,16,3,3] float nchw pad=1,1"
STRIDED = PROBLEM + " stride=2,2"

# What a program's own algorithm is called by the stand-in. Graph: the engines of a convolution with nothing fused.
LEGACY_RUNS = {0: "implicit_gemm", 1: "implicit_gemm", 2: "im2col_gemm", 3: "direct", 4: "fft", 5: "fft_tiling",
               7: "winograd_nonfused"}
ENGINE_RUNS = {"eng28": "implicit_gemm", "eng2": "im2col_gemm", "eng0": "direct"}

# What must not reach a child from the environment that the tests run in.
OURS = ("CONV_", "CONVPIN_", "STANDIN_", "LD_", "CUDNN_", "RANK", "LOCAL_RANK", "OMPI_", "PMI", "SLURM_", "MPI_")


@dataclasses.dataclass
class Child:
    status: int
    stdout: str
    stderr: str
    trace: list     # what the stand-in executed: (api, engine or algorithm, its own algorithm)
    log: list       # the log's records
    folder: str     # its working directory

    def of_type(self, name):
        return [record for record in self.log if record["type"] == name]

    def choices(self):
        return [record["choice"] for record in self.of_type("choice")]

    def fields(self, line=0):
        """What convclient says of one problem: {"ran": "eng2", "workspace": "0", "checksum": ...}."""
        words = self.stdout.splitlines()[line].rsplit(": ", 1)[1].split()
        return {"ran": words[0]} | dict(word.split("=", 1) for word in words[1:])

    def warnings(self):
        return [line for line in self.stderr.splitlines() if line.startswith("convpin: warning:")]

    def engines(self):
        """What ran, by the programs' own words: {"eng2", "algo2"}."""
        return set(re.findall(r"\b(eng\d+|algo\d+)", self.stdout))

    def executed(self):
        """The engines (without knobs) or algorithms that ran, in order, each once where it repeats."""
        return list(dict.fromkeys(what for _, what, _ in self.trace))


def environment(standin=True, **variables):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    kept["LD_LIBRARY_PATH"] = STANDIN if standin else CUDNN
    kept.update({name: str(value) for name, value in variables.items()})
    return {name: value for name, value in kept.items() if value != ""}


def command(arguments):
    """The first argument is a client's name, or a path."""
    client = CLIENTS / arguments[0]
    return [str(client) if client.exists() else arguments[0], *arguments[1:]]


def lines_of(path):
    return path.read_text().splitlines() if path.is_file() else []


def execute(arguments, folder, env, **options):
    trace = pathlib.Path(folder) / "trace.txt"
    trace.unlink(missing_ok=True)
    done = subprocess.run(command(arguments), env=env | {"STANDIN_TRACE": str(trace)}, cwd=folder, capture_output=True,
                          text=True, timeout=60, **options)
    return Child(done.returncode, done.stdout, done.stderr, [tuple(line.split()) for line in lines_of(trace)], [],
                 str(folder))


def read_log(path):
    return [json.loads(line) for line in lines_of(pathlib.Path(path))]


def on_python(code):
    """A Python program whose library, linked to cuDNN, was opened RTLD_LOCAL as a framework's is; then `code`."""
    begin = "import ctypes, os, signal, sys\nconvlib = ctypes.CDLL(sys.argv[1])\n"
    return (sys.executable, "-c", begin + code, str(CLIENTS / "libconvlib.so"))


class Case(unittest.TestCase):
    maxDiff = None
    _bare = {}

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="convpin-")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def bare(self, *arguments, standin=True, **variables):
        """The same program without us. Known after the first time."""
        kept = {name: value for name, value in variables.items() if not name.startswith(("CONV_", "CONVPIN_"))}
        key = (arguments, standin, tuple(sorted(kept.items())))
        if key not in self._bare:
            self._bare[key] = execute(arguments, self.folder, environment(standin, **kept))
        return self._bare[key]

    def preloaded(self, *arguments, same=True, log="log.jsonl", standin=True, status=0, **variables):
        """Runs it with the library and checks what holds for every program. `same`: its output is the bare run's;
        otherwise the lines are, up to what ran and what came out. `log`: None for none. `status`: of both runs."""
        bare = self.bare(*arguments, standin=standin, **variables)
        self.assertEqual(bare.status, status, "without us: " + bare.stderr)
        env = environment(standin, LD_PRELOAD=LIBRARY, **variables)
        if log:
            env["CONVPIN_LOG"] = log
            (self.folder / log).unlink(missing_ok=True)
        child = execute(arguments, self.folder, env)
        if log and "%" not in log:
            child.log = read_log(self.folder / log)
        self.assertEqual(child.status, status, child.stderr)
        if same:
            self.assertEqual(child.stdout, bare.stdout, child.stderr)
        else:
            of = lambda text: [line.rsplit(": ", 1)[0] for line in text.splitlines()]
            self.assertEqual(of(child.stdout), of(bare.stdout), child.stderr)
            self.assertNotIn("convpin:", child.stdout)
        if child.log:
            self.check_log(child.log)
        return child

    def three_runs(self, *arguments, **more):
        """Bare, preloaded with nothing asked, and pinned to 2: reached, and nothing else changed."""
        bare = self.bare(*arguments, **more)
        self.assertEqual(bare.status, 0, bare.stderr)
        idle = self.preloaded(*arguments, log=None, **more)
        self.assertEqual((idle.trace, idle.stderr), (bare.trace, bare.stderr))
        self.assertNotIn("eng2", bare.engines())  # the negative control: what is pinned below is not what runs anyway
        pinned = self.preloaded(*arguments, same=False, log="log-%p.jsonl", CONV_FWD_ALGO="2", CONVPIN_PROFILE="off", **more)
        self.assertEqual({how for _, _, how in pinned.trace}, {"im2col_gemm"}, pinned.stderr)
        self.assertEqual(len(pinned.trace), len(bare.trace))
        self.assertLessEqual(pinned.engines(), {"eng2", "algo2"})
        self.assertNotIn("warning", pinned.stderr)
        return pinned

    TYPES = {"failure", "header", "problem", "try", "candidate", "query", "choice", "count", "label", "end"}

    def check_log(self, log, ended=True):
        """What holds for the log of any one process that ended in an orderly way."""
        self.assertEqual(log[0]["type"], "header")
        self.assertEqual(log[0]["schema"], 1)
        types = [record["type"] for record in log]
        self.assertLessEqual(set(types), self.TYPES)
        self.assertEqual(types.count("header"), 1)
        known = set()
        for record in log:
            if record["type"] == "problem":
                known.add(record["problem_id"])
            elif record.get("problem_id") is not None:
                self.assertIn(record["problem_id"], known, record)
        if not ended:
            return
        self.assertEqual(types.count("end"), 1)
        self.assertEqual(types[-1], "end")
        counts = {(record["problem_id"], record["ran"]): record["calls"] for record in log if record["type"] == "count"}
        self.assertEqual(sum(counts.values()), log[-1]["calls"])
        ran = {problem for problem, _ in counts} or known   # a query alone (fused calls ask for the bare problem) did not run
        self.assertEqual(len(ran), log[-1]["problems"])

    def assert_set(self, child, runs=None):
        """The request is in force: the log says so, and everything that the stand-in executed is it."""
        self.assertEqual(set(child.choices()), {"set"}, child.stderr)
        self.assertRegex(child.stderr, r"convpin: requested .* is set\n")
        self.assertEqual(child.warnings(), [])
        self.assertTrue(child.trace)
        if runs:
            self.assertEqual({how for _, _, how in child.trace}, {runs})

    def assert_not_set(self, child, kind, reason):
        """Not in force: one warning, which says why, and the log says it too."""
        self.assertEqual(set(child.choices()), {kind}, child.stderr)
        self.assertNotIn(" is set", child.stderr)
        self.assertEqual(len(child.warnings()), 1, child.stderr)
        self.assertRegex(child.warnings()[0], reason)
        self.assertIn("the framework's choice runs instead", child.warnings()[0])
        for record in child.of_type("choice"):
            self.assertRegex(record["reason"], reason)


def main():
    unittest.main(verbosity=2)
