"""Policies: what a rule's `policy` makes of a profile, on both APIs.

Would fail when: something else runs than the best of the profile's candidates that the rule allows; a gain under min_gain
moves the framework's choice; the answer differs from thread to thread, or is found more than once; ranks of one job decide
each for itself; a capture, an empty budget or too little memory is passed over in silence, or ends the program.

Times are made: the stand-in sleeps in the engines that are to be slow, ten times as long as anything else takes.
"""
import children
from children import PROBLEM, STRIDED

APIS = ("graph", "legacy")
DENIED = (22, 23, 27, 35, 41, 46, 47, 48, 62, 67)   # more of the same, to save time
SUPPORTED = {"graph": [f"eng{n}" for n in (0, 1, 2, 28, 38, 45, 70)],
             "legacy": [f"algo{n}" for n in (0, 1, 2, 3, 4, 5, 7)]}
OWN = {"graph": "eng70", "legacy": "1"}
GROUPED = "backward_data x=[2,8,9,9] w=[8,4,3,3] float nchw pad=1,1 groups=2"   # its own choice needs a workspace
FEWER = "".join(f'[[deny]]\noperation = "forward"\nengine = {n}\n' for n in DENIED)
PROFILE = "version = 1\n[profile]\nwarmup = 0\nrepeats = 1\n" + FEWER


def all_slow_but(*fast, ms=15):
    return ",".join(f"{engine}:{ms}" for engines in SUPPORTED.values() for engine in engines if engine not in fast)


class Policy(children.Case):
    def write_rule(self, policy="fastest", before=PROFILE, **keys):
        more = "".join(f"{key} = {value}\n" for key, value in keys.items())
        self.write("pins.toml", f'{before}[[rule]]\nname = "best"\noperation = "any"\npolicy = "{policy}"\n{more}')

    def run_with(self, *options, problems=(PROBLEM,), same=False, **variables):
        return self.preloaded("convclient", *options, "--check", *problems, same=same, CONVPIN_CONFIG="pins.toml", **variables)

    def ran(self, child):
        """What the program itself ran last, without knobs."""
        return child.trace[-1][1]

    def test_the_fastest(self):
        self.write_rule()
        for api in APIS:
            for fast, runs, how in ((("eng0", "algo3"), ("eng0", "3"), "direct"), (("eng2", "algo2"), ("eng2", "2"), "im2col_gemm")):
                with self.subTest(api, fast=fast):
                    child = self.run_with("--api", api, STANDIN_SLOW=all_slow_but(*fast))
                    self.assertEqual(child.trace[-1], (api, runs[APIS.index(api)], how))
                    self.assertEqual(child.choices(), ["set"])
                    choice, = child.of_type("choice")
                    self.assertEqual((choice["rule"], choice["requested"]), ("best", "the fastest"))
                    self.assertIn("convpin: requested forward: the fastest is set\n", child.stderr)
                    own, = [c for c in child.of_type("candidate") if c["framework_choice"]]
                    self.assertEqual((own["engine"] or str(own["algorithm"])).split("_")[0], OWN[api])
                    timed = {(c["engine"] or str(c["algorithm"])): c["time_us"] for c in child.of_type("candidate") if c["status"] == "ok"}
                    self.assertEqual(min(timed, key=timed.get), (choice["engine"] or str(choice["algorithm"])))

    def test_by_the_programs_other_ways(self):
        self.write_rule()
        slow = all_slow_but("eng0", "algo3")
        for options in (("--own-config",), ("--from-json",), ("--benchmark",), ("--cuda-graph-api",), ("--api", "legacy", "--fixed", "1"),
                        ("--api", "legacy", "--benchmark")):
            with self.subTest(options):
                child = self.run_with(*options, STANDIN_SLOW=slow)
                self.assertEqual(child.trace[-1][2], "direct")
                self.assertEqual(set(child.choices()), {"set"}, child.stderr)

    def test_a_plan_from_elsewhere(self):
        self.write("plan.json", self.bare("convclient", "--print", "json", PROBLEM).stdout)
        self.write_rule()
        child = self.run_with("--plan", "plan.json", "--repeat", "3", STANDIN_SLOW=all_slow_but("eng2"))
        self.assertEqual(child.trace[-3:], [("graph", "eng2", "im2col_gemm")] * 3)
        self.assertEqual(child.choices(), ["set"])

    def test_the_least_memory(self):
        for api, before, after in (("graph", 10400, "eng0"), ("legacy", 10400, None)):
            with self.subTest(api):
                self.write_rule("least_memory")
                child = self.run_with("--api", api, problems=(GROUPED,))
                self.assertEqual(self.bare("convclient", "--api", api, "--check", GROUPED).fields()["workspace"], str(before))
                least = min((c for c in child.of_type("candidate") if c["status"] != "unsupported" and c["deterministic"] is not False
                             and (api == "graph" or c["algorithm"] != 0)), key=lambda c: c["workspace_bytes"])
                self.assertEqual(child.of_type("choice")[0]["workspace_bytes"], min(least["workspace_bytes"], before))
                if after:
                    self.assertEqual((self.ran(child), child.fields()["workspace"]), (after, "0"))
                # ALGO_0 needs none, and is not deterministic
                self.write_rule("least_memory", allow='["nondeterministic"]')
                child = self.run_with("--api", api, problems=(GROUPED,), STANDIN_SLOW="eng0:5")
                self.assertEqual(child.of_type("choice")[0]["workspace_bytes"], 0)
        self.assertEqual(self.ran(child), "0")

    def test_what_it_may_not_take(self):
        tf32 = all_slow_but("eng38")
        down = all_slow_but("eng45")
        for keys, slow, runs in (({}, tf32, "eng38"), ({"require": '["no_tensor_core"]'}, tf32, "eng70"), ({}, down, "eng70"),
                                 ({"allow": '["down_convert"]'}, down, "eng45"), ({"workspace_limit": 1000}, tf32, "eng70"),
                                 ({"require": '["tensor_core"]'}, all_slow_but("eng0"), None)):
            with self.subTest(keys, runs=runs):
                self.write_rule(min_gain=0.5, **keys)
                child = self.run_with(STANDIN_SLOW=slow)
                if runs:
                    self.assertEqual(self.ran(child), runs)
                else:  # the framework's own choice is against the rule, so that no gain is asked for
                    self.assertIn("tf32", child.fields()["notes"])
                self.assertEqual(child.choices(), ["set"])

    def test_nothing_that_it_may_take(self):
        self.write_rule(require='["tensor_core"]', workspace_limit=1)
        child = self.run_with(same=True)
        self.assert_not_set(child, "unsupported", "against the rule|more than the limit of 1")
        self.write_rule(require='["tensor_core"]', workspace_limit=1, on_unsupported='"error"')
        env = children.environment(LD_PRELOAD=children.LIBRARY, CONVPIN_CONFIG="pins.toml")
        child = children.execute(("convclient", PROBLEM), self.folder, env)
        self.assertEqual(child.status, 1)
        self.assertRegex(child.stderr, r"convpin: error: .*rule best asks for the fastest \(tensor_core\), which is not possible here")

    def test_min_gain(self):
        slow = "algo1:200,algo3:20,eng70:200,eng0:20," + ",".join(e + ":60" for e in SUPPORTED["legacy"] if e not in ("algo1", "algo3"))
        others = "".join(f'[[deny]]\noperation = "forward"\nengine = {n[3:]}\n' for n in SUPPORTED["graph"] if n not in ("eng70", "eng0"))
        for api in APIS:
            for gain, runs in (("0.1", ("eng0", "3")), ("0.99", ("eng70", "1"))):
                with self.subTest(api, gain=gain):
                    self.write_rule(before=PROFILE + others, min_gain=gain)
                    child = self.run_with("--api", api, same=gain == "0.99", STANDIN_SLOW=slow)
                    self.assertEqual(self.ran(child), runs[APIS.index(api)])
                    self.assertEqual(child.choices(), ["set"])  # leaving it is what the policy says

    def test_the_programs_filter_drops_what_it_took(self):
        self.write_rule(min_gain=0.5)
        child = self.run_with("--deny-note", "tensor_core", same=True, STANDIN_SLOW=all_slow_but("eng38"))
        self.assertEqual((self.ran(child), child.choices()), ("eng70", ["refused"]))
        self.assertRegex(child.warnings()[0], "eng38.* was dropped by the program itself")

    def test_ranks(self):
        self.write_rule()
        for name in ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"):
            for api in APIS:
                with self.subTest(name, api=api):
                    child = self.run_with("--api", api, same=True, **{name: "8"})
                    self.assert_not_set(child, "unsupported", "timings differ from rank to rank, so 8 ranks could run different engines: "
                                                              "tune once and pin what was found, or name an algorithm")
                    self.assertEqual((child.of_type("candidate"), len(child.trace)), ([], 1))
        self.assertEqual(self.run_with(WORLD_SIZE="1", STANDIN_SLOW=all_slow_but("eng0")).choices(), ["set"])
        self.write_rule("least_memory")  # the same on each rank
        self.assertEqual(self.run_with(problems=(GROUPED,), WORLD_SIZE="8").choices(), ["set"])

    def test_the_budget(self):
        self.write_rule(before='version = 1\n[profile]\nbudget = "0 s"\n')
        for api in APIS:
            with self.subTest(api):
                child = self.run_with("--api", api, "--repeat", "3", problems=(PROBLEM, STRIDED), same=True)
                self.assertEqual(child.choices(), ["unsupported"] * 2)
                self.assertRegex(child.of_type("choice")[0]["reason"], "no candidate could be measured")
                self.assertRegex(child.of_type("choice")[1]["reason"], "the profile's budget is used up")
                self.assertEqual(len(child.trace), 6)

    def test_inside_a_capture(self):
        self.write_rule()
        for options in (("--api", "graph"), ("--api", "legacy"), ("--own-config",), ("--api", "legacy", "--fixed", "1")):
            with self.subTest(options):
                child = self.run_with(*options, "--repeat", "3", same=True, STANDIN_CAPTURING="1")
                self.assert_not_set(child, "unsupported", "it can't be timed now")
                self.assertEqual((len(child.trace), child.of_type("try")), (3, []))

    def test_no_memory(self):
        self.write_rule()
        for api in APIS:
            with self.subTest(api):
                child = self.run_with("--api", api, same=True, STANDIN_FREE_BYTES=10000)
                self.assertEqual(child.choices(), ["unsupported"])
                self.assertEqual(len(child.trace), 1)

    def test_decided_once_for_all_threads(self):
        self.write_rule()
        for api in APIS:
            for options in ((), ("--own-config",)) if api == "graph" else ((), ("--fixed", "1")):
                with self.subTest(api, options=options):
                    child = self.run_with("--api", api, *options, "--threads", "4", "--repeat", "5", problems=(PROBLEM, STRIDED),
                                          STANDIN_SLOW=all_slow_but("eng0", "algo3", ms=3))
                    self.assertEqual(set(child.choices()), {"set"}, child.stderr)
                    self.assertEqual({line.rsplit(": ", 1)[1].split()[0].split("_")[0] for line in child.stdout.splitlines()},
                                     {"eng0"} if api == "graph" else {"algo1" if options else "algo3"})
                    tried = [(c["problem_id"], c["engine"] or c["algorithm"]) for c in child.of_type("candidate")]
                    self.assertEqual(len(tried), len(set(tried)))
                    self.assertEqual(child.stderr.count("profiling 2 problems"), 1, child.stderr)
                    self.assertEqual((child.log[-1]["calls"], child.log[-1]["pinned_calls"]), (40, 40))

    def test_a_profile_is_asked_for_too(self):
        self.write_rule()
        for api in APIS:
            child = self.run_with("--api", api, CONVPIN_PROFILE="algorithms", STANDIN_SLOW=all_slow_but("eng0", "algo3"))
            tried = [c["engine"] or c["algorithm"] for c in child.of_type("candidate")]
            self.assertEqual(len(tried), len(set(tried)))  # the policy's serves both
            self.assertEqual(child.trace[-1][2], "direct")

    def test_memory_is_given_back(self):
        self.write_rule()
        code = ("convlib.convlib_run(b'python')\ncudnn = ctypes.CDLL('libcudnn.so.9')\n"
                "print(cudnn.cudnnStandinAllocations(), flush=True)")
        child = self.preloaded(*children.on_python(code), same=False, CONVPIN_CONFIG="pins.toml")
        self.assertEqual(child.stdout.splitlines()[-1], "0")
        self.assertTrue(child.of_type("candidate"))


if __name__ == "__main__":
    children.main()
