"""Settings that can't be meant: said once, with where and what is allowed; the program runs on, or fails if strict.

Would fail when: a mistake is silent, or its message does not name the variable or the file and line, quote the value and
list what is allowed; it changes what the program computes; CONVPIN_STRICT does not stop it on some way to a convolution, or
the log has no choice that says why nothing ran;
CONVPIN_DISABLE leaves a trace.
"""
import os

import children
from children import PROBLEM

VARIABLES = [
    ("CONV_FWD_ALGO", "foo", ["'foo'", "0-7", "IMPLICIT_GEMM", "WINOGRAD_NONFUSED", "eng38", "-1"]),
    ("CONV_FWD_ALGO", "8", ["'8'", "0-7"]),
    ("CONV_FWD_ALGO", "-2", ["'-2'", "-1"]),
    ("CONV_FWD_ALGO", "eng38_k2", ["'eng38_k2'", "eng38_k2=1"]),
    ("CONVPIN_PROFILE", "most", ["'most'", "off", "algorithms", "engines"]),
    ("CONVPIN_WORKSPACE_LIMIT", "much", ["'much'", "MiB", "-1"]),
    ("CONVPIN_STRICT", "perhaps", ["'perhaps'", "true", "false"]),
]
FILES = [
    ("unknown key", "version = 1\ncolour = 3\n", 2, ["'colour'", "workspace_limit"]),
    ("unknown key in a rule", 'version = 1\n[[rule]]\nalgorithm = "GEMM"\nalgo = 1\n', 3,
     ["'algorithm'", "allowed are algo, allow, match"]),
    ("wrong type", "version = 1\n[log]\npath = 3\n", 3, ["log.path", "a string", "integer"]),
    ("bad value", 'version = 1\n[profile]\nlevel = "most"\n', 3, ["'most'", "off, algorithms, engines"]),
    ("bad algorithm", 'version = 1\n[[rule]]\nalgo = "fast"\n', 3, ["'fast'", "IMPLICIT_GEMM"]),
    ("bad problem", 'version = 1\n[[rule]]\nproblem = "x=[1,2"\nalgo = 1\n', 3, ["x=[1,2"]),
    ("no algorithm", 'version = 1\n[[rule]]\nproblem = "half"\n', 2, ["algo"]),
    ("no version", "[log]\ntable = true\n", 1, ["version = 1"]),
    ("other version", "version = 7\n", 1, ["version = 1"]),
    ("not TOML", 'version = 1\npath = "\n', 2, []),
]


class Settings(children.Case):
    def mistaken(self, *options, **variables):
        child = self.preloaded("convclient", "--check", *options, PROBLEM, **variables)
        self.assertEqual(child.trace, self.bare("convclient", "--check", *options, PROBLEM, **variables).trace)
        self.assertEqual(child.stderr.count("convpin: error:"), 1, child.stderr)
        self.assertIn("convpin: warning: the run goes on as if nothing had been asked\n", child.stderr)
        self.assertEqual(set(child.choices()), {"left_alone"})
        return child.stderr

    def test_variables(self):
        for name, value, words in VARIABLES:
            with self.subTest(name, value=value):
                stderr = self.mistaken(**{name: value})
                line = next(line for line in stderr.splitlines() if "error:" in line)
                for word in (name, *words):
                    self.assertIn(word, line)

    def test_files(self):
        for what, text, line, words in FILES:
            with self.subTest(what):
                self.write("pins.toml", text)
                stderr = self.mistaken(CONVPIN_CONFIG="pins.toml")
                self.assertRegex(stderr, rf"--> pins.toml\n *\|\n *{line} \|.*\n *\| +[\^~]")
                for word in words:
                    self.assertIn(word, stderr)

    def test_files_that_cant_be_read(self):
        (self.folder / "folder").mkdir()
        names = ["none.toml", "folder"]
        if os.getuid() != 0:
            (self.folder / self.write("closed.toml", "version = 1\n")).chmod(0)
            names.append("closed.toml")
        for name in names:
            with self.subTest(name):
                stderr = self.mistaken(CONVPIN_CONFIG=name)
                self.assertRegex(stderr, rf"CONVPIN_CONFIG: '{name}' can't be read \(as .*/{name}\)")

    def test_a_mistake_beside_a_good_request(self):
        """With any error no rule is in force: half of what was meant would be worse."""
        self.mistaken(CONV_FWD_ALGO="2", CONVPIN_WORKSPACE_LIMIT="much")
        self.write("pins.toml", "version = 1\ncolour = 3\n[[rule]]\nalgo = 2\n")
        self.mistaken(CONVPIN_CONFIG="pins.toml")
        slow = ",".join(f"algo{number}:30" for number in (0, 1, 2, 4, 5, 7))  # so that the fastest is known
        self.mistaken("--api", "legacy", "--benchmark", CONVPIN_CONFIG="pins.toml", CONV_FWD_ALGO="2", STANDIN_SLOW=slow)

    def test_strict_fails_the_first_convolution_and_says_why(self):
        ways = [("--api", "graph"), ("--api", "graph", "--benchmark"), ("--api", "graph", "--bias-relu"), ("--api", "legacy"),
                ("--api", "legacy", "--benchmark"), ("--api", "legacy", "--fixed", "1")]
        for options in ways:
            with self.subTest(options):
                env = children.environment(LD_PRELOAD=children.LIBRARY, CONV_FWD_ALGO="foo", CONVPIN_STRICT="1", CONVPIN_LOG="log.jsonl")
                (self.folder / "log.jsonl").unlink(missing_ok=True)
                child = children.execute(("convclient", *options, PROBLEM), self.folder, env)
                self.assertEqual((child.status, child.stdout, child.trace), (1, "", []))
                # the program's own message, from cudnnGetLastErrorString
                self.assertRegex(child.stderr, "convclient: .*BAD_PARAM: convpin: CONV_FWD_ALGO: 'foo' is not")
                self.assertIn("convpin: error: CONVPIN_STRICT is set", child.stderr)
                log = children.read_log(self.folder / "log.jsonl")
                self.assertEqual(log[-1]["failed_problems"], 1)
                choice, = (record for record in log if record["type"] == "choice")
                self.assertEqual([choice[key] for key in ("choice", "ran", "rule", "requested")], ["left_alone", None, None, None])
                self.assertRegex(choice["reason"], "^the settings have an error, and CONVPIN_STRICT is set: CONV_FWD_ALGO: 'foo' is not")

    def test_strict_without_a_mistake(self):
        self.assert_set(self.preloaded("convclient", PROBLEM, same=False, CONV_FWD_ALGO="2", CONVPIN_STRICT="1",
                                       CONVPIN_PROFILE="off"), "im2col_gemm")

    def test_disabled(self):
        wanted = {"CONV_FWD_ALGO": "2", "CONVPIN_PROFILE": "engines"}
        self.assert_set(self.preloaded("convclient", PROBLEM, same=False, **wanted))  # the negative control
        for more in (wanted, {"CONV_FWD_ALGO": "foo", "CONVPIN_CONFIG": "none.toml", "CONVPIN_STRICT": "1"}):
            for api in ("graph", "legacy"):
                with self.subTest(api, **more):
                    child = self.preloaded("convclient", "--api", api, PROBLEM, CONVPIN_DISABLE="1", **more)
                    self.assertEqual((child.stderr, child.log), ("", []))
                    self.assertEqual(child.trace, self.bare("convclient", "--api", api, PROBLEM).trace)
                    self.assertFalse((self.folder / "log.jsonl").exists())

    def test_what_is_not_default_is_echoed(self):
        child = self.preloaded("convclient", PROBLEM, same=False, CONV_FWD_ALGO="2", CONVPIN_PROFILE="engines",
                               CONVPIN_WORKSPACE_LIMIT="1 GiB")
        self.assertIn("CONVPIN_WORKSPACE_LIMIT=1073741824", child.stderr)
        self.assertEqual(child.log[0]["settings"], {"CONV_FWD_ALGO": "2", "CONVPIN_PROFILE": "engines", "CONVPIN_LOG":
                         str(self.folder / "log.jsonl"), "CONVPIN_WORKSPACE_LIMIT": "1073741824"})


if __name__ == "__main__":
    children.main()
