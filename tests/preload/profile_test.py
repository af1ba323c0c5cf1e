"""The profile: what each candidate costs, without costing the program anything.

Would fail when: profiling changes an output, leaves memory behind, happens during a capture or past its budget; a
candidate's status is not what happened to it, or its replay line names another; a crash in a candidate is not explained by
the log; the table is not the documented one; more than three are printed; a problem that never ran is said to wait.
"""
import re
import signal

import children
from children import LEGACY_RUNS, PROBLEM

APIS = ("graph", "legacy")
ROW = re.compile(r"^([* ]) (\d [A-Z_]+|-) +(eng\d+\S*|-) +(-1|-|\d[\d.]*) *(.*)$")


def four_digits(text):
    return text in ("-1", "-") or len(text.replace(".", "").lstrip("0")) in (0, 4)


class Profile(children.Case):
    def profiled(self, *options, level="algorithms", same=False, problem=PROBLEM, **more):
        return self.preloaded("convclient", *options, problem, same=same, CONVPIN_PROFILE=level, **more)

    def status_of(self, child):
        return {c["algorithm"]: c["status"] for c in child.of_type("candidate")}

    def test_every_algorithm_once(self):
        refused = {"graph": {4, 5, 6, 7}, "legacy": {6}}
        for api in APIS:
            with self.subTest(api):
                child = self.profiled("--api", api, CONV_FWD_ALGO="0")
                want = {n: "unsupported" if n in refused[api] else "ok" for n in range(8)}
                # On a busy machine a candidate may seem ten times slower than the best: it ran all the same.
                self.assertEqual({a: "ok" if s == "too_slow" else s for a, s in self.status_of(child).items()}, want)
                for c in child.of_type("candidate"):
                    if c["status"] == "too_slow":
                        continue
                    ok = c["status"] == "ok"
                    self.assertEqual((ok, ok), (c["time_us"] is not None, c["workspace_bytes"] is not None))
                    self.assertEqual((ok, ok), (c["samples"] == 5, c["reason"] is None))
                    if ok:
                        self.assertLess(c["error"], 1e-5)
                        self.assertGreaterEqual(c["time_us_iqr"], 0)
                self.assertEqual([c["algorithm"] for c in child.of_type("candidate") if c["requested"]], [0])
                self.assertEqual([c["algorithm"] for c in child.of_type("candidate") if c["framework_choice"]], [1])
                of = f"'{child.of_type('problem')[0]['problem']}' --candidate"
                for c in child.of_type("candidate"):
                    self.assertEqual(c["replay"], f"convpin replay {of} {c['engine']}" if api == "graph" else f"convpin replay --legacy {of} {c['algorithm']}")

    def test_it_is_the_default_with_the_variable_only(self):
        self.assertTrue(self.preloaded("convclient", PROBLEM, same=False, CONV_FWD_ALGO="0").of_type("candidate"))
        self.assertFalse(self.preloaded("convclient", PROBLEM, same=True, CONV_FWD_ALGO="-1").of_type("candidate"))
        self.assertFalse(self.preloaded("convclient", PROBLEM, same=True).of_type("candidate"))
        off = self.profiled(level="off", CONV_FWD_ALGO="0")
        self.assertEqual((len(off.trace), off.of_type("candidate")), (1, []))

    def test_engines(self):
        child = self.profiled(level="engines", same=True)
        ok = [c["engine"].split("_")[0] for c in child.of_type("candidate") if c["status"] in ("ok", "too_slow")]
        self.assertLessEqual({"eng0", "eng1", "eng2", "eng28", "eng38", "eng70"}, set(ok))
        self.assertGreater(len(child.of_type("candidate")), 60)
        self.assertEqual([c["reason"] for c in child.of_type("candidate") if c["status"] != "ok" and not c["reason"]], [])

    def test_the_output_is_bit_for_bit_the_same(self):
        for options in (("--api", "graph"), ("--api", "legacy"), ("--api", "legacy", "--fixed", "2"), ("--beta", "1"),
                        ("--api", "legacy", "--beta", "1"), ("--bias-relu",), ("--api", "legacy", "--bias-relu"),
                        ("--repeat", "3")):
            for level in ("algorithms", "engines"):
                with self.subTest(options, level=level):
                    child = self.profiled(*options, level=level, same=True)  # which compares the checksum
                    self.assertTrue(child.of_type("candidate"))
                    self.assertGreater(len(child.trace), 3)  # it did run other things

    def test_beta_is_tried_on_a_buffer_that_can_be_read(self):
        for api in APIS:
            child = self.profiled("--api", api, "--beta", "1", same=True)
            errors = [c["error"] for c in child.of_type("candidate") if c["status"] == "ok"]
            self.assertGreater(len(errors), 2)
            self.assertLess(max(errors), 1e-5)

    def test_memory_is_given_back(self):
        code = ("convlib.convlib_run(b'python')\ncudnn = ctypes.CDLL('libcudnn.so.9')\n"
                "print(cudnn.cudnnStandinAllocations(), flush=True)")
        for level in ("off", "engines"):
            child = self.preloaded(*children.on_python(code), CONVPIN_PROFILE=level)  # prints what the bare run prints
            self.assertEqual(child.stdout.splitlines()[-1], "0")
            self.assertEqual(bool(child.of_type("candidate")), level == "engines")

    def test_nothing_while_capturing(self):
        for api in APIS:
            child = self.profiled("--api", api, "--repeat", "3", same=True, STANDIN_CAPTURING="1")
            self.assertEqual(child.of_type("candidate") + child.of_type("try"), [])
            self.assertEqual((len(child.trace), child.log[-1]["calls"]), (3, 3))
            self.assertRegex(child.stderr, r"never profiled \(they ran inside a capture only, .*\): 1\n")

    def test_what_never_ran_does_not_wait_for_it(self):
        child = self.profiled("--api", "legacy", "--bias-relu", same=True)  # it asks cuDNN about the bare convolution
        self.assertEqual(len(child.of_type("problem")), 2)
        self.assertNotIn("never profiled", child.stderr)

    def test_no_memory(self):
        # a tenth of it holds the output (25088 bytes), but not algorithm 2's workspace as well
        for api in APIS:
            with self.subTest(api):
                child = self.profiled("--api", api, same=True, STANDIN_FREE_BYTES=1_000_000)
                status = self.status_of(child)
                self.assertEqual(status[2], "no_memory")
                self.assertLessEqual({status[0], status[3]}, {"ok", "too_slow"})
                self.assertNotIn("2", [what.removeprefix("eng") for _, what, _ in child.trace])

    def test_too_slow_is_timed_once(self):
        for api, slow in (("graph", "eng2"), ("legacy", "algo2")):
            with self.subTest(api):
                child = self.profiled("--api", api, same=True, STANDIN_SLOW=slow + ":200")
                candidate = next(c for c in child.of_type("candidate") if c["algorithm"] == 2)
                self.assertEqual((candidate["status"], candidate["samples"]), ("too_slow", 1))
                self.assertGreater(candidate["time_us"], 199_000)

    def test_a_failing_candidate(self):
        for api, failing in (("graph", "eng2"), ("legacy", "algo2")):
            with self.subTest(api):
                child = self.profiled("--api", api, same=True, STANDIN_FAIL_EXECUTE=failing)
                candidate = next(c for c in child.of_type("candidate") if c["algorithm"] == 2)
                self.assertEqual(candidate["status"], "unsupported")
                self.assertIn("execution failed", candidate["reason"])

    def test_the_budget(self):
        self.write("pins.toml", 'version = 1\n[profile]\nlevel = "algorithms"\nbudget = "0 s"\n')
        for api in APIS:
            with self.subTest(api):
                child = self.preloaded("convclient", "--api", api, PROBLEM, children.STRIDED, CONVPIN_CONFIG="pins.toml")
                self.assertLessEqual(set(self.status_of(child).values()), {"skipped", "unsupported"})
                self.assertIn("skipped", self.status_of(child).values())
                self.assertEqual({c["problem_id"] for c in child.of_type("candidate")}, {1})
                self.assertEqual(len(child.trace), 2)
                self.assertRegex(child.stderr, "profile's budget of 0 s is used up: further problems run without a profile")
                self.assertRegex(child.stderr, r"profiling 1 problem took .*; candidates cut by the budget: \d+; "
                                               r"problems not profiled: 1")

    def test_a_try_precedes_each_launch_and_explains_a_crash(self):
        child = self.profiled(CONV_FWD_ALGO="0")
        tried = [t["engine"].split("_")[0] for t in child.of_type("try")]
        self.assertEqual(tried, [c["engine"].split("_")[0] for c in child.of_type("candidate") if c["status"] in ("ok", "too_slow")])
        for api, crash, algorithm in (("graph", "eng2", 2), ("legacy", "algo3", 3)):
            with self.subTest(api):
                env = children.environment(LD_PRELOAD=children.LIBRARY, CONV_FWD_ALGO="0", CONVPIN_LOG="crash.jsonl",
                                           STANDIN_CRASH=crash)
                dead = children.execute(("convclient", "--api", api, PROBLEM), self.folder, env)
                self.assertEqual(dead.status, -signal.SIGKILL)
                log = children.read_log(self.folder / "crash.jsonl")
                self.check_log(log, ended=False)
                self.assertEqual((log[-1]["type"], log[-1]["algorithm"]), ("try", algorithm))
                (self.folder / "crash.jsonl").unlink()

    def test_the_table(self):
        for api in APIS:
            with self.subTest(api):
                lines = self.profiled("--api", api, CONV_FWD_ALGO="2").stderr.splitlines()
                self.assertEqual(lines[0], "convpin: forward algorithm requested: 2 (GEMM)")
                at = next(i for i, line in enumerate(lines) if line.startswith("convpin: forward x="))
                self.assertRegex(lines[at], r"^convpin: forward x=\[2,16,14,14\] w=\[16,16,3,3\] float nchw pad=1,1 stride=1,1 "
                                            r"dilation=1,1 groups=1   \(.+, cuDNN \d+\.\d+\.\d+\)$")
                self.assertRegex(lines[at + 1], r"^  algo +engine +time ms +workspace +notes$")
                rows = [ROW.match(line) for line in lines[at + 2:at + 10]]
                self.assertTrue(all(rows), lines)
                self.assertEqual({row[2] for row in rows if row[1] == "*"}, {"2 GEMM"})
                self.assertEqual([row[4] for row in rows if not four_digits(row[4])], [])
                ran = [(bool("too slow" in row[5]), float(row[4])) for row in rows if row[4] != "-1"]
                self.assertEqual(ran, sorted(ran))  # what was timed once comes last
                self.assertTrue(all("not supported" in row[5] for row in rows if row[4] == "-1"))
                order = [row[2].split()[0] for row in rows if row[4] != "-1"]
                self.assertEqual(lines[at + 10], "convpin: supported forward algorithms, fastest first: " + " ".join(order))
                self.assertEqual(lines[at + 11], "convpin: requested forward algorithm 2 (GEMM) is set")
                self.assertRegex(lines[-2], r"^convpin: profiling 1 problem took [\d.]+ s$")
                self.assertEqual(lines[-1], "convpin: 1 problem, 1 call, 1 pinned, 0 unsupported")

    def test_three_tables_then_a_line_each(self):
        problems = [f"x=[1,8,{8 + n},8] w=[8,8,3,3] float nchw pad=1,1" for n in range(5)]
        child = self.preloaded("convclient", *problems, same=False, CONV_FWD_ALGO="2")
        self.assertEqual(child.stderr.count("  algo  "), 3)
        line = r"^convpin: forward x=\[1,8,1[12],8\].*: 2 GEMM eng2 .*\(requested\); fastest .* of 8 supported$"
        self.assertEqual(len(re.findall(line, child.stderr, re.M)), 2)
        self.assertEqual({c["problem_id"] for c in child.of_type("candidate")}, {1, 2, 3, 4, 5})
        self.assertEqual({what for _, _, what in child.trace} - set(LEGACY_RUNS.values()), set())


if __name__ == "__main__":
    children.main()
