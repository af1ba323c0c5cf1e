"""Six starts of ResNet-50's training step: do all 158 convolutions run the same configuration, and are the losses the same?

    python3 same_starts.py --gpus 4 --folder build/gpu/same_starts --out same_starts.md

What runs is read back by the library and taken from the log of each start. Beside starts with cudnn.benchmark=True and no pins:
pins frozen from one such run, and tuned ones; then the same with deterministic rules and torch.use_deterministic_algorithms.
It fails where starts with pins differ in a configuration, or, with deterministic rules, in a bit of a loss.
"""
import json

import runs
import spread
from spread import say

STEPS = 12   # a plan that is kept runs more often than cudnn.benchmark tried it
DETERMINISTIC = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
# name: (pins, arguments of the program, environment)
MODES = {
    "benchmark on, no pins": (None, ["--benchmark"], {}),
    "benchmark on, frozen": ("frozen", ["--benchmark"], {}),
    "benchmark off, tuned": ("tuned", [], {}),
    "deterministic, benchmark on, no pins": (None, ["--benchmark", "--deterministic"], DETERMINISTIC),
    "deterministic, tuned": ("deterministic", ["--deterministic"], DETERMINISTIC),
    "deterministic, frozen": ("as_deterministic", ["--deterministic"], DETERMINISTIC),
}


def prepare(o, gpu, kind, which, tunings):
    """The pin file, from a run of its own."""
    log = o.folder / f"{kind}.{which}.record.jsonl"
    if not log.exists():
        arguments, env = (["--benchmark"], {}) if which == "frozen" else (["--deterministic"], DETERMINISTIC) if "deterministic" in which else ([], {})
        unfinished = log.with_suffix(".part")
        unfinished.unlink(missing_ok=True)
        spread.must(spread.run(spread.program("training.py", "resnet50", kind, "--steps", STEPS, *arguments, record=unfinished), gpu=gpu, env=env),
                    f"recording {kind} {which}")
        unfinished.rename(log)
    to = o.folder / f"{kind}.{which}.toml"
    if which in ("frozen", "as_deterministic"):
        spread.must(spread.convpin("freeze", log, "-o", to), f"freezing {kind}")
    else:
        spread.tune(o, gpu, log, to, tunings, *(["--deterministic"] if which == "deterministic" else []))


def log_of(o, kind, mode, turn):
    return o.folder / f"{kind}.{list(MODES).index(mode)}.{turn}.jsonl"


def start(o, gpu, starts, rows):
    """Some of (kind, mode, turn), one after the other."""
    starts = [s for s in starts if not rows.of(**dict(zip(("kind", "mode", "turn"), s)))]
    if spread.left(o) < 60:
        return
    commands = []
    for kind, mode, turn in starts:
        pins, arguments, env = MODES[mode]
        log = log_of(o, kind, mode, turn)
        log.unlink(missing_ok=True)
        argv = spread.program("training.py", "resnet50", kind, "--steps", STEPS, *arguments, record=log,
                              config=[o.folder / f"{kind}.{pins}.toml"] if pins else [])
        commands.append((argv, env))
    for (kind, mode, turn), result in zip(starts, spread.in_turn(commands, gpu)):
        out, err, seconds = spread.must(result, f"{kind}, {mode}")
        rows.add(kind=kind, mode=mode, turn=turn, seconds=seconds, **json.loads(out.splitlines()[-1]))
        say(f"GPU {gpu}: {kind}, {mode}, start {turn + 1} of 6: {len(spread.ran_most(log_of(o, kind, mode, turn)))} problems, {seconds:.0f} s")


def weights(log):
    """{problem: convolutions of a step}, by the calls of what ran most: a benchmark's trials are few."""
    calls = {}
    for r in runs.read_log(log):
        if r["type"] == "count":
            calls.setdefault(r["problem"], {})[r["ran"]] = r["calls"]
    return {p: round(max(c.values()) / STEPS) for p, c in calls.items()}


def unpinned(log):
    """Problems that a rule did not set, by read-back, or that ran by more than one configuration."""
    ran, bad = {}, set()
    for r in runs.read_log(log):
        if r["type"] == "choice" and r["choice"] != "set":
            bad.add(r["problem"])
        if r["type"] == "count" and r["calls"]:
            ran.setdefault(r["problem"], set()).add(r["ran"])
    return bad | {p for p, what in ran.items() if len(what) > 1}


def compare(o, kind, mode, done, failures):
    """A table's row of the starts of one mode, by problems and by the convolutions of a step."""
    logs = [log_of(o, kind, mode, r["turn"]) for r in done]
    ran = [spread.ran_most(log) for log in logs]
    problems = sorted(set().union(*ran))
    same = {p for p in problems if len({what.get(p) for what in ran}) == 1}
    same_engine = {p for p in problems if len({what.get(p, "").split("_")[0] for what in ran}) == 1}
    of = weights(logs[0])
    total, agreeing = sum(of.values()), sum(of.get(p, 0) for p in same)
    status = spread.convpin("diff", *logs)[0] if len(logs) > 1 else None
    losses = [r["losses"] for r in done]
    equal = all(loss == losses[0] for loss in losses)
    furthest = max(abs(float.fromhex(a) - float.fromhex(b)) for loss in losses for a, b in zip(loss, losses[0]))
    if MODES[mode][0]:
        loose = {p for log in logs for p in unpinned(log)}
        if len(same) < len(problems) or loose or status != 0 or round(total) != round(agreeing):
            failures.append(f"{kind}, {mode}: {len(problems) - len(same)} problems differ, {len(loose)} are not set throughout "
                            f"({'; '.join(sorted(loose)[:3])}); diff exits {status}")
        if mode.startswith("deterministic") and not equal:
            failures.append(f"{kind}, {mode}: the losses differ by up to {furthest:g}")
    return (f"| {kind} | {mode} | {len(done)} | {len(same)} of {len(problems)} | {agreeing:.0f} of {total:.0f} | {len(same_engine)} | {status} | "
            f"{'the same, bit for bit' if equal else f'differ by up to {furthest:.2g}'} |\n")


def main():
    o = spread.options(__doc__, "same_starts", kinds=["amp", "fp32"], starts=6, modes=list(MODES))
    rows, tunings = spread.Rows(o.folder / "starts.jsonl"), spread.Rows(o.folder / "tunings.jsonl")
    pins = [(kind, which) for kind in o.kinds for which in dict.fromkeys(MODES[mode][0] for mode in o.modes) if which]
    failures = spread.over_gpus(o, [[lambda gpu, k=k, w=w: prepare(o, gpu, k, w, tunings) for k, w in mine] for mine in spread.dealt(pins, o.gpus)])
    ready = [(kind, mode) for kind in o.kinds for mode in o.modes for which in MODES[mode][:1]
             if which in (None, "frozen", "as_deterministic") or tunings.of(to=f"{kind}.{which}.toml", complete=True)]
    starts = [(kind, mode, turn) for kind, mode in ready for turn in range(o.starts)]
    failures += spread.over_gpus(o, [[lambda gpu, some=mine[i:i + 4]: start(o, gpu, some, rows) for i in range(0, len(mine), 4)]
                                     for mine in spread.dealt(starts, o.gpus)])
    undone = []
    with open(o.out, "w") as out:
        out.write(f"Measured {spread.version_line()}; ResNet-50, batch 64, {STEPS} training steps a start, the starts spread over {o.gpus} GPUs of a kind. "
                  "What ran is read back in each start and compared over all.\n\n")
        out.write("| | starts | number | same configuration, of the problems | of the step's convolutions | problems with the same engine | "
                  "convpin diff | losses |\n|" + " --- |" * 8 + "\n")
        for kind in o.kinds:
            for mode in o.modes:
                done = rows.of(kind=kind, mode=mode)
                if len(done) < o.starts:
                    undone.append(f"{kind}, {mode}: {len(done)} of {o.starts} starts")
                if done:
                    out.write(compare(o, kind, mode, done, failures))
        said = sorted({what for r in rows.rows for what in r["not_deterministic"]})
        out.write("\nWhat PyTorch said it has no deterministic way for: " + (", ".join(said) or "nothing") + ".\n\n")
    return spread.footer(o, failures, undone)


if __name__ == "__main__":
    raise SystemExit(main())
