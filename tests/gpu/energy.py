"""Energy: of each forward algorithm for five layers, and of ResNet-50's training step under each policy.

    python3 energy.py --gpus 4 --folder build/gpu/energy --out energy.md     (again, until nothing is "not done yet")

Layers: each algorithm by the fastest engine that stands for it and converts nothing down, kept running by `convpin replay --energy`,
in --runs fresh processes on the same GPU, --energy-repeats times in each; the spread is over the processes. Steps (AMP, BATCH
images): NVML's total-energy counter from one of its moves to another over --step-seconds of steps, a fresh process each, the
policies alternating.
least_energy is tuned for the problems that take most time first, as far as the budget goes; the others have the fastest then.
"""
import json
import statistics

import runs
import spread
from spread import say

LAYERS = {
    "3×3, middle": "x=[64,128,28,28] w=[128,128,3,3] {} pad=1,1", "1×1": "x=[64,256,56,56] w=[64,256,1,1] {}",
    "7×7, stem": "x=[64,3,224,224] w=[64,3,7,7] {} pad=3,3 stride=2,2", "3×3, early": "x=[64,64,56,56] w=[64,64,3,3] {} pad=1,1",
    "5×5": "x=[64,48,27,27] w=[128,48,5,5] {} pad=2,2",
}
KINDS = {"fp32": "float nchw", "fp16": "half nhwc"}
NAMES = ["IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "DIRECT", "FFT", "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED"]
POLICIES = ["benchmark off", "benchmark on", "frozen", "fastest", "least_memory", "least_energy"]
BATCH = 256   # with 64 the host decides how long a step takes, and with it how much the GPU takes while it waits
PARTS = 4   # of the log that is tuned, whatever the number of GPUs


def replayed(o, gpu, file, problem, candidates, *more):
    """Rows of `convpin replay` in a fresh process, kept in the file."""
    if not file.exists():
        named = [word for c in candidates for word in ("--candidate", c)]
        status, out, err, seconds = spread.convpin("replay", problem, *named, "--cudnn", spread.cudnn_folder(), "--json", *more, gpu=gpu, timeout=spread.left(o))
        if status not in (0, 1) or not out.strip():
            raise RuntimeError(f"convpin replay {problem}: exit {status}: {err[-1500:]}")
        idle = [line for line in err.splitlines() if "idle" in line]
        file.write_text(json.dumps({"rows": json.loads(out), "idle": idle[0] if idle else ""}))
        say(f"GPU {gpu}: {file.stem} in {seconds:.0f} s {idle[0] if idle else ''}")
    return json.loads(file.read_text())


def do_layer(o, gpu, kind, layer):
    problem, stem = f"forward {LAYERS[layer].format(KINDS[kind])}", f"{kind}.{list(LAYERS).index(layer)}"
    if spread.left(o) < 30:
        return
    best = {}
    for r in replayed(o, gpu, o.folder / f"{stem}.times.json", problem, range(8))["rows"]:
        fair = not {"down_convert_inputs", "runtime_compilation"} & set(r["notes"] or [])
        if r["status"] == "ok" and r["time_ms"] and fair and r["time_ms"] < best.get(r["algo"], {"time_ms": 1e9})["time_ms"]:
            best[r["algo"]] = r
    engines = [r["engine"] for r in best.values()]
    for run in range(o.runs):
        if spread.left(o) > len(engines) * (o.energy_repeats * (o.energy_seconds + 0.5) + 1) + 10:
            replayed(o, gpu, o.folder / f"{stem}.energy.{run}.json", problem, engines, "--energy", "--energy-seconds", o.energy_seconds,
                     "--energy-repeats", o.energy_repeats)


def layer_rows(o, kind, layer):
    """The table's lines of one layer; and how many runs there are."""
    stem, lines = f"{kind}.{list(LAYERS).index(layer)}", []
    times = o.folder / f"{stem}.times.json"
    done = [json.loads(f.read_text()) for f in sorted(o.folder.glob(f"{stem}.energy.*.json"))]
    if not times.exists():
        return [], 0
    refused = {r["algo"]: r["reason"] for r in json.loads(times.read_text())["rows"] if r["status"] != "ok"}
    refused |= {r["algo"]: "only by engines that convert down or are compiled at run time" for r in json.loads(times.read_text())["rows"] if r["status"] == "ok"}
    for algorithm, name in enumerate(NAMES):
        of = [r for run in done for r in run["rows"] if r["algo"] == algorithm and r.get("energy_mj")]
        head = f"| {layer} | {kind} | {algorithm} {name} | "
        if of:
            energies = [r["energy_mj"] for r in of]
            within = [r["energy_sd_mj"] for r in of if r["energy_sd_mj"]]
            spread_mj, within_mj = f"{statistics.stdev(energies):.3f}" if len(of) > 1 else "–", f"{statistics.mean(within):.3f}" if within else "–"
            lines.append(head + f"{of[0]['engine']} | {statistics.mean(r['time_ms'] for r in of):.4f} | {statistics.mean(energies):.3f} | {spread_mj} | "
                                f"{within_mj} | {statistics.mean(r['power_w'] for r in of):.0f} | {len(of)} |\n")
        elif algorithm in refused or done:
            lines.append(head + f"{refused.get(algorithm) or 'not supported'} | | | | | | |\n")
    return lines, len(done)


def pins(o, policy):
    if policy == "frozen":
        return [o.folder / "frozen.toml"]
    files = [o.folder / f"{p}.{part}.toml" for p in ([policy, "fastest"] if policy == "least_energy" else [policy]) for part in range(PARTS)]
    return [f for f in files if f.exists()] if policy in POLICIES[3:] else []


def record(o):
    """The log, frozen, and its parts."""
    log = o.folder / "record.jsonl"
    if not log.exists():
        unfinished = log.with_suffix(".part")
        unfinished.unlink(missing_ok=True)
        spread.must(spread.run(spread.program("training.py", "resnet50", "amp", "--batch", BATCH, "--steps", 8, record=unfinished)), "recording")
        unfinished.rename(log)
    spread.must(spread.convpin("freeze", log, "-o", o.folder / "frozen.toml"), "freezing")
    for part, problems in enumerate(spread.dealt(spread.problems_in(log), PARTS)):
        spread.part_of(log, set(problems), o.folder / f"record.{part}.jsonl")


def energy_left(o, part, tunings):
    """Seconds in which least_energy is still to be tuned; nothing where it is complete."""
    name = f"least_energy.{part}.toml"
    seconds = o.tune_budget - sum(t["seconds"] for t in tunings.of(to=name))
    return 0 if seconds < 10 or tunings.of(to=name, complete=True) else seconds


def tune_part(o, gpu, part, tunings):
    for policy in ("fastest", "least_memory"):
        spread.tune(o, gpu, o.folder / f"record.{part}.jsonl", o.folder / f"{policy}.{part}.toml", tunings, "--policy", policy)
    fastest = o.folder / f"fastest.{part}.toml.jsonl"   # with times: what takes most is first
    if tunings.of(to=f"fastest.{part}.toml", complete=True) and energy_left(o, part, tunings):
        spread.tune(o, gpu, fastest, o.folder / f"least_energy.{part}.toml", tunings, "--policy", "least_energy", "--energy-seconds", o.energy_seconds,
                    budget=energy_left(o, part, tunings))


def step(o, gpu, turn, rows):
    for policy in POLICIES[turn % 6:] + POLICIES[:turn % 6]:
        if rows.of(policy=policy, turn=turn) or spread.left(o) < o.step_seconds + 45:
            continue
        argv = spread.program("training.py", "resnet50", "amp", "--batch", BATCH, "--steps", 10, "--joules", o.step_seconds,
                              *(["--benchmark"] if policy == "benchmark on" else []), config=pins(o, policy))
        out, _, seconds = spread.must(spread.run(argv, gpu=gpu), f"a step's energy, {policy}")
        r = json.loads(out.splitlines()[-1])
        rows.add(policy=policy, turn=turn, **r)
        say(f"GPU {gpu}: {policy}: {r['joules_per_step']:.3f} J a step, {r['energy_step_ms']:.2f} ms, {r['watts']:.0f} W, idle {r['idle_w']:.0f} W")


def write_steps(o, rows, out):
    out.write(f"\n| ResNet-50, a training step (AMP, batch {BATCH}) | J | ratio to benchmark off | ms | W | idle W | device peak GiB | runs |\n|" + " --- |" * 8 + "\n")
    off = {r["turn"]: r["joules_per_step"] for r in rows.of(policy="benchmark off")}
    for policy in POLICIES:
        of = rows.of(policy=policy)
        if of:
            cells = [f"{m:.3f} ± {h:.3f}" for m, h in (runs.interval([r[key] for r in of]) for key in ("joules_per_step", "energy_step_ms"))]
            ratios = [r["joules_per_step"] / off[r["turn"]] for r in of if r["turn"] in off]
            ratio = "{:.4f} ± {:.4f}".format(*runs.interval(ratios)) if ratios and policy != "benchmark off" else ""
            out.write(f"| {policy} | {cells[0]} | {ratio} | {cells[1]} | {statistics.mean(r['watts'] for r in of):.0f} | "
                      f"{statistics.mean(r['idle_w'] for r in of):.0f} | {statistics.mean(r['device_gib'] for r in of):.2f} | {len(of)} |\n")
    tuned = [len(spread.ran_most(f)) for f in o.folder.glob("least_energy.*.toml.jsonl")]
    out.write(f"\nleast_energy: tuned for {sum(tuned)} problems, those that take most time; the others run the fastest. 95 % bounds over the runs, "
              "ratios within a round, which is on one GPU.\n")


def main():
    o = spread.options(__doc__, "energy", what=["layers", "steps"], kinds=["fp32", "fp16"], runs=3, rounds=4, energy_seconds=5.0, energy_repeats=1, layers=list(LAYERS), step_seconds=10.0,
                       tune_budget=300.0)
    rows, tunings, failures, undone = spread.Rows(o.folder / "steps.jsonl"), spread.Rows(o.folder / "tunings.jsonl"), [], []
    layers = [(kind, layer) for kind in o.kinds for layer in LAYERS if layer in o.layers]
    if "layers" in o.what:
        failures += spread.over_gpus(o, [[lambda gpu, w=w: do_layer(o, gpu, *w) for w in mine] for mine in spread.dealt(layers, o.gpus)])
    if "steps" in o.what and spread.left(o) > 30:
        record(o)
        failures += spread.over_gpus(o, [[lambda gpu, p=p: tune_part(o, gpu, p, tunings) for p in mine] for mine in spread.dealt(range(PARTS), o.gpus)])
        # Else the pins would change from one round to the next.
        if all(tunings.of(to=f"{p}.{part}.toml", complete=True) and not energy_left(o, part, tunings)
               for p in ("fastest", "least_memory") for part in range(PARTS)):
            failures += spread.over_gpus(o, [[lambda gpu, t=t: step(o, gpu, t, rows) for t in mine] for mine in spread.dealt(range(o.rounds), o.gpus)])
    with open(o.out, "w") as out:
        out.write(f"Measured {spread.version_line()}; energy by NVML's counter, loops of {o.energy_seconds:g} s.\n\n")
        out.write("| layer | | algorithm | engine | ms | mJ a convolution | sd over processes | sd within one | W | processes |\n|" + " --- |" * 10 + "\n")
        for kind, layer in layers:
            lines, done = layer_rows(o, kind, layer)
            out.writelines(lines)
            if done < o.runs:
                undone.append(f"{layer}, {kind}: {done} of {o.runs} processes")
        idle = sorted({json.loads(f.read_text())["idle"] for f in o.folder.glob("*.energy.*.json")} - {""})
        out.write("\n" + "; ".join(idle[:8]) + "\n")
        write_steps(o, rows, out)
        undone += [f"step, {p}: {len(rows.of(policy=p))} of {o.rounds} rounds" for p in POLICIES if len(rows.of(policy=p)) < o.rounds]
        out.write("\n")
    return spread.footer(o, failures, undone)


if __name__ == "__main__":
    raise SystemExit(main())
