"""The plot of deepbench.py's CSV file: python3 deepbench_plot.py results/deepbench.csv writes results/deepbench.png and .svg."""
import csv
import pathlib
import re
import sys

TITLES = {"forward": "forward", "backward_data": "backward data", "backward_filter": "backward filter"}
KINDS = {"half": ("fp16 NHWC", "#1f6feb", "o"), "float": ("TF32 NCHW", "#d9730d", "s")}


def draw(file):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "convpin", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    rows = list(csv.DictReader(open(file)))
    figure, axes = plt.subplots(2, 3, figsize=(11, 6.6), sharey="row", layout="constrained", facecolor="white")
    for column, (operation, title) in enumerate(TITLES.items()):
        above, below = axes[:, column]
        for kind, (name, colour, marker) in KINDS.items():
            of = [r for r in rows if r["operation"] == operation and r["type"] == kind and r["tuned_ms"]]
            above.plot([float(r["roofline_ms"]) for r in of], [float(r["tuned_ms"]) for r in of], marker, color=colour, markersize=3.5,
                       alpha=0.6, markeredgewidth=0, label=name)
            for who, style in (("heuristics", "-"), ("benchmark", ":")):
                gains = sorted((float(r[who + "_ms"]) / float(r["tuned_ms"]) for r in of if r[who + "_ms"]), reverse=True)
                below.plot(range(1, len(gains) + 1), gains, style, color=colour, linewidth=1.4,
                           label=f"{name}, {'the heuristics’ first' if who == 'heuristics' else 'benchmark=True’s'}")
        above.set(xscale="log", yscale="log", title=title, xlabel="roofline, ms")
        low, high = above.get_xlim()
        above.plot([low, high], [low, high], "-", color="#666666", linewidth=0.9, label="at the roofline")
        above.plot([low, high], [10 * low, 10 * high], "--", color="#aaaaaa", linewidth=0.8, label="ten times the roofline")
        above.set_xlim(low, high)
        below.set(yscale="log", xlabel="problems, by what tuning gains")
        below.axhline(1, color="#666666", linewidth=0.9)
        below.yaxis.set_major_formatter(lambda value, _: f"{value:g}×")
        below.yaxis.set_minor_formatter(lambda value, _: f"{value:g}×" if value < 3 else "")
        for axis in (above, below):
            axis.grid(color="#e5e5e5", linewidth=0.6)
            axis.set_axisbelow(True)
    axes[0, 0].set_ylabel("tuned, ms")
    axes[1, 0].set_ylabel("time of the pick ÷ tuned")
    axes[0, 0].legend(frameon=False)
    axes[1, 0].legend(frameon=False)
    figure.savefig(pathlib.Path(file).with_suffix(".png"), dpi=100)
    picture = pathlib.Path(file).with_suffix(".svg")
    figure.savefig(picture, metadata={"Date": None})
    text = re.sub(r"(\d+\.\d\d)\d+", r"\1", picture.read_text())   # a hundredth of a point is exact enough
    for number, style in enumerate(sorted(set(re.findall(r'<use[^>]* style="([^"]*)"', text)))):   # each marker has its own: said once
        text = text.replace(f' style="{style}"', f' class="s{number}"').replace("</style>", f".s{number}{{{style}}}</style>", 1)
    picture.write_text(text)
    plt.close(figure)


if __name__ == "__main__":
    draw(pathlib.Path(sys.argv[1]))
