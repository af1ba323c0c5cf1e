"""What a start costs and gives: benchmark off, benchmark on, frozen and tuned, alternating, a fresh process each.

    python3 starts.py --gpus 4 --folder build/gpu/starts --out starts.md     (again, until nothing is "not done yet")

For each model and kind: recorded with benchmark off, frozen, tuned; then --starts rounds of the four, their order rotated. All
starts of one configuration are on one GPU. Ratios are of neighbours in the same round. Then every candidate of every problem is
timed anew in fresh processes, and the tuned choice compared with the best that the policy may take. --workspace-limit BYTES: of tune.
"""
import json
import math

import runs
import spread
from spread import say

# model-kind-batch. In AMP steps of 64 images are the host's time more than the GPU's: their own spread hides what a pin does.
CONFIGURATIONS = ["resnet50-amp-64", "resnet50-amp-256", "resnet50-fp32-64", "efficientnet_b0-amp-256", "efficientnet_b0-fp32-256", "vgg16-fp32-64"]
MODES = ["benchmark off", "benchmark on", "frozen", "tuned"]
MEASURES = {"first_s": "first step s", "step_ms": "step ms", "peak_gib": "PyTorch peak GiB", "device_gib": "device peak GiB"}
AIMS = [("first_s", "benchmark off", 1.05), ("device_gib", "benchmark off", 1.0), ("peak_gib", "benchmark off", 1.0),
        ("step_ms", "benchmark off", 1.0), ("step_ms", "benchmark on", 1.0)]
CHUNK = 10   # problems of one process in the search of all
# What no policy takes unasked: tools/convpin/tuner.cpp. A tuned choice with such a note is the framework's own.
UNASKED = {"down_convert_inputs", "nondeterministic", "reduced_precision_reduction", "runtime_compilation"}


def training(name, *arguments, **how):
    """argv of the training steps of a configuration."""
    model, kind, batch = name.split("-")
    return spread.program("training.py", model, kind, "--batch", batch, *arguments, **how)


def pins(folder, name, mode):
    return {"frozen": [folder / f"{name}.frozen.toml"], "tuned": [folder / f"{name}.tuned.toml"]}.get(mode, [])


def prepare(o, gpu, name, tunings):
    log, frozen = o.folder / f"{name}.jsonl", o.folder / f"{name}.frozen.toml"
    if not log.exists():
        unfinished = log.with_suffix(".part")
        unfinished.unlink(missing_ok=True)
        spread.must(spread.run(training(name, "--steps", 8, record=unfinished), gpu=gpu), f"recording {name}")
        unfinished.rename(log)
    spread.must(spread.convpin("freeze", log, "-o", frozen), f"freezing {name}")
    spread.tune(o, gpu, log, o.folder / f"{name}.tuned.toml", tunings, *(["--workspace-limit", o.workspace_limit] if o.workspace_limit else []),
                budget=o.tune_budget)


def start(o, gpu, name, turns, rows):
    todo = [(turn, m) for turn in turns for m in MODES[turn % 4:] + MODES[:turn % 4] if not rows.of(config=name, mode=m, turn=turn)]
    if spread.left(o) < 60:
        return
    commands = [(training(name, "--steps", o.steps, *(["--benchmark"] if mode == "benchmark on" else []), config=pins(o.folder, name, mode)), {})
                for _, mode in todo]
    for (turn, mode), result in zip(todo, spread.in_turn(commands, gpu)):
        out, err, seconds = spread.must(result, f"{name}, {mode}")
        r = json.loads(out.splitlines()[-1])
        rows.add(config=name, mode=mode, turn=turn, seconds=seconds, **r)
        say(f"GPU {gpu}: {name} {turn + 1}/{o.starts} {mode}: first step {r['first_s']:.2f} s, step {r['step_ms']:.2f} ms, {r['device_gib']:.2f} GiB")


def search(o, gpu, name):
    """Every candidate of every problem that was tuned, in fresh processes of CHUNK problems."""
    log = o.folder / f"{name}.tuned.toml.jsonl"
    problems = sorted(spread.ran_most(log)) if log.exists() else []
    for i in range(0, len(problems), CHUNK):
        to = o.folder / f"{name}.search.{i // CHUNK}.json"
        if not to.exists() and spread.left(o) > 60:
            spread.replay(gpu, problems[i:i + CHUNK], [log], to, "--all", timeout=spread.left(o))
            say(f"GPU {gpu}: {name}: every candidate of problems {i + 1} to {min(i + CHUNK, len(problems))} of {len(problems)}")


def against_the_best(o, name):
    """({problem: (time of the tuned choice / time of the best that may be taken, both)}, problems that were tuned)."""
    log = o.folder / f"{name}.tuned.toml.jsonl"
    if not log.exists():
        return {}, 0
    chosen, ratios = spread.ran_most(log), {}
    rejected = {(r["problem"], r["engine"]) for r in runs.read_log(log)
                if r["type"] == "candidate" and r["status"] == "skipped"}   # its error is out of line, or its compilation isn't repaid
    for i in range(math.ceil(len(chosen) / CHUNK)):
        file = o.folder / f"{name}.search.{i}.json"
        rows = json.loads(file.read_text()) if file.exists() else []
        for problem in {r["problem"] for r in rows}:
            timed = {r["engine"]: r for r in rows if r["problem"] == problem and r["status"] == "ok" and r["time_ms"]}
            own = timed.get(chosen[problem])
            if own:
                fair = {e: r["time_ms"] for e, r in timed.items() if not UNASKED & set(r["notes"]) and (problem, e) not in rejected and
                        (not o.workspace_limit or r["workspace_bytes"] <= o.workspace_limit)}
                fair[own["engine"]] = own["time_ms"]
                best = min(fair, key=fair.get)
                ratios[problem] = own["time_ms"] / fair[best], own["engine"], best
    return ratios, len(chosen)


def word(ratio, half, limit):
    """Of an aim: met also at the upper bound, by the mean alone, not decided by so many starts, or not met."""
    return "met" if ratio + half <= limit else "met by the mean" if ratio <= limit else "open" if ratio - half <= limit else "NOT met"


def table(o, rows, tunings, out):
    out.write(f"Measured {spread.version_line()}; training steps of torchvision's models, {o.steps} steps a start. 95 % bounds; "
              "ratios to benchmark off in the same round."
              f"{f' Tuned with a workspace limit of {o.workspace_limit} bytes.' if o.workspace_limit else ''}\n\n")
    out.write("| model | convpin at | | starts | " + " | ".join(f"{m} | ratio" for m in MEASURES.values()) + " |\n|" + " --- |" * (4 + 2 * len(MEASURES)) + "\n")
    verdicts = []
    for name in o.configs:
        of = {mode: {r["turn"]: r for r in rows.of(config=name, mode=mode)} for mode in MODES}
        for mode in MODES:
            if not of[mode]:
                continue
            cells = []
            for key in MEASURES:
                mean, half = runs.interval([r[key] for r in of[mode].values()])
                ratio = ratio_of(of, mode, "benchmark off", key)
                cells += [f"{mean:.3f} ± {half:.3f}", "" if mode == "benchmark off" or not ratio else f"{ratio[0]:.3f} ± {ratio[1]:.3f}"]
            builds = ", ".join(sorted({r.get("build", "") for r in of[mode].values()}))
            out.write(f"| {name.replace('-', ' ')} | {builds} | {mode} | {len(of[mode])} | " + " | ".join(cells) + " |\n")
            for key, beside, limit in AIMS if mode in ("frozen", "tuned") else []:
                if ratio := ratio_of(of, mode, beside, key):
                    verdicts.append((name, mode, f"{MEASURES[key]} at most {limit:g} × {beside}", *ratio, word(*ratio, limit)))
    out.write("\n| model | | aim | ratio | |\n| --- | --- | --- | --- | --- |\n")
    for name, mode, aim, ratio, half, verdict in verdicts:
        out.write(f"| {name.replace('-', ' ')} | {mode} | {aim} | {ratio:.4f} ± {half:.4f} | {verdict} |\n")
    out.write("\nTuned choices against the best of an exhaustive search, timed anew in fresh processes (aims: 1.01 geomean, 1.03 worst)\n\n"
              "| model | tuning s | problems tuned | compared | geomean | worst | the worst problem: its choice, the best | |\n|" + " --- |" * 8 + "\n")
    for name in o.configs:
        ratios, tuned = against_the_best(o, name)
        if ratios:
            geomean = math.exp(sum(math.log(r[0]) for r in ratios.values()) / len(ratios))
            worst = max(ratios, key=lambda p: ratios[p][0])
            ratio, own, best = ratios[worst]
            out.write(f"| {name.replace('-', ' ')} | {sum(t['seconds'] for t in tunings.of(to=f'{name}.tuned.toml')):.0f} | {tuned} | {len(ratios)} | "
                      f"{geomean:.4f} | {ratio:.3f} | {worst}: {own}, {best} | {'met' if geomean <= 1.01 and ratio <= 1.03 else 'NOT met'} |\n")
    out.write("\n")


def ratio_of(of, mode, beside, key):
    """Mean ratio with its half-width over the rounds that have both; None where there are none."""
    ratios = [r[key] / of[beside][turn][key] for turn, r in of[mode].items() if turn in of[beside]]
    return runs.interval(ratios) if ratios else None


def main():
    o = spread.options(__doc__, "starts", configs=CONFIGURATIONS, starts=10, steps=30, tune_budget=200.0, workspace_limit=0)
    rows, tunings = spread.Rows(o.folder / "starts.jsonl"), spread.Rows(o.folder / "tunings.jsonl")

    def job(name):
        def do(gpu):
            prepare(o, gpu, name, tunings)
            if tunings.of(to=f"{name}.tuned.toml", complete=True):   # else the starts' pins would change on the way
                for turn in range(0, o.starts, 2):
                    start(o, gpu, name, range(turn, min(turn + 2, o.starts)), rows)
        return do

    failures = spread.over_gpus(o, [[job(name) for name in mine] + [lambda gpu, n=n: search(o, gpu, n) for n in mine]
                                    for mine in spread.dealt(o.configs, o.gpus)])
    with open(o.out, "w") as out:
        table(o, rows, tunings, out)
    undone = []
    for name in o.configs:
        done, (ratios, tuned) = len(rows.of(config=name)), against_the_best(o, name)
        if done < 4 * o.starts or len(ratios) < tuned or not tunings.of(to=f"{name}.tuned.toml", complete=True):
            undone.append(f"{name}: {done} of {4 * o.starts} starts, {len(ratios)} of {tuned} tuned problems compared" +
                          ("" if tunings.of(to=f"{name}.tuned.toml", complete=True) else ", tuning not complete"))
    return spread.footer(o, failures, undone)


if __name__ == "__main__":
    raise SystemExit(main())
