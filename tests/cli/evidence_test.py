"""What tests/gpu's evidence scripts do with the command, on the stand-in: they need a GPU, but what they rest on doesn't.

Would fail when: `tune`'s log no longer says what was chosen, or `replay --json` doesn't time it; a part of a log holds other
problems; a tuning that is not complete is taken for one; a problem's operations or bytes are wrong; a program's choice is not
told from what cudnn.benchmark tried; the list of 100 problems holds a text that the command doesn't know.
"""
import json
import pathlib
import sys
import types
import unittest.mock

import command
from command import PROBLEM, STRIDED

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "gpu"))
import deepbench  # noqa: E402  (its folder comes first)
import list_agreement  # noqa: E402
import spread  # noqa: E402
import starts  # noqa: E402

BACKWARD = "backward_data " + PROBLEM


class Evidence(command.Case):
    def setUp(self):
        super().setUp()
        self.options = types.SimpleNamespace(budget=1e6, workspace_limit=0, folder=pathlib.Path(self.folder))
        for patch in (unittest.mock.patch.object(spread, "CONVPIN", pathlib.Path(command.COMMAND)),
                      unittest.mock.patch.object(spread, "cudnn_folder", lambda: command.children.STANDIN),
                      unittest.mock.patch.dict("os.environ", command.children.environment()),
                      unittest.mock.patch.object(spread, "say", lambda text: None)):
            patch.start()
            self.addCleanup(patch.stop)

    def test_tuned_in_parts_and_timed_anew(self):
        self.record("convclient", PROBLEM, STRIDED, BACKWARD)
        log = self.options.folder / "run.jsonl"
        problems = spread.problems_in(log)
        self.assertEqual(len(problems), 3)
        part = self.options.folder / "part.jsonl"
        spread.part_of(log, set(problems[1:]), part)
        self.assertEqual(spread.problems_in(part), problems[1:])
        to, tunings = self.options.folder / "model.tuned.toml", spread.Rows(self.options.folder / "tunings.jsonl")
        spread.tune(self.options, 0, part, to, tunings, "--rounds", "3")
        self.assertTrue(tunings.of(to=to.name, complete=True))
        chosen = spread.ran_most(f"{to}.jsonl")
        self.assertEqual(set(chosen), set(problems[1:]))
        rows = spread.replay(0, problems[1:2], [part, f"{to}.jsonl"], self.options.folder / "model.search.0.json", "--all", "--rounds", "3")
        self.assertEqual({r["problem"] for r in rows}, {problems[1]})
        own, = (r for r in rows if r["engine"] == chosen[problems[1]])
        self.assertEqual(own["status"], "ok")
        self.assertGreater(own["time_ms"], 0)
        ratios, tuned = starts.against_the_best(self.options, "model")
        self.assertEqual((set(ratios), tuned), ({problems[1]}, 2))
        ratio, engine, best = ratios[problems[1]]
        self.assertGreaterEqual(ratio, 1)
        timed = {r["engine"]: r for r in rows}
        self.assertAlmostEqual(ratio, own["time_ms"] / timed[best]["time_ms"])
        self.assertTrue(engine == best or not starts.UNASKED & set(timed[best]["notes"]))

    def test_a_tuning_that_is_not_complete(self):
        self.record("convclient", PROBLEM, STRIDED)
        to, tunings = self.options.folder / "a.toml", spread.Rows(self.options.folder / "tunings.jsonl")
        spread.tune(self.options, 0, self.options.folder / "run.jsonl", to, tunings, budget=0.5)   # so many whole seconds: none
        self.assertEqual([r["complete"] for r in tunings.rows], [False])
        said = self.convpin("--version").stdout   # "convpin 0.1.0 (cf4a6cf)"; no commit where there is no checkout
        self.assertTrue(tunings.rows[0]["build"] in said if "(" in said else tunings.rows[0]["build"])
        self.assertEqual(spread.Rows(tunings.path).rows, tunings.rows)   # what the next call reads

    def test_what_ran_most(self):
        of = {"run_id": "r", "problem_id": 1}
        records = [{"type": "header", "schema": 1, "run_id": "r"}, {**of, "type": "problem", "problem": PROBLEM},
                   {**of, "type": "choice", "ran": "eng1"}, {**of, "type": "choice", "ran": "eng2"},
                   {**of, "type": "count", "ran": "eng1", "calls": 2}, {**of, "type": "count", "ran": "eng2", "calls": 6}]
        self.write("tried.jsonl", "".join(json.dumps(r) + "\n" for r in records))
        self.assertEqual(spread.ran_most(self.options.folder / "tried.jsonl"), {PROBLEM: "eng2"})

    def test_operations_and_bytes(self):
        operation, kind, flops, size = deepbench.work_of(
            "backward_filter x=[2,16,14,14] w=[32,8,3,3] half nhwc pad=1,1 stride=2,2 dilation=1,1 groups=2")
        self.assertEqual((operation, kind), ("backward_filter", "half"))
        self.assertEqual(flops, 2 * (2 * 32 * 7 * 7) * (8 * 3 * 3))
        self.assertEqual(size, 2 * (2 * 16 * 14 * 14 + 32 * 8 * 3 * 3 + 2 * 32 * 7 * 7))

    def test_the_hundred_problems(self):
        texts = list_agreement.problems()
        self.assertEqual(len(set(texts)), 100)
        listed = self.json("list", *texts, "--device", "h200", "--cudnn", command.children.CUDNN, standin=False)
        self.assertEqual(len({entry["problem"] for entry in listed}), 100)
        self.assertGreater(sum(any(e["supported"] == "yes" for e in entry["engines"]) for entry in listed), 90)


if __name__ == "__main__":
    command.main()
