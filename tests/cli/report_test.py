"""`convpin report`.

Would fail when: the page needs anything from elsewhere, is not well formed, lacks a problem or a candidate, marks another
candidate than what ran, or draws a bar that is not to scale; a text of the log's becomes markup; the CSV is not one row a
candidate; a warning is missing. In a browser: report_browser_test.py.
"""
import csv
import html.parser
import io
import re

import command
from command import PROBLEM, STRIDED

VOID = {"meta", "input", "br", "hr"}


class Page(html.parser.HTMLParser):
    """The page as nested lists of tags, with what would be fetched."""

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.rows, self.marked, self.widths = [], [], [], [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.links += [value for name, value in attributes.items() if name in ("src", "href", "action", "data")]
        if tag == "tr" and "candidates" in self.open:
            self.rows.append("")
            self.marked.append("chosen" in (attributes.get("class") or ""))
        if width := re.fullmatch(r"width:([0-9.]+)%", attributes.get("style", "")):
            self.widths.append(float(width[1]))
        if tag not in VOID:
            self.open.append("candidates" if attributes.get("class") == "candidates" else tag)

    def handle_endtag(self, tag):
        assert self.open.pop() in (tag, "candidates"), (tag, self.open)

    def handle_data(self, data):
        if self.rows and "candidates" in self.open:
            self.rows[-1] += data + " "


class Report(command.Case):
    def profiled(self, *problems, **variables):
        return self.record("convclient", "--repeat", "3", *problems, **({"CONV_FWD_ALGO": "DIRECT", "CONVPIN_PROFILE": "algorithms"} | variables))

    def page(self, *logs):
        self.convpin("report", *(logs or ["run.jsonl"]), "-o", "report.html")
        return (self.folder / "report.html").read_text()

    def test_the_page(self):
        log = self.profiled(PROBLEM, STRIDED)
        text = self.page()
        page = Page(text)
        self.assertEqual(page.links, [])
        self.assertNotRegex(text, r"https?://|@import|url\(")
        for record in log:
            if record["type"] == "problem":
                self.assertIn(f"<code>{record['problem']}</code>", text)
            if record["type"] == "candidate":
                self.assertIn(record["engine"], text)
        chosen = [row for row, marked in zip(page.rows, page.marked) if marked]
        self.assertEqual(len(chosen), 2)
        self.assertTrue(all("DIRECT" in row and " ran " in row for row in chosen), chosen)
        self.assertIn("prefers-color-scheme:dark", text)
        self.assertTrue(all(0 < width <= 100 for width in page.widths))
        self.assertIn(100.0, page.widths)

    def test_bars_are_to_scale_and_energy_has_a_column(self):
        header = '{"type":"header","schema":1,"run_id":"r","cudnn":"9.19.0","command":"<script>alert(1)</script>","gpu":{"name":"G&H"}}'
        of = '"run_id":"r","problem_id":1'
        lines = [header, f'{{{of},"type":"problem","problem":"{PROBLEM}","api":"graph","label":"layer1.<b>conv1</b>"}}']
        for engine, time, memory, energy in (("eng1", 1000, 0, 7.5), ("eng2", 250, 4096, 2.5), ("eng3", 500, 1024, "null"), ("eng4", 1300, 8192, "null")):
            lines.append(f'{{{of},"type":"candidate","engine":"{engine}","status":"ok","time_us":{time},"workspace_bytes":{memory},'
                         f'"energy_mj":{energy},"framework_choice":{"true" if engine == "eng1" else "false"}}}')
        lines += [f'{{{of},"type":"choice","choice":"set","api":"graph","ran":"eng2","engine":"eng2"}}',
                  f'{{{of},"type":"count","ran":"eng2","calls":1000}}']
        self.write("made.jsonl", "\n".join(lines) + "\n")
        text = self.page("made.jsonl")
        Page(text)
        rows = re.findall(r"<tr[^>]*><td>(eng\d).*?</tr>", text)
        self.assertEqual(rows, ["eng2", "eng3", "eng1", "eng4"])  # fastest first
        self.assertLess(text.index("1 more than five times as slow"), text.index("eng4"))  # folded away, in a table of its own
        widths = [[float(w) for w in re.findall(r"width:([0-9.]+)%", row)] for row in re.findall(r"<tr[^>]*><td>eng\d.*?</tr>", text)]
        self.assertEqual([[round(w) for w in row] for row in widths], [[25, 100, 33], [50, 25], [100, 0, 100], [100, 100]])
        self.assertIn("7.500 mJ", text)
        self.assertIn("<b>750.0 ms</b>gained by the pins", text)  # 1000 calls, 1 ms before, 0.25 ms now
        self.assertNotIn("<script>alert", text)
        self.assertIn("layer1.&lt;b&gt;conv1", text)
        self.assertIn("By layer", text)
        self.assertIn("did not end in an orderly way", text)
        self.assertLess(text.index("Warnings"), text.index("By operation"))

    def test_warnings(self):
        self.profiled(PROBLEM, CONV_FWD_ALGO="WINOGRAD")
        done = self.convpin("report", "run.jsonl", "--text")
        self.assertRegex(done.stdout, r"^warning: .*6 \(WINOGRAD\) was asked for and is not set: .*arch mismatch")
        self.profiled(PROBLEM, append=True, CONV_FWD_ALGO="DIRECT")
        self.assertIn("the runs don't agree", self.convpin("report", "run.jsonl", "--text").stdout)
        self.record("convclient", PROBLEM)
        text = self.convpin("report", "run.jsonl", "--text").stdout
        self.assertIn("no times are known", text)
        self.assertNotIn("fastest first", text)  # nothing was tried, so there is no such order
        self.assertRegex(text, r"\n  eng\d+\S* ran in 1 call(, workspace \d+ bytes?)?, the framework's choice\n  no candidate was tried or timed: the log has no profile\n  1 call \(graph\)\n")
        Page(self.page())
        self.write("idle.jsonl", '{"type":"header","schema":1,"run_id":"r"}\n')
        self.assertIn("no convolution was reached", self.page("idle.jsonl"))

    def test_calls_that_failed_are_warnings(self):
        self.record("convclient", "--benchmark", PROBLEM)  # refusals are routine
        self.assertNotIn("cudnnBackend", self.convpin("report", "run.jsonl", "--text").stdout)
        client = command.children.command(["convclient", "--api", "legacy", "--fixed", "1", PROBLEM])
        self.convpin("run", "--record", "failed.jsonl", "--", *client, status=1, STANDIN_FAIL_EXECUTE="algo1")
        text = self.convpin("report", "failed.jsonl", "--text").stdout
        self.assertRegex(text, "warning: failed.jsonl: cudnnConvolutionForward failed with CUDNN_STATUS_EXECUTION_FAILED "
                               r"\(stand-in: .*; again: convpin replay --legacy 'forward x=.*' --candidate 1\n")
        self.assertIn("cudnnConvolutionForward failed with", self.page("failed.jsonl"))

    def test_what_failed_by_its_rule(self):
        self.record_failing(CONVPIN_PROFILE="algorithms")
        text = self.convpin("report", "failing.jsonl", "--text").stdout
        self.assertRegex(text, "^warning: .*stride=2,2.* it failed: rule stem asks for 6")
        self.assertRegex(text, r"\n  0 calls \(graph\); it failed: rule stem")
        row, = (r for r in csv.DictReader(io.StringIO(self.convpin("report", "failing.jsonl", "--csv").stdout)) if r["status"] == "failed")
        self.assertIn("stride=2,2", row["problem"])
        self.assertRegex(row["reason"], "rule stem asks for 6")
        self.assertEqual((row["calls"], row["engine"], row["chosen"]), ("0", "", "0"))
        page = self.page("failing.jsonl")
        Page(page)
        self.assertRegex(page, "stride=2,2.*0 calls · graph API · failed</span></summary><div class=more>it failed: rule stem")

    def test_csv_has_a_row_a_candidate(self):
        log = self.profiled(PROBLEM, STRIDED)
        rows = list(csv.DictReader(io.StringIO(self.convpin("report", "run.jsonl", "--csv").stdout)))
        candidates = [r for r in log if r["type"] == "candidate"]
        self.assertEqual(len(rows), len(candidates))
        self.assertLessEqual({"algo", "time_ms", "memory_bytes", "energy_mj"}, set(rows[0]))
        texts = {r["problem_id"]: r["problem"] for r in log if r["type"] == "problem"}
        for row in rows:
            record, = (r for r in candidates if (texts[r["problem_id"]], r["engine"]) == (row["problem"], row["engine"] or None))
            self.assertEqual(row["algo"], str(record["algorithm"]))
            self.assertEqual(row["time_ms"] == "", record["time_us"] is None)
            self.assertAlmostEqual(float(row["time_ms"] or 0) * 1000, record["time_us"] or 0)
            self.assertEqual(row["memory_bytes"], "" if record["workspace_bytes"] is None else str(record["workspace_bytes"]))
        self.assertEqual([row["algo_name"] for row in rows if row["chosen"] == "1"], ["DIRECT", "DIRECT"])
        self.assertEqual(len(self.json("report", "run.jsonl")), len(rows))
        self.convpin("report", "run.jsonl", "--csv", "--text", status=2)

    def test_what_the_framework_chose_without_a_profile(self):
        for algo, chosen, engine in (("", "1", "eng70"), ("WINOGRAD", "1", "eng70"), ("DIRECT", "0", "eng0"), ("-1", "1", "eng70")):
            with self.subTest(algo):
                self.record("convclient", PROBLEM, CONVPIN_PROFILE="off", **({"CONV_FWD_ALGO": algo} if algo else {}))
                row, = csv.DictReader(io.StringIO(self.convpin("report", "run.jsonl", "--csv").stdout))
                self.assertEqual((row["chosen"], row["framework_choice"], row["engine"].split("_")[0]), ("1", chosen, engine))
                self.assertIs(self.json("report", "run.jsonl")[0]["framework_choice"], chosen == "1")
                self.assertEqual("framework’s choice</span>" in self.page(), chosen == "1")
                line, = (line for line in self.convpin("report", "run.jsonl", "--text").stdout.splitlines() if " ran in " in line)
                self.assertEqual("the framework's choice" in line, chosen == "1")

    def test_text(self):
        self.profiled(PROBLEM, CONVPIN_PROFILE="engines")
        text = self.convpin("report", "run.jsonl", "--text").stdout
        self.assertRegex(text, r"(?m)^\* 3 DIRECT +eng0 ")
        self.assertRegex(text, r"(?m)^forward +1 +3 ")


if __name__ == "__main__":
    command.main()
