"""convclient without us, on the stand-in: every operation by every way that it knows, each result compared with its own
float64 reference; and other_graphs. Fails when convclient computes or describes something else than it was asked for, or when an option does
not take the way that it names."""
import os
import pathlib
import subprocess
import tempfile
import unittest

CLIENT = os.environ["CONVCLIENT"]
OTHER_GRAPHS = os.environ["OTHER_GRAPHS"]
STANDIN = os.environ["CONVPIN_STANDIN_DIR"]
OPERATIONS = ("forward", "backward_data", "backward_filter")
PROBLEMS = ("x=[2,16,14,14] w=[32,16,3,3] float nchw pad=1", "x=[2,16,15,14] w=[32,16,3,5] half nhwc pad=1,2 stride=2",
            "x=[2,8,6,8,8] w=[8,4,3,3,3] bfloat16 ncdhw pad=1 groups=2", "x=[2,8,12,12] w=[8,1,3,3] double groups=8 dilation=2",
            "x=[1,8,9,9] w=[8,8,3,3] mode=convolution pad=1", "x=[2,4,1,40] w=[8,4,1,5] half pad=0,2")
FUSED = tuple("x=[2,16,14,14] w=[32,16,3,3] " + problem for problem in (
    "float nchw pad=1 fused=add,relu", "float nchw pad=1 fused=add,add,relu", "half nhwc ytype=float otype=half pad=1 fused=add,relu",
    "half nhwc ytype=float otype=half fused=add,add,relu", "bfloat16 nhwc ytype=float otype=bfloat16 stride=2 fused=add,add,relu"))
GRAPH_OPTIONS = ((), ("--benchmark",), ("--own-config",), ("--from-json",), ("--own-config", "--from-json", "--beta", "0.5"),
                 ("--cuda-graph-api", "--repeat", "3"), ("--cuda-graph-api", "--repeat", "2", "--beta", "-1"))


class Client(unittest.TestCase):
    def run_client(self, *arguments, client=CLIENT, status=0):
        with tempfile.TemporaryDirectory(prefix="convpin-") as folder:
            trace = pathlib.Path(folder) / "trace.txt"
            env = {"LD_LIBRARY_PATH": STANDIN, "STANDIN_TRACE": str(trace)}
            env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"} | env
            done = subprocess.run([client, *arguments], env=env, capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, status, done.stderr)
            lines = trace.read_text().splitlines() if trace.is_file() else []
            return done, [line.split() for line in lines]

    def suffix(self, operation):
        return "" if operation == "forward" else "/" + operation

    def test_every_operation_by_every_way(self):
        for operation in OPERATIONS:
            problems = [operation + " " + problem for problem in PROBLEMS]
            for options in GRAPH_OPTIONS:
                with self.subTest(operation, options=options):
                    done, trace = self.run_client("--check", *options, *problems)
                    self.assertEqual(len(done.stdout.splitlines()), len(PROBLEMS))
                    self.assertLessEqual({api for api, _, _ in trace},
                                         {api + self.suffix(operation) for api in ("graph", "populate", "update")})
            for options in ((), ("--benchmark",), ("--beta", "2"), ("--fixed", "1"), ("--deny-note", "nondeterministic")):
                with self.subTest(operation, options=options):
                    some = problems[:2] if "--fixed" in options or "--deny-note" in options else problems  # what has several
                    _, trace = self.run_client("--check", "--api", "legacy", *options, *some)
                    self.assertEqual({api for api, _, _ in trace}, {"legacy" + self.suffix(operation)})

    def test_what_is_fused_by_every_way(self):
        for options in (*(options for options in GRAPH_OPTIONS if "--beta" not in options), ("--api", "legacy"), ("--api", "legacy", "--benchmark")):
            with self.subTest(options):
                done, _ = self.run_client("--check", *options, *FUSED)
                self.assertEqual(len(done.stdout.splitlines()), len(FUSED))
        for (first, *_), (second, *_) in ((FUSED[:1], FUSED[1:2]), (FUSED[2:3], FUSED[3:4])):
            sums = {self.run_client("--print", "checksum", problem)[0].stdout for problem in (first, second)}
            self.assertEqual(len(sums), 2, "z is not added")

    def test_own_configurations_and_restored_plans_are_the_heuristics(self):
        for operation in OPERATIONS:
            usual, _ = self.run_client("--print", "engine,workspace,checksum", operation + " " + PROBLEMS[1])
            for option in ("--own-config", "--from-json", "--cuda-graph-api"):
                other, trace = self.run_client("--print", "engine,workspace,checksum", option, operation + " " + PROBLEMS[1])
                self.assertEqual(other.stdout, usual.stdout, option)
                apis = [api for api, _, _ in trace]
                graph = "graph" + self.suffix(operation)
                self.assertEqual(apis, ["populate" + self.suffix(operation), graph] if "cuda" in option else [graph])

    def test_the_plans_text(self):
        done, trace = self.run_client("--device-json", STANDIN + "/h200-deviceprop.json", "--print", "json",
                                      "backward_data " + PROBLEMS[0])
        self.assertIn("CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR", done.stdout)
        self.assertEqual(trace, [])

    def test_graphs_without_a_convolution(self):
        done, trace = self.run_client(client=OTHER_GRAPHS)
        pooling, matmul, add = done.stdout.splitlines()
        self.assertRegex(pooling, "^max_pool: eng1 checksum=.* right$")
        self.assertEqual(trace, [["graph", "eng1", "RESAMPLE_FWD"]])
        for line in (matmul, add):
            self.assertRegex(line, "can't run: the heuristics offer nothing")

    def test_what_it_refuses(self):
        for arguments, reason in ((("--bias-relu", "dgrad " + PROBLEMS[0]), "to a forward convolution only"),
                                  ((PROBLEMS[0] + " fused=relu",), "fuses nothing but add,relu and add,add,relu"),
                                  (("--api", "legacy", "--from-json", PROBLEMS[0]), "belong to the graph API")):
            done, _ = self.run_client(*arguments, status=1)
            self.assertIn(reason, done.stderr)


if __name__ == "__main__":
    unittest.main()
