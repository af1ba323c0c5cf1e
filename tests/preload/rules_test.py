"""Rules from TOML files, as they take effect in a program.

Would fail when: not the first matching rule wins; a pattern matches another problem; `algo = -1` does not end the search;
CONV_FWD_ALGO does not come before the files, or does not say what it shadows; a path is taken relative to where the
program is later instead of where it was started.
"""
import children
from children import PROBLEM, STRIDED

POINTWISE = "x=[2,16,14,14] w=[16,16,1,1] float nchw"


def rules(*pairs, before=""):
    """A file with these (problem, algorithm) rules."""
    text = "version = 1\n" + before
    for problem, algorithm in pairs:
        text += "[[rule]]\n" + (f'problem = "{problem}"\n' if problem else "") + f"algo = {algorithm}\n"
    return text


class Rules(children.Case):
    def run_all(self, *problems, api="graph", same=False, **variables):
        return self.preloaded("convclient", "--api", api, "--check", *problems, same=same, **variables)

    def requests(self, child):
        """(requested, choice, rule) by problem, in the order of the problems."""
        return [(c["requested"], c["choice"], c["rule"]) for c in child.of_type("choice")]

    def test_the_first_match_wins_for_each_problem(self):
        self.write("pins.toml", rules(("stride=2,2", 2), ("w=[*,*,1,1]", '"eng28"'), ("x=[2,*,*,*] float32", '"direct"'),
                                      ("", 0)))
        child = self.run_all(PROBLEM, STRIDED, POINTWISE, CONVPIN_CONFIG="pins.toml")
        self.assertEqual(self.requests(child), [("3 (DIRECT)", "set", "pins.toml:8:1"), ("2 (GEMM)", "set", "pins.toml:2:1"),
                                                ("eng28", "set", "pins.toml:5:1")])
        self.assertEqual([what for _, what, _ in child.trace], ["eng0", "eng2", "eng28"])
        self.assertFalse(child.of_type("candidate"))  # no level named, no CONV_FWD_ALGO: no profile

    def test_the_whole_text_form_as_the_log_prints_it(self):
        text = self.run_all(PROBLEM, same=True).of_type("problem")[0]["problem"]
        self.write("pins.toml", rules((text, 2)))
        for api in ("graph", "legacy"):
            with self.subTest(api):
                child = self.run_all(PROBLEM, STRIDED, api=api, CONVPIN_CONFIG="pins.toml")
                self.assertEqual([choice for _, choice, _ in self.requests(child)], ["set", "left_alone"])
                self.assertEqual(child.trace[0][2], "im2col_gemm")
                self.assertEqual(child.trace[1:], self.bare("convclient", "--api", api, "--check", STRIDED).trace)

    def test_what_does_not_match_is_left_alone(self):
        self.write("pins.toml", rules(("half", 2), ("nhwc", 2), ("groups=2", 2), ("w=[*,*,5,5]", 2),
                                      ("x=[2,16,14,14] pad=0,0", 2)))
        child = self.run_all(PROBLEM, same=True, CONVPIN_CONFIG="pins.toml")
        self.assertEqual(self.requests(child), [(None, "left_alone", None)])

    def test_minus_one_ends_the_search(self):
        self.write("pins.toml", rules(("stride=2,2", -1), ("", 2)))
        child = self.run_all(PROBLEM, STRIDED, CONVPIN_CONFIG="pins.toml")
        self.assertEqual([choice for _, choice, _ in self.requests(child)], ["set", "left_alone"])
        self.assertEqual(child.trace[1:], self.bare("convclient", "--api", "graph", "--check", STRIDED).trace)
        child = self.run_all(PROBLEM, same=True, CONVPIN_CONFIG="pins.toml", CONV_FWD_ALGO="-1")
        self.assertEqual(child.choices(), ["left_alone"])

    def test_the_variable_comes_first_and_says_so(self):
        self.write("pins.toml", rules(("stride=2,2", 2), ("", 3)))
        child = self.run_all(PROBLEM, STRIDED, CONVPIN_CONFIG="pins.toml", CONV_FWD_ALGO="0")
        self.assertIn("convpin: CONV_FWD_ALGO comes before 2 forward rules of pins.toml\n", child.stderr)
        self.assertEqual({(rule, choice) for _, choice, rule in self.requests(child)}, {("CONV_FWD_ALGO", "set")})

    def test_several_files(self):
        self.write("first.toml", rules(("stride=2,2", 2), before='[profile]\nlevel = "off"\n'))
        self.write("second.toml", rules(("", 3), before='[profile]\nlevel = "engines"\n'))
        child = self.run_all(PROBLEM, STRIDED, CONVPIN_CONFIG="first.toml:second.toml")
        self.assertEqual([rule for _, _, rule in self.requests(child)], ["second.toml:4:1", "first.toml:4:1"])
        self.assertIn("profile.level of second.toml is not used: first.toml comes first", child.stderr)
        self.assertFalse(child.of_type("candidate"))

    def test_a_file_may_name_the_log_and_the_profile(self):
        before = '[log]\npath = "mine-%%.jsonl"\ntable = false\n[profile]\nlevel = "algorithms"\nwarmup = 0\nrepeats = 2\n'
        self.write("pins.toml", rules(("", 2), before=before))
        child = self.run_all(PROBLEM, log=None, CONVPIN_CONFIG="pins.toml")
        log = children.read_log(self.folder / "mine-%.jsonl")
        self.check_log(log)
        self.assertEqual({c["samples"] for c in log if c["type"] == "candidate" and c["status"] == "ok"}, {2})
        self.assertNotIn("IMPLICIT_PRECOMP_GEMM", child.stderr)  # no table

    def test_relative_paths_are_those_of_the_start(self):
        self.write("pins.toml", rules(("", 2), before='[log]\npath = "log.jsonl"\n'))
        (self.folder / "elsewhere").mkdir()
        for code in ("os.chdir('elsewhere')\nconvlib.convlib_run(b'python')",  # before the first call of cuDNN, as Hydra does
                     "convlib.convlib_run(b'python')\nos.chdir('elsewhere')\nconvlib.convlib_run(b'python')"):
            with self.subTest(code):
                (self.folder / "log.jsonl").unlink(missing_ok=True)
                child = self.preloaded(*children.on_python(code), log=None, same=False, CONVPIN_CONFIG="pins.toml")
                self.assertIn("python: graph eng2 ", child.stdout, child.stderr)
                self.check_log(children.read_log(self.folder / "log.jsonl"))


if __name__ == "__main__":
    children.main()
