"""What the library costs by instructions, which no clock disturbs: no test, a benchmark; it needs valgrind and no GPU.

    python3 tests/preload/instructions.py [--build build/release] [--out instructions.md]

convclient, on the stand-in for CPUs, executes one plan FEW and MANY times, with a variant pack of its own each time, as
PyTorch's eager mode does: seven calls of cuDNN's for each convolution. The slope between the two is a convolution's cost;
what is more than the bare program's is ours. Allocations in between may differ by some tens of instructions.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBLEM = "x=[1,1,1,1] w=[1,1,1,1] float nchw pad=0"
FEW, MANY = 100, 1100
VARIANTS = {   # variables, or None for the program without the library
    "bare": None,
    "no rule, no profile": {},
    "CONVPIN_LOG only": {"CONVPIN_LOG": "/dev/null"},
    "CONV_FWD_ALGO=0, CONVPIN_PROFILE=off": {"CONV_FWD_ALGO": "0", "CONVPIN_PROFILE": "off"},
}


def instructions(build, folder, variables, repeat):
    """Of the whole program, by callgrind."""
    env = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(build / "standin"), "CONVPIN_QUIET": "1"}
    if variables is not None:
        env |= {"LD_PRELOAD": str(build / "libconvpin.so")} | variables
    done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", str(build / "convclient"), "--repeat", str(repeat), PROBLEM],
                          env=env, cwd=folder, capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        raise SystemExit(f"convclient under valgrind: exit {done.returncode}: {done.stderr[-1500:]}")
    return int(found[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--out", default="instructions.md", help="the table")
    o = parser.parse_args()
    if not shutil.which("valgrind"):
        raise SystemExit("valgrind is not installed: apt-get install valgrind")
    build, each = o.build.resolve(), {}
    with tempfile.TemporaryDirectory() as folder:
        for name, variables in VARIANTS.items():
            few, many = (instructions(build, folder, variables, n) for n in (FEW, MANY))
            each[name] = (many - few) / (MANY - FEW)
            print(f"{name}: {each[name]:.0f}", file=sys.stderr)
    version = subprocess.run([build / "convpin", "--version"], capture_output=True, text=True).stdout.strip()
    with open(o.out, "w") as out:
        out.write(f"{version}; `tests/preload/instructions.py`, {PROBLEM}, executed {MANY} times against {FEW}; cuDNN's stand-in included\n\n")
        out.write("| run | instructions a convolution | more than bare |\n| --- | --- | --- |\n")
        for name, count in each.items():
            out.write(f"| {name} | {count:.0f} | {'' if name == 'bare' else round(count - each['bare'])} |\n")
    print(open(o.out).read())


if __name__ == "__main__":
    main()
