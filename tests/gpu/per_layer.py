"""A pin file for each layer of ResNet-50, in all three operations: every rule matched, the loss that of the unpinned run.

    python3 per_layer.py [--keep pins.toml] [--out per_layer.md]

One run with CONVPIN_PROFILE tells what each convolution can run. The file takes for each one candidate, varied on purpose:
the algorithm and engine used least so far, of those that are at most five times slower than the best and convert no
inputs. It fails where a rule is not set, a convolution has no rule, the file holds fewer than six algorithms or ten
engines, or a loss is further from the unpinned run's than TOLERANCE.
"""
import argparse
import collections
import json
import pathlib
import tempfile
import time

import runs
from cudnn_direct import OPERATIONS
from matrix_report import title

STEPS, BATCH, TOLERANCE = 6, 16, 0.1
SLOWEST, LARGEST = 5, 1 << 30   # times the best; bytes of workspace
MOST_PROFILED = 64              # convpin profiles so many problems in a process; the others get algorithm 1


def worker(steps):
    import torch
    import torchvision
    torch.manual_seed(0)
    model = torchvision.models.resnet50().cuda()
    images, labels = torch.randn(BATCH, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (BATCH,), device="cuda")
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.01), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(json.dumps(losses))


def train(steps, config=None, log=None):
    env = {"CONVPIN_CONFIG": str(config)} if config else {}
    if log:
        env["CONVPIN_LOG"] = str(log)
    status, out, err = runs.python("per_layer.py", "--worker", steps, env=env, preload=config is not None, timeout=300)
    if status:
        raise SystemExit(f"the training run failed: {err[-3000:]}")
    return json.loads(out.splitlines()[-1]), err


def choose(records):
    """{problem: candidate}, varied; {} for a problem without a candidate that will do."""
    found = collections.defaultdict(list)
    for r in records:
        if r["type"] == "problem":
            found[r["problem"]] += []
        if r["type"] == "candidate" and r["status"] == "ok" and r["time_us"] and r["engine"]:
            if "DOWN_CONVERT_INPUTS" not in (r["numerical_notes"] or []) and (r["workspace_bytes"] or 0) <= LARGEST:
                found[r["problem"]].append(r)
    used, chosen = collections.Counter(), {}
    for problem in sorted(found, key=lambda p: (list(OPERATIONS).index(p.split()[0]), p)):
        candidates = found[problem]
        best = min((c["time_us"] for c in candidates), default=0)
        candidates = [c for c in candidates if c["time_us"] <= SLOWEST * best]
        kind = lambda c: (problem.split()[0], c["algorithm"])
        engine = lambda c: (problem.split()[0], c["engine"].split("_")[0])
        pick = min(candidates, key=lambda c: (used[kind(c)], used[engine(c)], c["time_us"]), default={})
        if pick:
            used.update([kind(pick), engine(pick)])
        chosen[problem] = pick
    return chosen


def pin_file(chosen):
    lines = ["version = 1", "[defaults]", 'on_unsupported = "fallback"', 'on_miss = "leave"']
    for number, (problem, pick) in enumerate(chosen.items(), 1):
        algo = f'"{pick["engine"]}"' if pick else "1"
        lines += ["", "[[rule]]", f'name = "layer{number:02}"', f'operation = "{problem.split()[0]}"', f'problem = "{problem}"', f"algo = {algo}"]
    return "\n".join(lines) + "\n"


def check(chosen, records, failures):
    """Rows of the table: rule, problem, algorithm, what was asked, what ran, the profile's times."""
    choices = {r["problem"]: r for r in records if r["type"] == "choice"}
    calls = {(r["problem"], r["ran"]): r["calls"] for r in records if r["type"] == "count"}
    rows = []
    for number, (problem, pick) in enumerate(chosen.items(), 1):
        name, choice = f"layer{number:02}", choices.get(problem)
        if choice is None:
            failures.append(f"{name}: {problem} did not run")
            continue
        if choice["rule"] != name or choice["choice"] != "set":
            failures.append(f"{name}: {problem}: rule {choice['rule']}, {choice['choice']}: {choice['reason']}")
        if pick and runs.parse_tag(choice["ran"])[0] != runs.parse_tag(pick["engine"])[0]:
            failures.append(f"{name}: {problem}: {pick['engine']} asked for, {choice['ran']} ran")
        operation = problem.split()[0]
        algorithm = "" if choice["algorithm"] is None or choice["algorithm"] < 0 else title(operation, choice["algorithm"])
        rows.append([name, problem, algorithm, choice["ran"], str(calls.get((problem, choice["ran"]), 0)), f"{pick['time_us'] / 1e3:.3f}" if pick else ""])
    for problem in choices.keys() - chosen.keys():
        failures.append(f"no rule for {problem}")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--keep", help="copy the pin file there")
    parser.add_argument("--out", default="per_layer.md")
    options = parser.parse_args()
    if options.worker:
        return worker(options.worker)
    start, failures = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "profile.toml").write_text('version = 1\n[profile]\nlevel = "algorithms"\nrepeats = 3\nbudget = "90 s"\n')
        train(1, folder / "profile.toml", folder / "profile.jsonl")
        chosen = choose(runs.read_log(folder / "profile.jsonl"))
        (folder / "pins.toml").write_text(pin_file(chosen))
        if options.keep:
            pathlib.Path(options.keep).write_text(pin_file(chosen))
        bare, _ = train(STEPS)
        again, _ = train(STEPS)
        pinned, err = train(STEPS, folder / "pins.toml", folder / "pinned.jsonl")
        rows = check(chosen, runs.read_log(folder / "pinned.jsonl"), failures)
    unprofiled = sum(not pick for pick in chosen.values())
    if len(chosen) - unprofiled < min(len(chosen), MOST_PROFILED):
        failures.append(f"{unprofiled} of {len(chosen)} problems have no candidate")
    if "matched nothing" in err:
        failures.append("convpin says: " + next(line for line in err.splitlines() if "matched nothing" in line))
    algorithms = {(row[1].split()[0], row[2]) for row in rows if row[2]}
    engines = {(row[1].split()[0], row[3].split("_")[0]) for row in rows}
    for least, what, found in ((6, "algorithms", algorithms), (10, "engines", engines)):
        if len(found) < least:
            failures.append(f"only {len(found)} {what}: {sorted(found)}")
    difference, noise = (max(abs(a - b) for a, b in zip(bare, other)) for other in (pinned, again))
    if not difference <= TOLERANCE:
        failures.append(f"the loss is off by {difference:.3f}")
    lines = [f"Measured {runs.versions()}; `tests/gpu/per_layer.py`: torchvision's ResNet-50, fp32 (TF32) NCHW, batch {BATCH}, {STEPS} steps", "",
             f"{len(rows)} rules for {len(chosen)} convolutions, {len(algorithms)} algorithms, {len(engines)} engines (each operation's counted apart). "
             f"Losses: unpinned {', '.join(f'{v:.3f}' for v in bare)}; pinned {', '.join(f'{v:.3f}' for v in pinned)}; largest difference "
             f"{difference:.4f} (two unpinned runs: {noise:.4f}; allowed: {TOLERANCE}).", "", f"<details><summary>the {len(rows)} rules</summary>", "",
             "| rule | problem | algorithm | engine that ran | calls | ms in the profile |", "|" + " --- |" * 6]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    lines += ["", "</details>", "", f"{len(failures)} failures; {time.monotonic() - start:.0f} s", *(f"- FAILED {each}" for each in failures)]
    text = "\n".join(lines) + "\n"
    pathlib.Path(options.out).write_text(text)
    print(text)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
