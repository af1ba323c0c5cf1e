"""Life in somebody else's process: streams that are closed or broken, processes that end without notice, threads and forks.

Would fail when: words for stderr end up in another file; a reader of stderr that goes away takes the program with it; a
killed process loses more than its last lines; the state that a program can see (errno, signals, open files) is changed; one
thread's plan is taken for another's, or is looked at after it is gone; a call is not counted; a lock or a turn that another
thread held when the process forked is waited for in the child.
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

    def test_everything_at_once(self):
        """Threads that build and let go, threads that share a plan, addresses that come again, forks in the middle."""
        self.write("policy.toml", 'version = 1\n[profile]\nwarmup = 0\nrepeats = 1\n[[rule]]\nname = "best"\npolicy = "least_memory"\n')
        self.write("deny.toml", 'version = 1\n[[deny]]\noperation = "forward"\nengine = 70\n[[rule]]\nalgo = ["GEMM", "DIRECT"]\non_unsupported = "error"\n')
        for asked, pinned in (({}, None), ({"CONVPIN_LOG": "log.jsonl"}, False), ({**ASKING, "CONVPIN_PROFILE": "off"}, True), (ASKING, True),
                              ({"CONVPIN_LOG": "log.jsonl", "CONVPIN_PROFILE": "engines"}, False),
                              ({"CONVPIN_LOG": "log.jsonl", "CONVPIN_CONFIG": "policy.toml"}, True),
                              ({"CONVPIN_LOG": "log.jsonl", "CONVPIN_CONFIG": "deny.toml"}, True)):
            with self.subTest(asked):
                (self.folder / "log.jsonl").unlink(missing_ok=True)
                child = children.execute(("churn", "20"), self.folder, children.environment(LD_PRELOAD=children.LIBRARY, **asked))
                self.assertEqual((child.status, child.stdout.splitlines()[0]), (0, "outputs: right, children: well"), child.stderr)
                executed = int(child.stdout.rsplit(": ", 1)[1])
                if pinned is None:
                    self.assertEqual((child.stderr, len(child.trace)), ("", executed))
                    continue
                log = children.read_log(self.folder / "log.jsonl")
                self.check_log(log)
                self.assertEqual((log[-1]["calls"], log[-1]["pinned_calls"]), (executed, executed if pinned else 0))
                self.assertEqual(len([record for record in log if record["type"] == "problem"]), 2)
                self.assertNotRegex(child.stderr, "warning|error:")

    def test_a_fork_while_a_policy_measures(self):
        """The child is alone: nobody else's turn is to be waited for there."""
        self.write("pins.toml", 'version = 1\n[profile]\nwarmup = 0\nrepeats = 1\n[[rule]]\npolicy = "fastest"\n')
        code = ("import threading, time\n"
                "other = threading.Thread(target=convlib.convlib_run, args=(b'thread',))\nother.start()\n"
                "log = 'log-%d.jsonl' % os.getpid()\n"
                # at the fifth engine: what the stand-in makes at its first execution is made, and needs no lock in the child
                "while not os.path.exists(log) or open(log).read().count('\"try\"') < 5: time.sleep(0.001)\n"
                "child = os.fork()\n"
                "if not child:\n    convlib.convlib_run(b'child')\n    os._exit(0)\n"
                "status = os.waitpid(child, 0)[1]\nother.join()\nprint('status', status, flush=True)")
        slow = ",".join(f"eng{n}:10" for n in range(81) if n)
        env = children.environment(LD_PRELOAD=children.LIBRARY, CONVPIN_CONFIG="pins.toml", CONVPIN_LOG="log-%p.jsonl", STANDIN_SLOW=slow)
        done = children.execute(children.on_python(code), self.folder, env)
        self.assertIn("status 0\n", done.stdout, done.stderr)
        self.assertEqual(done.stdout.count("graph eng0 "), 2, done.stdout + done.stderr)
        for path in self.folder.glob("log-*.jsonl"):
            self.assertEqual([r["choice"] for r in children.read_log(path) if r["type"] == "choice"], ["set", "set"])


if __name__ == "__main__":
    children.main()
