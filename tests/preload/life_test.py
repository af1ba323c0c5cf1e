"""Life in somebody else's process: streams that are closed or broken, and processes that end without notice.

Would fail when: words for stderr end up in another file; a reader of stderr that goes away takes the program with it; a
killed process loses more than its last lines; the state that a program can see (errno, signals, open files) is changed.
"""
import os
import signal
import subprocess

import children
from children import PROBLEM

ASKING = {"CONV_FWD_ALGO": "2", "CONVPIN_LOG": "log.jsonl"}


class Life(children.Case):
    def start(self, *arguments, **options):
        env = children.environment(LD_PRELOAD=children.LIBRARY, **ASKING)
        return subprocess.run(children.command(arguments), env=env, cwd=self.folder, stdout=subprocess.PIPE, text=True,
                              timeout=60, **options)

    def expect_pinned(self, done):
        self.assertEqual(done.returncode, 0)
        self.assertIn(": eng2 ", done.stdout)
        log = children.read_log(self.folder / "log.jsonl")  # every line is JSON
        self.check_log(log)
        self.assertEqual([record["choice"] for record in log if record["type"] == "choice"], ["set"])

    def test_stderr_is_closed(self):
        self.expect_pinned(self.start("/bin/sh", "-c", 'exec "$0" "$@" 2>&-', *children.command(["convclient", PROBLEM])))

    def test_all_streams_but_stdout_are_closed(self):
        self.expect_pinned(self.start("/bin/sh", "-c", 'exec "$0" "$@" <&- 2>&-', *children.command(["convclient", PROBLEM])))

    def test_nobody_reads_stderr(self):
        def broken():
            reader, writer = os.pipe()
            os.close(reader)
            return writer
        writer = broken()
        try:
            control = self.start("/bin/sh", "-c", "echo >&2; echo >&2", stderr=writer)  # SIGPIPE is what would happen
            self.assertIn(control.returncode, (-signal.SIGPIPE, 128 + signal.SIGPIPE, 1, 2))
            self.expect_pinned(self.start("convclient", PROBLEM, stderr=writer))
        finally:
            os.close(writer)

    def test_stderr_is_a_full_disk(self):
        with open("/dev/full", "w") as full:
            self.expect_pinned(self.start("convclient", PROBLEM, stderr=full))

    def test_ends_without_notice(self):
        for end, status in (("os._exit(0)", 0), ("os._exit(5)", 5), ("os.abort()", -signal.SIGABRT),
                            ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL)):
            with self.subTest(end):
                code = "convlib.convlib_run(b'python')\n" + end
                child = self.preloaded(*children.on_python(code), same=False, log=None, status=status, **ASKING)
                log = children.read_log(self.folder / "log.jsonl")
                self.check_log(log, ended=False)
                self.assertEqual([r["choice"] for r in log if r["type"] == "choice"], ["set", "set"])
                self.assertNotIn("end", [r["type"] for r in log])
                self.assertIn("is set", child.stderr)
                self.assertNotIn("2 problems", child.stderr)
                (self.folder / "log.jsonl").unlink()

    def test_what_a_program_can_see(self):
        """Its files, signals, environment and directory are those of the bare run; our log is not inherited."""
        code = ("convlib.convlib_run(b'python')\n"
                "ours = {'CONV_FWD_ALGO', 'CONVPIN_LOG', 'CONVPIN_PROFILE', 'LD_PRELOAD'}\n"
                "print(sorted(os.environ.keys() - ours))\n"
                "print([str(signal.getsignal(s)) for s in range(1, 32)], signal.pthread_sigmask(0, []), os.getcwd())\n"
                "import subprocess\n"
                "print(subprocess.run(['ls', '/proc/self/fd'], capture_output=True, close_fds=False), flush=True)\n")
        self.preloaded(*children.on_python(code), CONVPIN_PROFILE="engines")  # prints the same as the bare run
        child = self.preloaded(*children.on_python(code), same=False, **ASKING)
        self.assertIn("is set", child.stderr)
        of = lambda text: text.splitlines()[2:]
        self.assertEqual(of(child.stdout), of(self.bare(*children.on_python(code)).stdout))

    def test_a_child_process_starts_as_it_would(self):
        code = ("convlib.convlib_run(b'python')\nimport subprocess\n"
                "print(subprocess.run(['/bin/sh', '-c', 'echo out; exit 3'], capture_output=True), flush=True)")
        child = self.preloaded(*children.on_python(code), same=False, **ASKING)
        self.assertIn("is set", child.stderr)
        self.assertIn(r"returncode=3, stdout=b'out\n', stderr=b''", child.stdout)


if __name__ == "__main__":
    children.main()
