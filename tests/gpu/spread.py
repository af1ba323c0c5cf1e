"""What the evidence scripts share: the convpin command, work spread over a machine's GPUs within a budget, logs in parts.

CONVPIN names the command under test (build/release/convpin). What a script has measured stays in its --folder, and the same
command goes on from there, since a GPU may be lent for minutes only.
"""
import argparse
import collections
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import threading
import time

import runs

CONVPIN = pathlib.Path(os.environ.get("CONVPIN", runs.ROOT / "build/release/convpin"))
BEGAN = time.monotonic()
CORES = 16   # of each GPU's child processes


def options(doc, name, **more):
    """The options that all have; `more`: further ones, with their defaults; a list's values are words, a boolean's is a flag."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=f"{name}.md", help="the table")
    parser.add_argument("--folder", type=pathlib.Path, default=runs.ROOT / "build/gpu" / name, help="what was measured; gone on from")
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--budget", type=float, default=540, help="seconds; what is not done by then is for the next call")
    for key, default in more.items():
        how = {"action": "store_true"} if default is False else {"nargs": "+", "default": default} if isinstance(default, list) else \
            {"type": type(default), "default": default}
        parser.add_argument("--" + key.replace("_", "-"), **how)
    o = parser.parse_args()
    o.folder = o.folder.resolve()
    o.folder.mkdir(parents=True, exist_ok=True)
    o.builds = o.folder / "builds.txt"   # of the command, that have measured into the folder
    if build() not in (o.builds.read_text().split() if o.builds.exists() else []):
        with open(o.builds, "a") as out:
            out.write(build() + "\n")
    return o


@functools.cache
def build():
    """The commit of the command under test, as its --version says it; where it has none, what tells it from another."""
    if not CONVPIN.exists():
        return "none"
    said = subprocess.run([CONVPIN, "--version"], capture_output=True, text=True).stdout
    commit = re.search(r"\((.+)\)", said)
    return commit[1] if commit else hashlib.sha256(CONVPIN.read_bytes()).hexdigest()[:12]


def say(text):
    sys.stderr.write(f"[{time.monotonic() - BEGAN:5.0f} s] {text}\n")   # one write: the GPUs' threads don't mix within a line
    sys.stderr.flush()


def left(o):
    """Seconds of the budget that are left; what begins must fit."""
    return o.budget - (time.monotonic() - BEGAN)


def cudnn_folder():
    import nvidia.cudnn
    return str(list(nvidia.cudnn.__path__)[0])


def visible(gpu):
    """The number or UUID by which CUDA knows the gpu-th GPU that this process may use."""
    names = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return names.split(",")[gpu] if names else str(gpu)


def run(argv, gpu=0, env=None, timeout=600):
    """Runs argv on that GPU, without rules of this environment; (status, stdout, stderr, seconds)."""
    begin = time.monotonic()
    result = runs.child(list(map(str, argv)), preload=False, env={"CUDA_VISIBLE_DEVICES": visible(gpu), **(env or {})}, timeout=timeout)
    return *result, time.monotonic() - begin


def in_turn(commands, gpu, timeout=300):
    """Runs programs that have --wait, one after the other, when all have done their imports: none disturbs another's clock.

    commands: (argv, environment). Yields (status, stdout, stderr, seconds from the word to go).
    """
    waiting = [subprocess.Popen(list(map(str, argv)) + ["--wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=runs.environment({"CUDA_VISIBLE_DEVICES": visible(gpu), **env}, preload=False)) for argv, env in commands]
    try:
        for process in waiting:
            process.stdout.readline()   # "ready", or nothing where it failed
        for process in waiting:
            begin = time.monotonic()
            out, err = process.communicate("go\n", timeout=timeout)
            yield process.returncode, out, err, time.monotonic() - begin
    finally:
        for process in waiting:
            process.kill()
            process.communicate()


def convpin(*args, **kwargs):
    return run([CONVPIN, *args], **kwargs)


def program(script, *args, record=None, config=()):
    """argv of a Python program of this folder, by `convpin run` where it is recorded or pinned."""
    argv = [sys.executable, pathlib.Path(__file__).parent / script, *args]
    if not record and not config:
        return argv
    pinned = [word for file in config for word in ("--config", file)]
    return [CONVPIN, "run", *(["--record", record] if record else []), *pinned, "--", *argv]


def must(result, what):
    status, out, err, seconds = result
    if status:
        raise RuntimeError(f"{what}: exit {status}: {err[-1500:]}")
    return out, err, seconds


def over_gpus(o, jobs):
    """jobs[gpu]: functions of the GPU's number, one after the other; the GPUs side by side, each on cores of its own.

    Returns what failed; a job that fails doesn't stop the others. Jobs look at left(o) themselves.
    """
    failures, cores = [], sorted(os.sched_getaffinity(0))
    each = min(CORES, max(1, len(cores) // o.gpus))

    def work(gpu):
        os.sched_setaffinity(0, set(cores[gpu * each % len(cores):][:each]))   # this thread's, and so its children's
        for job in jobs[gpu]:
            try:
                job(gpu)
            except Exception as e:   # the other GPUs' results count
                failures.append(f"GPU {gpu}: {type(e).__name__}: {e}")
                say("FAILED " + failures[-1].splitlines()[0][:300])

    threads = [threading.Thread(target=work, args=(gpu,)) for gpu in range(o.gpus)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return failures


def dealt(items, hands):
    """The items as `hands` lists, in turn: neighbours, which are alike, go to different GPUs."""
    return [list(items)[i::hands] for i in range(hands)]


class Rows:
    """Raw numbers in JSON lines, written as they come: a call that is cut off keeps them."""

    def __init__(self, path):
        self.path, self.lock = path, threading.Lock()
        self.rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def add(self, **row):
        row = {"build": build(), **row}
        with self.lock:
            self.rows.append(row)
            with open(self.path, "a") as out:
                out.write(json.dumps(row) + "\n")

    def of(self, **wanted):
        with self.lock:
            return [r for r in self.rows if all(r.get(k) == v for k, v in wanted.items())]


def ran_most(log):
    """{problem: candidate} by the calls of a log's last counts; what its choices say where none were counted."""
    calls, chosen = collections.defaultdict(dict), {}
    for r in runs.read_log(log):
        if r["type"] == "count":
            calls[r["problem"]][r["ran"]] = r["calls"]
        if r["type"] == "choice":
            chosen[r["problem"]] = r["ran"]
    return {p: max(calls[p], key=calls[p].get) if calls[p] else ran for p, ran in chosen.items()}


def part_of(log, problems, to):
    """Writes those of the log's records that are of the problems, with all headers and ends; returns `to`."""
    numbers, out = set(), []
    for line in pathlib.Path(log).read_text().splitlines():
        r = json.loads(line)
        key = r["run_id"], r.get("problem_id")
        if r["type"] == "problem":
            (numbers.add if r["problem"] in problems else numbers.discard)(key)
        if key[1] is None or key in numbers:
            out.append(line)
    pathlib.Path(to).write_text("\n".join(out) + "\n")
    return to


def problems_in(log):
    """Texts of the log's problems, each once, in its order."""
    return list(dict.fromkeys(r["problem"] for r in runs.read_log(log) if r["type"] == "problem"))


def tune(o, gpu, log, to, state, *more, budget=None):
    """`convpin tune`, within the budget that is left; goes on where it stopped. state: Rows of {to, seconds, complete}."""
    name = str(to.name)
    if state.of(to=name, complete=True) or left(o) < 15:
        return
    seconds = min(left(o) - 10, budget or left(o))
    status, out, err, took = convpin("tune", log, "--cudnn", cudnn_folder(), "--budget", f"{int(seconds)} s", "-o", to, *more, gpu=gpu,
                                     timeout=seconds + 60)
    complete = "not tuned yet" not in err
    if status and complete:   # with nothing done in its time it exits 1, and is gone on with
        raise RuntimeError(f"convpin tune {name}: exit {status}: {err[-1500:]}")
    state.add(to=name, seconds=took, complete=complete)
    done = pathlib.Path(f"{to}.jsonl")
    say(f"GPU {gpu}: tuned {name} in {took:.0f} s{'' if complete else ', not all of it'}: "
        f"{len(ran_most(done)) if done.exists() else 0} of {len(problems_in(log))} problems")


def replay(gpu, problems, logs, to, *more, timeout=300):
    """Rows of `convpin replay --json` for what ran in the logs, of these problems alone; in a fresh process. Kept in the file `to`."""
    if not to.exists():
        args = [word for i, log in enumerate(logs) for word in ("--log", part_of(log, set(problems), to.with_suffix(f".{i}.jsonl")))]
        status, out, err, seconds = convpin("replay", *args, "--cudnn", cudnn_folder(), "--json", *more, gpu=gpu, timeout=timeout)
        if status not in (0, 1) or not out.strip():   # 1: a problem that none could run is in the rows
            raise RuntimeError(f"convpin replay {to.name}: exit {status}: {err[-1500:]}")
        to.write_text(out)
    return json.loads(to.read_text())


def footer(o, failures, open_steps=()):
    """The table's end, and the exit status."""
    command = f"`{pathlib.Path(sys.argv[0]).name} {shlex.join(sys.argv[1:])}`"
    with open(o.out, "a") as out:
        out.write("".join(f"- not done yet: {step}\n" for step in open_steps))
        builds = ", ".join(o.builds.read_text().split())
        out.write(f"\nBy {command}, convpin at {builds}; {len(failures)} failures\n" + "".join(f"- FAILED {f}\n" for f in failures))
    print(open(o.out).read())
    return 1 if failures else 0


def version_line():
    """runs.versions() by a child: this process stays without a CUDA context, whose memory others would see."""
    out = subprocess.run([sys.executable, "-c", "import runs; print(runs.versions())"], cwd=pathlib.Path(__file__).parent,
                         capture_output=True, text=True)
    return out.stdout.strip() or "without a GPU"
