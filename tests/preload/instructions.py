"""What the library costs by its own instructions, which no clock disturbs: no test, a benchmark; it needs valgrind and no GPU.

    python3 tests/preload/instructions.py [--build build/release] [--out instructions.md]

convclient, on the stand-in for CPUs, executes one plan FEW and MANY times, with a variant pack of its own each time, as
PyTorch's eager mode does: seven calls of cuDNN's for each convolution. Counted is what is executed in libconvpin.so itself;
the slope between the two is a convolution's. (The whole program's total differs by hundreds from build to build, with
what malloc does.)
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBLEM = "x=[1,1,1,1] w=[1,1,1,1] float nchw pad=0"
FEW, MANY = 100, 1100
VARIANTS = {
    "no rule, no profile": {},
    "CONVPIN_LOG only": {"CONVPIN_LOG": "/dev/null"},
    "CONV_FWD_ALGO=0, CONVPIN_PROFILE=off": {"CONV_FWD_ALGO": "0", "CONVPIN_PROFILE": "off"},
}


def own_cost(path):
    """Instructions in libconvpin.so, by callgrind's file: costs stand below their object (ob=); that of a callee below calls=."""
    names, ours, total, callee = {}, False, 0, False
    for line in path.read_text().splitlines():
        if line.startswith(("ob=", "cob=")):   # a name stands where its number comes first
            number, _, name = line.split("=", 1)[1].partition(" ")
            names[number] = names.get(number) or name
            if line.startswith("ob="):
                ours = names[number].endswith("libconvpin.so")
        elif line.startswith("calls="):
            callee = True
        elif line[:1] in "+-*0123456789" and line:
            total += int(line.split()[1]) if ours and not callee else 0
            callee = False
    return total


def instructions(build, folder, variables, repeat):
    """Of the library in the whole program, by callgrind."""
    env = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(build / "standin"), "LD_PRELOAD": str(build / "libconvpin.so"), "CONVPIN_QUIET": "1"}
    done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", str(build / "convclient"), "--repeat", str(repeat), PROBLEM],
                          env=env | variables, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"convclient under valgrind: exit {done.returncode}: {done.stderr[-1500:]}")
    return own_cost(pathlib.Path(folder) / "out")


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
        out.write(f"{version}; `tests/preload/instructions.py`, {PROBLEM}, executed {MANY} times against {FEW}\n\n")
        out.write("| run | instructions of libconvpin.so for a convolution |\n| --- | --- |\n")
        for name, count in each.items():
            out.write(f"| {name} | {count:.0f} |\n")
    print(open(o.out).read())


if __name__ == "__main__":
    main()
