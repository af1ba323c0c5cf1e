"""The report's page in a browser: Chromium, light and dark, wide and narrow.

Would fail when: the page throws, logs or asks for anything but itself; is wider than its window; lacks a problem, a candidate or a
warning, or doesn't say warnings first; its colours don't follow light and dark; what ran is not drawn in its colour; the filter
shows the wrong problems.
"""
import collections
import itertools
import json
import os
import struct
import unittest
import zlib

import browser
import command
from command import PROBLEM, STRIDED

# The page's background, and the colour of what ran: tools/convpin/report_style.hpp.
COLOURS = {"light": ((255, 255, 255), (0x1F, 0x6F, 0xEB)), "dark": ((0x14, 0x18, 0x1D), (0x6C, 0xB0, 0xFF))}
SIZES = [(1280, 900), (400, 800)]


def pixels(png):
    """Counts of the colours of a PNG file without interlacing, 8 bits a channel; and its first pixel."""
    at, data = 8, b""
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", png[at + 8:at + 18])
        if kind == b"IDAT":
            data += png[at + 8:at + 8 + length]
        at += 12 + length
    assert depth == 8 and colour in (2, 6)
    step = 3 if colour == 2 else 4
    raw, before, counts, first = zlib.decompress(data), bytearray(width * step), collections.Counter(), None
    for y in range(height):
        begin = y * (width * step + 1)
        how, line = raw[begin], bytearray(raw[begin + 1:begin + 1 + width * step])
        for i in range(len(line)) if how else ():
            left, above, corner = (line[i - step], before[i], before[i - step]) if i >= step else (0, before[i], 0)
            if how == 4:   # Paeth: the nearest of the three to left + above - corner
                to = left + above - corner
                guess = min((left, above, corner), key=lambda v: abs(to - v))
            else:
                guess = (0, left, above, (left + above) // 2)[how]
            line[i] = (line[i] + guess) & 255
        counts.update(zip(line[0::step], line[1::step], line[2::step]))
        first = first or tuple(line[:3])
        before = line
    return counts, first


def made_log():
    """A run with what the stand-in doesn't have: labels, energy, candidates that are far slower, a choice that was refused."""
    of = {"run_id": "r", "problem_id": 1}
    problem = "forward x=[64,3,224,224] w=[64,3,7,7] half nhwc pad=3,3 stride=2,2 dilation=1,1 groups=1"
    records = [{"type": "header", "schema": 1, "run_id": "r", "cudnn": "9.19.0", "command": "python <b>train</b>.py " + "--long " * 40,
                "gpu": {"name": "NVIDIA H200"}},
               {**of, "type": "problem", "problem": problem, "api": "graph", "labels": ["conv1", "layer1.0.downsample.0" * 4]}]
    for i, (time, energy) in enumerate([(40, 25.5), (50, 20.25), (44, None), (210, 90), (900, None)]):
        records.append({**of, "type": "candidate", "engine": f"eng{i}_k2={i}_k13=0_k18=1_k25=0_k27=4_k28=1", "algorithm": 1, "status": "ok",
                        "time_us": time, "workspace_bytes": 4096 * i, "energy_mj": energy, "framework_choice": i == 1,
                        "numerical_notes": ["TENSOR_CORE", "REDUCED_PRECISION_REDUCTION"]})
    ran = records[2]["engine"]
    records += [{**of, "type": "choice", "choice": "unsupported", "api": "graph", "requested": "7 (WINOGRAD_NONFUSED)", "ran": ran, "engine": ran,
                 "reason": "not supported (false == conv.isCompatibleFilterFormat(CUDNN_TENSOR_NCHW))"},
                {**of, "type": "count", "ran": ran, "calls": 1000}, {"type": "end", "run_id": "r"}]
    return "".join(json.dumps(r) + "\n" for r in records)


@unittest.skipUnless(browser.CHROMIUM, "no Chromium here (Debian: chromium)")
class ReportInABrowser(command.Case):
    def test_light_and_dark_wide_and_narrow(self):
        log = self.record("convclient", "--repeat", "3", PROBLEM, STRIDED, CONVPIN_PROFILE="engines", CONV_FWD_ALGO="DIRECT")
        self.write("made.jsonl", made_log())
        self.convpin("report", "run.jsonl", "made.jsonl", "-o", "report.html")
        page = f"file://{self.folder}/report.html"
        with browser.Browser(self.folder / "profile") as b:
            for scheme, (width, height) in itertools.product(COLOURS, SIZES):
                with self.subTest(scheme=scheme, width=width):
                    b.open(page, width, height, scheme)
                    self.assertEqual(b.evaluate("innerWidth"), width)
                    self.assertLessEqual(b.evaluate("document.documentElement.scrollWidth"), width)
                    b.evaluate("document.querySelector('.chosen').scrollIntoView({block: 'center'})")
                    picture = b.screenshot()
                    if kept := os.environ.get("CONVPIN_REPORT_PICTURES"):
                        with open(f"{kept}/report-{scheme}-{width}.png", "wb") as out:
                            out.write(picture)
                    counts, first = pixels(picture)
                    back, chosen = COLOURS[scheme]
                    self.assertEqual(first, back)
                    self.assertGreater(counts[chosen], 100, "the bars of what ran are not to be seen")
                    self.assertGreater(sum(counts.values()) - counts[back], 0.1 * width * height, "next to nothing is drawn")
                    b.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
                    self.assertLessEqual(b.evaluate("document.documentElement.scrollWidth"), width)   # nor with all unfolded
                    self.assertEqual(b.requests, [page])
                    self.assertEqual(b.errors, [])
            text = b.evaluate("document.body.innerText")
            for record in log:
                if record["type"] in ("problem", "candidate") and record.get("status") != "unsupported":
                    self.assertIn(record["problem"] if record["type"] == "problem" else record["engine"], text)
            for words in ("25.50 mJ", "25.50 J", "gained 10.00 ms", "gained by the pins", "more than five times as slow", "<b>train</b>", "not supported",
                          "7 (WINOGRAD_NONFUSED) was asked for and is not set"):
                self.assertIn(words, text)
            self.assertLess(text.index("Warnings"), text.index("By operation"))
            self.assertLess(text.index("By operation"), text.index("By layer"))

    def test_filter(self):
        self.record("convclient", PROBLEM, STRIDED)
        self.convpin("report", "run.jsonl", "-o", "report.html")
        with browser.Browser(self.folder / "profile") as b:
            b.open(f"file://{self.folder}/report.html", 1280, 900, "light")
            for typed, shown in (("stride=2,2", 1), ("x= forward", 2), ("backward", 0), ("", 2)):
                b.evaluate(f"var f = document.getElementById('filter'); f.value = '{typed}'; f.dispatchEvent(new Event('input'))")
                texts = b.evaluate("[...document.querySelectorAll('.problem')].filter(p => !p.hidden).map(p => p.textContent)")
                self.assertEqual(len(texts), shown, typed)
                self.assertTrue(all(word in text for word in typed.split() for text in texts))
            self.assertEqual(b.errors, [])


if __name__ == "__main__":
    command.main()
