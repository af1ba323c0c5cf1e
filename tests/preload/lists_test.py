"""Rules with lists, limits, requirements and finer matches, as they take effect in a program.

Would fail when: not the first possible thing of a list runs; what the program's filter drops has nothing of the list behind
it; -1 at a list's end is called a failure, or hides one; a limit or requirement is not kept, or is another rule's; a match
covers a problem that it should not; the last lines leave out a rule that did nothing, or blame one that did.
"""
import re

import children
from children import PROBLEM, STRIDED

APIS = ("graph", "legacy")
HALF = "x=[2,16,14,14] w=[16,16,3,3] half nhwc pad=1,1"
GROUPED = "x=[2,16,14,14] w=[16,4,3,3] float nchw pad=1,1 groups=4"
VOLUME = "x=[1,4,5,6,7] w=[4,4,3,3,3] float ncdhw pad=1,1,1"


def rule(name, algo=None, **keys):
    """One rule's text; `match` and the like as TOML, the rest as values."""
    lines = ["[[rule]]", f'name = "{name}"']
    if algo is not None:
        lines.append(f"algo = {algo!r}".replace("'", '"'))
    return "\n".join(lines + [f"{key} = {value}" for key, value in keys.items()]) + "\n"


class Lists(children.Case):
    def run_with(self, text, *problems, options=(), same=False, **variables):
        self.write("pins.toml", "version = 1\n" + text)
        return self.preloaded("convclient", *options, "--check", *(problems or (PROBLEM,)), same=same, CONVPIN_CONFIG="pins.toml", **variables)

    def assert_as_bare(self, child, *problems, options=()):
        bare = self.bare("convclient", *options, "--check", *(problems or (PROBLEM,)))
        self.assertEqual((child.trace, child.stdout), (bare.trace, bare.stdout))

    def test_the_first_possible_runs(self):
        text = rule("three", ["FFT", "GEMM", "DIRECT"])
        for api, how, ran in (("graph", "im2col_gemm", "eng2"), ("legacy", "fft", "4 FFT")):  # no FFT engine without a device
            with self.subTest(api):
                child = self.run_with(text, options=("--api", api))
                self.assert_set(child, how)
                choice, = child.of_type("choice")
                self.assertEqual((choice["rule"], choice["requested"], choice["ran"]), ("three", "4 (FFT), else 2 (GEMM), else 3 (DIRECT)", ran))
                self.assertIn("convpin: requested forward algorithm 4 (FFT), else 2 (GEMM), else 3 (DIRECT) is set\n", child.stderr)

    def test_the_next_is_behind_what_the_program_drops(self):
        options = ("--deny-note", "tensor_core")
        for benchmark in ((), ("--benchmark",)):
            child = self.run_with(rule("two", ["eng38", "eng2"]), options=options + benchmark)
            self.assert_set(child, "im2col_gemm")
        child = self.run_with(rule("one", ["eng38"]), options=options, same=True)
        self.assert_not_set(child, "refused", "eng38.* dropped by the program")

    def test_the_next_is_behind_what_does_not_fit(self):
        child = self.run_with(rule("two", ["eng2", "eng0"]), options=("--max-workspace", "1000"))
        self.assert_set(child, "direct")

    def test_an_engine_and_an_algorithm_in_one_list(self):
        """A list for both APIs: the legacy one takes what it knows."""
        text = rule("mixed", ["eng0", "WINOGRAD_NONFUSED"])
        self.assert_set(self.run_with(text), "direct")
        self.assert_set(self.run_with(text, options=("--api", "legacy")), "winograd_nonfused")

    def test_minus_one_at_the_end_is_no_failure(self):
        for on_unsupported in ("fallback", "error"):
            for api in APIS:
                with self.subTest(api, on_unsupported=on_unsupported):
                    options = ("--api", api)
                    text = rule("last", ["WINOGRAD", -1], on_unsupported=f'"{on_unsupported}"')
                    child = self.run_with(text, options=options, same=True)
                    self.assert_as_bare(child, options=options)
                    choice, = child.of_type("choice")
                    self.assertEqual((choice["choice"], choice["rule"], choice["reason"]), ("left_alone", "last", None))
                    self.assertNotRegex(child.stderr, "warning|error|could not be met| is set")
                    self.assert_set(self.run_with(rule("last", ["GEMM", -1]), options=options), "im2col_gemm")
        # what is possible, but dropped by the program, is not the framework's choice
        child = self.run_with(rule("last", ["eng38", -1]), options=("--deny-note", "tensor_core"), same=True)
        self.assert_not_set(child, "refused", "eng38.* dropped by the program")

    def test_nothing_of_the_list_is_possible(self):
        child = self.run_with(rule("none", ["WINOGRAD", "eng999"]), same=True)
        self.assert_not_set(child, "unsupported", "^(convpin: .*)?eng12: not supported.*; eng999: .*")
        self.assert_as_bare(child)
        self.assertIn("convpin: 1 rule could not be met everywhere: none\n", child.stderr)

    def test_each_rule_has_its_own_limit(self):
        text = rule("small", ["GEMM", "DIRECT"], problem='"stride=2,2"', workspace_limit='"1 KiB"') + rule("large", ["GEMM", "DIRECT"], workspace_limit='"1 MiB"')
        for api in APIS:
            with self.subTest(api):
                child = self.run_with(text, STRIDED, PROBLEM, options=("--api", api), CONVPIN_WORKSPACE_LIMIT="8 KiB")
                self.assertEqual([how for _, _, how in child.trace], ["direct", "im2col_gemm"])
                self.assertEqual(child.choices(), ["set", "set"])
        # found out by the program itself, which is given such an engine untried
        child = self.run_with(rule("small", "GEMM", workspace_limit='"1 KiB"'), same=True, STANDIN_COMPILED="eng2")
        self.assert_not_set(child, "unsupported", r"eng2: it needs a workspace of \d+ bytes, more than the limit of 1024")
        child = self.run_with(rule("small", "GEMM", workspace_limit='"1 KiB"'), same=True)
        self.assert_not_set(child, "unsupported", "eng2 needs a workspace of 225792 bytes, more than the limit of 1024")

    def test_a_familys_limit_and_requirement_together(self):
        """The member that meets one and not the other is not what makes the family possible."""
        child = self.run_with(rule("tc", 1, require='["tensor_core"]'))
        self.assert_set(child)
        self.assertIn("tf32", child.fields()["notes"])
        text = rule("tc", 1, require='["tensor_core"]', workspace_limit=1000)
        self.assert_not_set(self.run_with(text, same=True), "unsupported", "needs a workspace of .* more than the limit of 1000")
        plain = {"require": '["no_tensor_core"]'}  # the framework's own choice is of the family, but not this
        child = self.run_with(rule("plain", 1, **plain), HALF)
        self.assert_set(child)
        self.assertEqual(child.executed(), ["eng1"])
        self.assert_not_set(self.run_with(rule("plain", 1, workspace_limit=1000, **plain), HALF, same=True), "unsupported", "limit of 1000")

    def test_require_deterministic(self):
        problem = "backward_data " + PROBLEM
        for api in APIS:
            with self.subTest(api):
                keys = {"operation": '"dgrad"', "require": '["deterministic"]'}
                child = self.run_with(rule("exact", [0, 1], **keys), problem, options=("--api", api))
                self.assert_set(child, "implicit_gemm")
                self.assertEqual(child.of_type("choice")[0]["requested"], "0 (ALGO_0), else 1 (ALGO_1), only if deterministic")
                child = self.run_with(rule("exact", 0, **keys), problem, options=("--api", api), same=True)
                self.assert_not_set(child, "unsupported", "it is not deterministic")

    def test_what_cudnn_does_not_say_does_not_meet_a_requirement(self):
        child = self.run_with(rule("tc", 1, require='["tensor_core"]'), options=("--api", "legacy"), same=True)
        self.assert_not_set(child, "unsupported", "cuDNN doesn't say whether it uses tensor cores")

    def test_matches(self):
        """Each rule is the first that matches exactly one of these; all ask for what the problem can do anyway."""
        text = "".join(rule(name, [3, -1], operation='"any"', match=match) for name, match in (
            ("another gpu", '{ device = "*H200*" }'), ("another cudnn", '{ cudnn = "<9" }'), ("one more", '{ x = [3, -1, -1, -1] }'),
            ("fused", "{ fused = true }"), ("volume", "{ dims = 3 }"), ("grouped", '{ groups = "2.." }'),
            ("half", '{ dtype = ["half", "bfloat16"], layout = "nhwc" }'), ("strided", "{ stride = 2, dims = 2 }"),
            ("here", '{ device = "*STAND-IN*", cudnn = ">=9.1, <10", w = ["1..16", 16, 3, 3], pad = 1 }'), ("never", "{ dims = 2 }")))
        problems = [VOLUME, GROUPED, HALF, STRIDED, PROBLEM, f"backward_filter {PROBLEM}", f"{PROBLEM} fused=add,relu"]
        for api in APIS:
            with self.subTest(api):
                child = self.run_with(text, *problems, options=("--api", api))
                names = {p["problem_id"]: p["problem"] for p in child.of_type("problem")}
                got = [(c["rule"], names[c["problem_id"]].split()[0]) for c in child.of_type("choice")]
                forward = [(name, "forward") for name in ("volume", "grouped", "half", "strided", "here", "fused")]
                self.assertEqual(got, forward[:5] + [("here", "backward_filter"), forward[5]])
                self.assertIn("convpin: 4 rules matched nothing: another gpu, another cudnn, one more, never\n", child.stderr)
                self.assertNotIn("no rule covers", child.stderr)

    def test_a_rule_without_fused_covers_both(self):
        text = rule("all", 0) + rule("behind", 2)
        child = self.run_with(text, PROBLEM, f"{PROBLEM} fused=add,relu")
        self.assertEqual([c["rule"] for c in child.of_type("choice")], ["all", "all"])
        self.assertEqual(child.choices(), ["set", "unsupported"])
        self.assertIn("an engine can be named", child.warnings()[0])

    def test_the_last_lines(self):
        text = rule("used", 2, problem='"stride=1,1"') + rule("unmet", "WINOGRAD", problem='"stride=2,2"') + rule("idle", 0, problem='"bfloat16"')
        for api in APIS:
            with self.subTest(api):
                child = self.run_with(text, PROBLEM, STRIDED, f"backward_data {PROBLEM}", options=("--api", api))
                end = child.stderr.splitlines()[-4:]
                self.assertEqual(end, ["convpin: 1 rule matched nothing: idle", "convpin: 1 rule could not be met everywhere: unmet",
                                       "convpin: 1 problem that no rule covers", "convpin: 3 problems, 3 calls, 1 pinned, 1 unsupported"])
        child = self.run_with(rule("used", 2), PROBLEM, STRIDED)
        self.assertFalse(re.search("rules? |no rule", child.stderr), child.stderr)
        child = self.preloaded("convclient", STRIDED, same=False, CONV_FWD_ALGO="2", CONVPIN_PROFILE="off")  # said already
        self.assertNotIn("rule", child.stderr)

    def test_many_names_are_cut(self):
        text = "".join(rule(f"r{n}", 0, problem='"bfloat16"') for n in range(12))
        child = self.run_with(text, same=True)
        self.assertIn("convpin: 12 rules matched nothing: r0, r1, r2, r3, r4, r5, r6, r7, ...\n", child.stderr)

    def test_an_operation_of_any_is_one_rule(self):
        child = self.run_with(rule("any", 0, operation='"any"'))
        self.assertNotIn("matched nothing", child.stderr)


if __name__ == "__main__":
    children.main()
