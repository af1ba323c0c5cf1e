"""`convpin list` without a GPU, by cuDNN's description of one, against what the GPU itself says, for 100 problems.

    python3 list_agreement.py --out list_agreement.md
    python3 list_agreement.py --tuned a.toml.jsonl b.toml.jsonl --cudnn DIR      (needs no GPU: the logs have its answers)

The same 100 every time: of DeepBench's and ResNet-50's convolutions, and of rarer kinds. For the list by description the GPU is
hidden. With --tuned the problems are those of logs of `convpin tune`, which builds every engine's plan on the GPU and runs it.
It fails where the two contradict each other on an engine: `unknown` without the GPU is no contradiction.
"""
import collections
import csv
import json
import pathlib

import runs
import spread
from spread import say

OPERATIONS = ("forward", "backward_data", "backward_filter")
DESCRIPTION, CHUNK = "h200", 20
# x, w, pad, stride of ResNet-50's kinds of layers.
RESNET = [("64,3,224,224", "64,3,7,7", 3, 2), ("64,64,56,56", "64,64,1,1", 0, 1), ("64,64,56,56", "64,64,3,3", 1, 1), ("64,256,56,56", "128,256,1,1", 0, 1),
          ("64,128,56,56", "128,128,3,3", 1, 2), ("64,1024,14,14", "2048,1024,1,1", 0, 2), ("64,512,7,7", "512,512,3,3", 1, 1)]
RARE = [  # what the others lack: depthwise, grouped, dilated, 3-D, 1-D, other types, layouts and paddings
    "x=[32,96,56,56] w=[96,1,3,3] half nhwc pad=1,1 groups=96", "x=[32,96,56,56] w=[96,1,5,5] float nchw pad=2,2 groups=96",
    "x=[32,128,28,28] w=[128,4,3,3] half nhwc pad=1,1 groups=32", "x=[16,64,56,56] w=[64,64,3,3] half nhwc pad=2,2 dilation=2,2",
    "x=[16,64,56,56] w=[64,64,3,3] float nchw pad=4,4 dilation=4,4", "x=[4,16,16,56,56] w=[32,16,3,3,3] half nhwc pad=1,1,1",
    "x=[4,16,16,56,56] w=[32,16,3,3,3] float nchw pad=1,1,1 stride=2,2,2", "x=[16,64,56,56] w=[64,64,3,3] bfloat16 nhwc pad=1,1",
    "x=[8,32,28,28] w=[32,32,3,3] double nchw pad=1,1", "x=[16,64,56,56] w=[64,64,3,3] float nhwc pad=1,1", "x=[16,64,56,56] w=[64,64,3,3] half nchw pad=1,1",
    "x=[16,48,27,27] w=[128,48,5,5] float nchw pad=2,2", "x=[32,256,1,400] w=[256,256,1,9] half nhwc pad=0,4", "x=[1,512,7,7] w=[512,512,1,1] half nhwc",
]


def problems():
    """100 texts; the operations in turn."""
    lines = list(csv.DictReader((pathlib.Path(__file__).parent / "data/deepbench_conv_training.csv").read_text().splitlines()))
    kinds = ("half nhwc", "float nchw")
    found = [f"{o} {text}" for text in RARE for o in OPERATIONS]
    found += [f"{o} x=[{x}] w=[{w}] {kinds[i % 2]} pad={pad},{pad} stride={stride},{stride}"
              for i, (x, w, pad, stride) in enumerate(RESNET) for o in OPERATIONS]
    wanted = 100 - len(found)
    for i in range(wanted):
        r = lines[i * len(lines) // wanted]
        found.append(f"{OPERATIONS[i % 3]} x=[{r['N']},{r['C']},{r['H']},{r['W']}] w=[{r['K']},{r['C']},{r['R']},{r['S']}] {kinds[i // 3 % 2]} "
                     f"pad={r['pad_h']},{r['pad_w']} stride={r['stride_h']},{r['stride_w']}")
    return found


def listed(o, name, texts, *more, **where):
    """{problem: {engine: row}} by `convpin list --json`, kept in files."""
    found = {}
    for i in range(0, len(texts), CHUNK):
        file = o.folder / f"{name}.{i // CHUNK}.json"
        if not file.exists():
            if spread.left(o) < 30:
                break
            status, out, err, seconds = spread.convpin("list", *texts[i:i + CHUNK], "--json", "--cudnn", o.cudnn or spread.cudnn_folder(), *more,
                                                       timeout=spread.left(o), **where)
            if status not in (0, 1):   # 1: one of them is supported by nothing
                raise RuntimeError(f"convpin list: exit {status}: {err[-1500:]}")
            file.write_text(out)
            say(f"{name}: {min(i + CHUNK, len(texts))} of {len(texts)} problems, {seconds:.0f} s")
        for entry in json.loads(file.read_text()):
            found[entry["problem"]] = {r["engine"].split("_")[0]: r for r in entry["engines"]} if not entry["reason"] else {}
    return found


def tried(logs):
    """{problem: {engine: row}}, as listed() has it, of what tunings built and ran."""
    found = collections.defaultdict(dict)
    for log in logs:
        for r in runs.read_log(log):
            if r["type"] != "candidate":
                continue
            engine, says = r["engine"].split("_")[0], "no" if r["status"] == "unsupported" else "yes"
            row = found[r["problem"]].setdefault(engine, {"supported": says, "reason": r["reason"], "heuristics_rank": r.get("heuristics_rank")})
            if says == "yes":   # one of its configurations is enough
                row["supported"] = says
            if r.get("heuristics_rank") is not None and (row["heuristics_rank"] is None or r["heuristics_rank"] < row["heuristics_rank"]):
                row["heuristics_rank"] = r["heuristics_rank"]
    return dict(found)


def main():
    o = spread.options(__doc__, "list_agreement", tuned=[], cudnn="")
    gpu = tried(o.tuned)
    texts = list(gpu) or problems()
    assert o.tuned or len(texts) == 100
    gpu = gpu or listed(o, "gpu", texts)
    described = listed(o, "description", texts, "--device", DESCRIPTION, env={"CUDA_VISIBLE_DEVICES": "-1"})
    both = [p for p in gpu if p in described]
    counts, unknown, contradictions, failures = collections.defaultdict(collections.Counter), collections.Counter(), [], []
    for problem in both:
        operation = problem.split()[0]
        for engine in sorted(set(gpu[problem]) | set(described[problem])):
            here, there = (side[problem].get(engine, {"supported": "no", "reason": "not listed"}) for side in (gpu, described))
            word = "same" if here["supported"] == there["supported"] else "unknown" if there["supported"] == "unknown" else "contradiction"
            counts[operation][word, here["supported"]] += 1
            if word == "unknown":
                unknown[operation, engine, here["supported"]] += 1
            if word == "contradiction":
                contradictions.append((problem, engine, here, there))
        firsts = [min((r["heuristics_rank"], engine) for engine, r in side[problem].items() if r.get("heuristics_rank") is not None)
                  if any(r.get("heuristics_rank") is not None for r in side[problem].values()) else None for side in (gpu, described)]
        if firsts[0] and described[problem].get(firsts[0][1], {}).get("supported") != "unknown":
            counts[operation]["judged"] += 1
            counts[operation]["first"] += firsts[0] == firsts[1]
    with open(o.out, "w") as out:
        where = f"what {len(o.tuned)} tunings built and ran on the GPU that they name" if o.tuned else f"Measured {spread.version_line()}; `convpin list` on the GPU"
        out.write(f"{where}, and `convpin list` with `--device {DESCRIPTION}` and no GPU to be seen; {len(both)} problems.\n\n")
        out.write("| operation | problems | engines said to be supported by both | refused by both | unknown without the GPU: supported there | refused there | "
                  "contradictions | heuristics' first the same, where it can be judged |\n|" + " --- |" * 8 + "\n")
        for operation in OPERATIONS:
            c, number = counts[operation], sum(p.startswith(operation + " ") for p in both)
            out.write(f"| {operation} | {number} | {c['same', 'yes']} | {c['same', 'no']} | {c['unknown', 'yes']} | {c['unknown', 'no']} | "
                      f"{c['contradiction', 'yes'] + c['contradiction', 'no']} | {c['first']} of {c['judged']} |\n")
        for operation in OPERATIONS:
            of = collections.defaultdict(dict)
            for (op, engine, says), n in unknown.items():
                if op == operation:
                    of[engine][says] = n
            out.write(f"\nUnknown without the GPU, {operation}: " + (", ".join(f"{e} ({of[e].get('yes', 0)} of {sum(of[e].values())} times supported)" for e in
                                                                     sorted(of, key=lambda e: int(e[3:]))) or "none") + "\n")
        for problem, engine, here, there in contradictions:
            failures.append(f"{problem}: {engine}: the GPU says {here['supported']} ({here.get('reason')}), the description {there['supported']} ({there.get('reason')})")
    undone = [f"{len(texts) - len(both)} problems"] if len(both) < len(texts) else []
    return spread.footer(o, failures, undone)


if __name__ == "__main__":
    raise SystemExit(main())
