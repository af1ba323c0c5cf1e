"""Rules for another GPU or cuDNN, met by a program: not applied, said once with the command that mends it, and an error where
CONVPIN_STRICT is set.

Would fail when: such a rule is applied, or missed in silence; the warning is repeated or names another file; a file with
rules for several GPUs is blamed; CONVPIN_STRICT lets the convolution run on some way to it, or fails one that a rule of this
GPU covers; the failure doesn't name the rule and the command.
"""
import children
from children import PROBLEM, STRIDED
from errors_test import APIS, WAYS

HERE = '{ device = "*stand-in*", cudnn = ">=9" }'
A100 = '{ device = "NVIDIA A100", cudnn = "9.10" }'
OLD = '{ device = "*stand-in*", cudnn = "<9" }'
MEND = r"convpin tune --refresh pins.toml -o pins.toml"


def rule(name, match, algo='"GEMM"', problem="stride=1,1"):
    return f'[[rule]]\nname = "{name}"\nproblem = "{problem}"\nalgo = {algo}\nmatch = {match}\n'


class Stale(children.Case):
    def run_with(self, text, *arguments, config="pins.toml", **variables):
        self.write("pins.toml", "version = 1\n" + text)
        env = children.environment(LD_PRELOAD=children.LIBRARY, CONVPIN_CONFIG=config, CONVPIN_LOG="log.jsonl", **variables)
        (self.folder / "log.jsonl").unlink(missing_ok=True)
        child = children.execute(("convclient", *arguments), self.folder, env)
        child.log = children.read_log(self.folder / "log.jsonl")
        return child

    def test_one_warning_and_nothing_applied(self):
        text = rule("there", A100) + rule("older", OLD) + rule("strided there", A100, problem="stride=2,2")
        for way in WAYS:
            if "--benchmark" in way:
                continue  # the fastest differs from run to run
            with self.subTest(way):
                child = self.run_with(text, *way, PROBLEM, STRIDED)
                bare = self.bare("convclient", *way, PROBLEM, STRIDED)
                self.assertEqual((child.status, child.stdout, child.trace), (0, bare.stdout, bare.trace), child.stderr)
                warning, = child.warnings()
                self.assertRegex(warning, r"pins.toml: 3 rules are for another GPU or cuDNN \(there: for NVIDIA A100 with cuDNN 9.10; "
                                          r"here is convpin stand-in \(CPU\) with cuDNN 9\..*not applied.*" + MEND)
                self.assertIn("convpin: 2 problems that no rule covers, 2 of them only because the rule is for another GPU or cuDNN\n", child.stderr)

    def test_one_rule_is_named(self):
        warning, = self.run_with(rule("older", OLD), PROBLEM).warnings()
        self.assertRegex(warning, r"rule older is for \*stand-in\* with cuDNN <9; here is .*: it is not applied")
        self.write("with blank.toml", "version = 1\n" + rule("other", A100, problem="stride=2,2"))
        child = self.run_with(rule("older", OLD), PROBLEM, STRIDED, config="pins.toml:with blank.toml")
        self.assertEqual(len(child.warnings()), 2, child.stderr)  # one a file
        self.assertIn("--refresh 'with blank.toml' -o 'with blank.toml'", child.warnings()[1])

    def test_strict_is_an_error(self):
        for way in WAYS:
            with self.subTest(way):
                child = self.run_with(rule("there", A100), *way, PROBLEM, CONVPIN_STRICT="1")
                self.assertEqual((child.status, child.stdout), (1, ""), child.stderr)
                errors = [line for line in child.stderr.splitlines() if line.startswith("convpin: error:")]
                self.assertEqual(len(errors), 1, child.stderr)
                self.assertRegex(errors[0], r"rule there is for NVIDIA A100 .*, so it is not applied, which is an error by CONVPIN_STRICT "
                                            r"\(mend it: " + MEND + r"\): this convolution fails$")
                self.assertEqual(child.warnings(), [])
                self.assertRegex(child.stderr, r"(?m)^convclient: .*NOT_SUPPORTED: convpin: rule there is for")
                child = self.run_with(rule("there", A100), *way, STRIDED, CONVPIN_STRICT="1")  # which the rule is not about
                self.assertEqual(child.status, 0, child.stderr)

    def test_a_file_for_several_gpus(self):
        text = rule("there", A100) + rule("here", HERE)
        for api in APIS:
            for strict in ("0", "1"):
                with self.subTest((api, strict)):
                    child = self.run_with(text, "--api", api, PROBLEM, STRIDED, CONVPIN_STRICT=strict)
                    self.assertEqual((child.status, child.warnings()), (0, []), child.stderr)
                    self.assertEqual([c["rule"] for c in child.of_type("choice") if c["choice"] == "set"], ["here"])
                    self.assertNotIn("only because", child.stderr)

    def test_left_to_the_framework_is_not_missed(self):
        child = self.run_with(rule("there", A100, algo="-1"), PROBLEM, CONVPIN_STRICT="1")
        self.assertEqual((child.status, child.warnings()), (0, []), child.stderr)
        child = self.run_with(rule("there", A100) + '[[rule]]\noperation = "any"\nalgo = -1\n', PROBLEM, CONVPIN_STRICT="1")
        self.assertEqual((child.status, child.warnings()), (0, []), child.stderr)

    def test_beside_on_miss(self):
        for api in APIS:
            with self.subTest(api):
                child = self.run_with(rule("there", A100), "--api", api, PROBLEM, CONVPIN_ON_MISS="error")
                self.assertEqual((child.status, child.warnings()), (1, []), child.stderr)
                self.assertRegex(child.stderr, r'no rule covers it, and defaults.on_miss is "error"; rule there would, but is for NVIDIA A100 .*'
                                               r"\(mend it: " + MEND + r"\): this convolution fails\n")


if __name__ == "__main__":
    children.main()
