"""What the tests of this folder share: the command as a child process, beside what tests/preload has for programs."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "preload"))
import children  # noqa: E402  (its folder comes first)
from children import PROBLEM, STRIDED, main  # noqa: E402,F401  (for the tests)

COMMAND = os.environ["CONVPIN_COMMAND"]

# A rule that nothing can meet, for STRIDED.
FAILING = 'version = 1\n[[rule]]\nname = "stem"\nproblem = "stride=2,2"\nalgo = "WINOGRAD"\non_unsupported = "error"\n'


class Case(children.Case):
    def convpin(self, *arguments, status=0, program=COMMAND, standin=True, **variables):
        """Runs the command, checks its exit status (None: any) and that what it says is said on stderr alone."""
        done = subprocess.run([program, *map(str, arguments)], env=children.environment(standin, **variables), cwd=self.folder,
                              capture_output=True, text=True, timeout=120)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stderr + done.stdout)
        if status == 2:
            self.assertTrue(done.stderr.startswith("convpin: "), done.stderr)
        return done

    def json(self, *arguments, **options):
        return json.loads(self.convpin(*arguments, "--json", **options).stdout)

    def record_failing(self, log="failing.jsonl", **variables):
        """A log of a program that runs PROBLEM, and whose rule for STRIDED fails it."""
        self.write("failing.toml", FAILING)
        client = children.command(["convclient", PROBLEM, STRIDED])
        self.convpin("run", "--config", "failing.toml", "--record", log, "--", *client, status=1, **variables)

    def record(self, *arguments, log="run.jsonl", append=False, **variables):
        """A log of a program's, by `convpin run --record`."""
        client = children.command(arguments)
        if not append:
            (self.folder / log).unlink(missing_ok=True)
        self.convpin("run", "--record", log, *variables.pop("options", ()), "--", *client, **variables)
        return children.read_log(self.folder / log)
