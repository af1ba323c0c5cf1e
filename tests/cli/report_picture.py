"""The README's picture of a report: python3 tests/cli/report_picture.py LOG... -o report.png [--dark] [--open 2]

CONVPIN_COMMAND: the command (build/release/convpin). Needs Chromium (Debian: chromium).
"""
import argparse
import os
import pathlib
import subprocess
import tempfile

import browser

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+")
    parser.add_argument("-o", "--output", default=ROOT / "tests/gpu/results/report.png")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--open", type=int, default=2, help="problems that are unfolded")
    parser.add_argument("--width", type=int, default=1100)
    parser.add_argument("--height", type=int, default=1150)
    o = parser.parse_args()
    if not browser.CHROMIUM:
        parser.error("there is no Chromium here (Debian: chromium)")
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "report.html"
        subprocess.run([os.environ.get("CONVPIN_COMMAND", ROOT / "build/release/convpin"), "report", *o.logs, "-o", page], check=True)
        with browser.Browser(f"{folder}/profile") as b:
            b.open(page.as_uri(), o.width, o.height, "dark" if o.dark else "light")
            b.evaluate(f"[...document.querySelectorAll('.problem')].forEach((p, i) => p.open = i < {o.open})")
            pathlib.Path(o.output).write_bytes(b.screenshot())
    print(f"{o.output}: {os.path.getsize(o.output) // 1024} KiB")


if __name__ == "__main__":
    main()
