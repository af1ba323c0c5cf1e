"""DeepBench's training convolutions in three operations, fp16 NHWC and TF32 NCHW: what tuning gives, over what, and how near the roofline.

    python3 deepbench.py --gpus 4 --folder build/gpu/deepbench --out deepbench.md     (again, until nothing is "not done yet")

A program runs each convolution with cudnn.benchmark off (the heuristics' first pick under PyTorch's own rules) and on; the
problems are tuned twice, and every --every-th of them with --knobs. Then everything that was picked is timed anew, interleaved,
in fresh processes: those are the times of the table, of the CSV file and of the plot beside it (deepbench_plot.py).
The roofline is the larger of operations / peak rate and bytes / bandwidth, both measured here (rates.py); each tensor once.
"""
import csv
import json
import math
import pathlib
import re

import spread
from spread import say

FILE = pathlib.Path(__file__).parent / "data/deepbench_conv_training.csv"
PARTS, CHUNK = 4, 20   # of the file's lines, whatever the number of GPUs; problems of one process that times anew
OPERATIONS, TYPES = ("forward", "backward_data", "backward_filter"), {"half": "fp16 NHWC", "float": "TF32 NCHW"}
BYTES = {"half": 2, "float": 4}
PICKS = {"heuristics": "off.jsonl", "benchmark": "on.jsonl", "tuned": "a.toml.jsonl", "tuned_again": "b.toml.jsonl", "knobs": "k.toml.jsonl"}


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def work_of(problem):
    """(operation, type, operations to compute, bytes of the three tensors) of a problem's text."""
    numbers = {k: [int(n) for n in v.strip("[]").split(",")] for k, v in re.findall(r"(\w+)=(\[[\d,]+\]|[\d,]+)", problem)}
    n, c, *image = numbers["x"]
    k, _, *window = numbers["w"]
    out = [(i + 2 * p - d * (f - 1) - 1) // s + 1
           for i, f, p, s, d in zip(image, window, numbers["pad"], numbers["stride"], numbers["dilation"])]
    kind = re.search(r"\] (\w+) ", problem)[1]
    x, w, y = n * c * math.prod(image), math.prod(numbers["w"]), n * k * math.prod(out)
    return problem.split()[0], kind, 2 * y * math.prod(numbers["w"][1:]), BYTES.get(kind, 4) * (x + w + y)


def record(o, gpu, part, name, *arguments):
    log = o.folder / f"{part}.{name}.jsonl"
    if log.exists() or spread.left(o) < 60:
        return
    unfinished = log.with_suffix(".part")
    unfinished.unlink(missing_ok=True)
    argv = spread.program("conv_steps.py", FILE, "--sample", o.sample, "--part", f"{part}/{PARTS}", *arguments, record=unfinished)
    _, _, seconds = spread.must(spread.run(argv, gpu=gpu, timeout=spread.left(o)), f"recording part {part} {name}")
    unfinished.rename(log)
    say(f"GPU {gpu}: part {part} with benchmark {name}: {len(spread.problems_in(log))} problems in {seconds:.0f} s")


def do_part(o, gpu, part, tunings):
    record(o, gpu, part, "off")
    record(o, gpu, part, "on", "--benchmark", "--repeat", 4)   # what is kept runs more often than it was tried
    off = o.folder / f"{part}.off.jsonl"
    if not off.exists() or not (o.folder / f"{part}.on.jsonl").exists():
        return
    problems = spread.problems_in(off)
    some = o.folder / f"{part}.some.jsonl"
    if not some.exists():
        spread.part_of(off, set(problems[::o.every]), some)
    wanted = [("a", off, []), ("b", off, []), ("k", some, ["--knobs"])]
    for name, log, more in wanted:
        spread.tune(o, gpu, log, o.folder / f"{part}.{name}.toml", tunings, *more)
    if not all(tunings.of(to=f"{part}.{name}.toml", complete=True) for name, *_ in wanted):
        return
    logs = [o.folder / f"{part}.{log}" for log in PICKS.values()]
    for i in range(0, len(problems), CHUNK):
        to = o.folder / f"{part}.times.{i // CHUNK}.json"
        if not to.exists() and spread.left(o) > 45:
            spread.replay(gpu, problems[i:i + CHUNK], logs, to, timeout=spread.left(o))
            say(f"GPU {gpu}: part {part}: timed anew {min(i + CHUNK, len(problems))} of {len(problems)} problems")


def results(o, rates):
    """A dictionary a problem that was timed anew: what was picked by whom, and its time in ms."""
    found = []
    for part in range(PARTS):
        picked = {who: spread.ran_most(o.folder / f"{part}.{log}") for who, log in PICKS.items() if (o.folder / f"{part}.{log}").exists()}
        timed = {}
        for file in sorted(o.folder.glob(f"{part}.times.*[0-9].json")):
            for r in json.loads(file.read_text()):
                if r["status"] == "ok" and r["time_ms"]:
                    timed[r["problem"], r["engine"]] = r["time_ms"]
        for problem in sorted({p for p, _ in timed}):
            operation, kind, flops, size = work_of(problem)
            row = {"problem": problem, "operation": operation, "type": kind, "flops": flops, "bytes": size,
                   "roofline_ms": 1000 * max(flops / rates[kind], size / rates["bytes"])}
            for who in PICKS:
                engine = picked[who].get(problem, "")
                row |= {who: engine, who + "_ms": timed.get((problem, engine), "")}
            found.append(row)
    unique = {r["problem"]: r for r in found}   # DeepBench has some lines twice
    return sorted(unique.values(), key=lambda r: (OPERATIONS.index(r["operation"]), r["type"], r["flops"]))


def ratio(rows, above, below):
    return [r[above + "_ms"] / r[below + "_ms"] for r in rows if r[above + "_ms"] and r[below + "_ms"]]


def spread_of(values):
    return f"{geomean(values):.3f} | {max(values):.2f} | {min(values):.2f}" if values else "– | – | –"


def write_table(o, rows, rates, tunings, out):
    out.write(f"Measured {spread.version_line()}; DeepBench's training convolutions (tests/gpu/data), each distinct problem once"
              f"{f', of every {o.sample}-th line' if o.sample > 1 else ''}. Peak rates measured: "
              f"fp16 {rates['half'] / 1e12:.0f} TFLOP/s, TF32 {rates['float'] / 1e12:.0f} TFLOP/s, copy {rates['bytes'] / 1e12:.2f} TB/s; "
              "caches are warm, so what fits into them can be beyond the bandwidth's bound.\n\n")
    out.write("| operation | type | problems | heuristics' first ÷ tuned, geomean | best | worst | benchmark=True's ÷ tuned, geomean | best | worst | "
              "tuned ÷ roofline, geomean | worst | best | choices changed |\n|" + " --- |" * 13 + "\n")
    for operation in OPERATIONS:
        for kind, name in TYPES.items():
            of = [r for r in rows if r["operation"] == operation and r["type"] == kind]
            roof = [r["tuned_ms"] / r["roofline_ms"] for r in of if r["tuned_ms"]]
            changed = sum(r["tuned"] != r["heuristics"] for r in of if r["tuned"])
            out.write(f"| {operation} | {name} | {len(of)} | {spread_of(ratio(of, 'heuristics', 'tuned'))} | {spread_of(ratio(of, 'benchmark', 'tuned'))} | "
                      f"{spread_of(roof)} | {changed} |\n")
    both = [r for r in rows if r["tuned_ms"] and r["tuned_again_ms"]]
    if both:
        apart = [r for r in both if r["tuned"] != r["tuned_again"]]
        far = sorted((max(f, 1 / f) for f in ratio(apart, "tuned_again", "tuned")), reverse=True)
        out.write(f"\nTuned twice: {len(both) - len(apart)} of {len(both)} choices agree ({sum(r['tuned'].split('_')[0] == r['tuned_again'].split('_')[0] for r in both)} "
                  "by engine)" + (f"; where they don't, the times differ by a factor of {geomean(far):.4f} (geomean), {far[0]:.3f} at most" if far else "") + ".\n")
    knobs = ratio([r for r in rows if r["knobs"]], "tuned", "knobs")
    if knobs:
        out.write(f"\nWith --knobs, {len(knobs)} of the problems: engines only ÷ with knobs {geomean(knobs):.4f} (geomean), {max(knobs):.3f} at best, "
                  f"{min(knobs):.3f} at worst.\n")
    out.write("\n| tuning | problems | GPU seconds | seconds a problem |\n| --- | --- | --- | --- |\n")
    for name, words in (("a", "first"), ("b", "second"), ("k", "with --knobs")):
        logs = [o.folder / f"{part}.{name}.toml" for part in range(PARTS)]
        seconds = sum(t["seconds"] for log in logs for t in tunings.of(to=log.name))
        count = sum(len(spread.ran_most(f"{log}.jsonl")) for log in logs if pathlib.Path(f"{log}.jsonl").exists())
        if count:
            out.write(f"| {words} | {count} | {seconds:.0f} | {seconds / count:.2f} |\n")


def main():
    o = spread.options(__doc__, "deepbench", every=12, sample=1, csv="")
    tunings = spread.Rows(o.folder / "tunings.jsonl")
    rates_file = o.folder / "rates.json"
    if not rates_file.exists():
        rates_file.write_text(spread.must(spread.run(spread.program("rates.py")), "measuring the peak rates")[0])
    rates = json.loads(rates_file.read_text())
    failures = spread.over_gpus(o, [[lambda gpu, p=p: do_part(o, gpu, p, tunings) for p in mine] for mine in spread.dealt(range(PARTS), o.gpus)])
    rows = results(o, rates)
    with open(o.out, "w") as out:
        write_table(o, rows, rates, tunings, out)
    undone = []
    for part in range(PARTS):
        off = o.folder / f"{part}.off.jsonl"
        problems = set(spread.problems_in(off)) if off.exists() else set()
        missing = problems - {r["problem"] for r in rows}
        if missing or not problems:
            undone.append(f"part {part}: {len(missing)} of {len(problems)} problems are not timed anew")
        lost = [r["problem"] for r in rows if r["problem"] in problems and any(r[who] and not r[who + "_ms"] for who in PICKS)]
        if lost:
            failures.append(f"part {part}: {len(lost)} problems whose pick could not be timed anew, the first: {lost[0]}")
    if rows:
        file = pathlib.Path(o.csv or pathlib.Path(o.out).with_suffix(".csv"))
        with open(file, "w", newline="") as out:
            writer = csv.DictWriter(out, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows({k: f"{v:.5g}" if isinstance(v, float) else v for k, v in r.items()} for r in rows)
        try:
            import deepbench_plot
            deepbench_plot.draw(file)
        except ImportError as e:
            failures.append(f"no plot: {e}")
    return spread.footer(o, failures, undone)


if __name__ == "__main__":
    raise SystemExit(main())
