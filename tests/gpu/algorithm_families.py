"""Which engines belong to each legacy algorithm, read off what algorithm_table.py measured.

    python3 algorithm_families.py table.jsonl... [--problems]

For each operation:
  1. each legacy algorithm: in how many cases (problem and math type) it ran, which engines launched the
     same kernels in the same problem ("38: 12 of 18" = in 12 of the 18 cases in which both ran), and
     which kernels it launched where no engine did the same;
  2. each engine: where it ran, its notes, its largest error for each data type, its kernels;
  3. the rows of shim/model/algorithm.cpp that follow, to be compared by a person: an engine stands with
     the algorithm that it agrees with most often.
Kernels that only convert layouts, fill or precompute indices don't count (HELPERS). --problems names the
cases of each line.
"""
import argparse
import collections
import json
import re
import sys

from cudnn_direct.legacy import ALGORITHMS

HELPERS = re.compile(r"Mem(set|cpy)|nchwToNhwc|nhwcToNchw|nhwcAddPadding|tensorTransform|convertTensor|scalePackedTensor|"
                     r"op_tensor|compute\w*Offsets|precompute\w*indices|kern_precompute|foldedNhwc|dim3_fold|"
                     r"generateBatchPointers|vectorized_elementwise|im2col4d|set_zero|cask\w*init", re.I)
# What distinguishes kernels of one kind: their tiles, pipeline stages, and the cases that they are compiled for.
VARIANT = re.compile(r"tilesize\w+?_|stage\d+_?|warp(group)?size\w+?_|_?execute_(kernel|segment)\w*|_\d+x\d+_\d+x\d+|"
                     r"_align\w*?\d+|_g\d+_?|__5x_cudnn")


def short(name):
    """A kernel's name without return type, arguments and common prefixes."""
    name = name.removeprefix("void ").replace("(anonymous namespace)::", "").replace("cudnn::", "")
    depth = 0
    for position, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0:  # not the cast of a template argument
            return name[:position]
    return name


def essence(kernels):
    """The kernels that make the difference, in no order; all of them if none is left."""
    names = {short(each) for each in kernels}
    return frozenset({each for each in names if not HELPERS.search(each)} or names)


def kind(kernels):
    """The kernels' names without what varies from case to case, and without template arguments."""
    names = {re.sub(r"^cutlass[\w:]*Kernel2?<(\w+).*", r"\1", each) for each in kernels}  # CUTLASS: the argument is the name
    return " + ".join(sorted({VARIANT.sub("", each.split("<")[0]) for each in names}))


class Operation:
    """The lines of one operation, by problem: what each legacy call and each engine launched."""

    def __init__(self):
        self.legacy = collections.defaultdict(dict)   # algorithm -> {(problem, math): kernels}
        self.refused = collections.Counter()          # algorithm -> cases in which it did not run
        self.graph = collections.defaultdict(lambda: collections.defaultdict(set))  # engine -> {problem: kernels, …}
        self.planned = collections.defaultdict(set)   # engine -> problems for which it has a plan
        self.notes = collections.defaultdict(lambda: collections.defaultdict(set))  # engine -> {notes: dtypes}
        self.errors = collections.defaultdict(lambda: collections.defaultdict(float))  # engine -> {dtype: error}

    def add(self, line):
        source, _, rest = line["candidate"].partition(":")
        ran, kernels = line["status"] == 0, line.get("kernels")
        if source == "legacy":
            algorithm, math = rest.split(":")
            if ran and kernels:
                self.legacy[int(algorithm)][line["problem"], math] = essence(kernels)
            else:
                self.refused[int(algorithm)] += 1
        elif ran:
            engine, dtype = line["engine"], line["shape"]["dtype"]
            self.planned[engine].add(line["problem"])
            self.notes[engine][" ".join(line.get("numerical", []) + line.get("behaviour", []))].add(dtype)
            if "error" in line:
                self.errors[engine][dtype] = max(self.errors[engine][dtype], float(line["error"]), key=badness)
            if kernels:
                self.graph[engine][line["problem"]].add(essence(kernels))

    def note_text(self, engine):
        """The engine's notes; where they depend on the data type, with it."""
        found = self.notes[engine]
        texts = [(notes or "no notes") + (f" ({', '.join(sorted(dtypes))})" if len(found) > 1 else "")
                 for notes, dtypes in sorted(found.items())]
        return "; ".join(texts)

    def kinds(self, engine):
        return sorted({kind(each) for sets in self.graph[engine].values() for each in sets})

    def agreement(self, algorithm):
        """{engine: (cases with the same kernels, cases in which both ran)}, engines that agree at least once."""
        found = {}
        for engine, launched in self.graph.items():
            both = [case for case in self.legacy[algorithm] if case[0] in launched]
            same = [case for case in both if self.legacy[algorithm][case] in launched[case[0]]]
            if same:
                found[engine] = same, both
        return found


def badness(error):
    """An order of errors in which NaN is the worst."""
    return float("inf") if error != error else error


def cases(found, wanted):
    return f"      {', '.join('/'.join(case) for case in sorted(found))}\n" if wanted else ""


def print_algorithms(name, operation, wanted):
    for number, algorithm in enumerate(ALGORITHMS[name]):
        ran = operation.legacy[number]
        print(f"  {number} {algorithm}: ran in {len(ran)} cases, refused in {operation.refused[number]}")
        explained = set()
        for engine, (same, both) in sorted(operation.agreement(number).items(), key=lambda item: -len(item[1][0])):
            explained.update(same)
            print(f"    engine {engine}: {len(same)} of {len(both)}")
            print(cases(same, wanted), end="")
        left = collections.defaultdict(list)
        for case in ran.keys() - explained:
            left[kind(ran[case])].append(case)
        for kernels, where in sorted(left.items(), key=lambda item: -len(item[1])):
            alike = sorted(engine for engine in operation.planned if kernels in operation.kinds(engine))
            print(f"    no engine in {len(where)} cases: {kernels[:140]}"
                  + (f" (elsewhere of that kind: {', '.join(map(str, alike))})" if alike else ""))
            print(cases(where, wanted), end="")


def print_engines(operation):
    for engine in sorted(operation.planned):
        groups = sorted({"-".join(problem.split("-")[1:3]) for problem in operation.planned[engine]})
        errors = " ".join(f"{dtype} {error:.2g}" for dtype, error in operation.errors[engine].items())
        print(f"  engine {engine}: {len(operation.planned[engine])} problems ({', '.join(groups)})")
        print(f"      {operation.note_text(engine)}; error: {errors or 'not measured'}")
        for each in operation.kinds(engine):
            print(f"      {each[:160]}")


def print_rows(name, operation):
    """Each engine with the algorithm that it agrees with most often."""
    best, rows = {}, collections.defaultdict(list)
    for number in range(len(ALGORITHMS[name])):
        for engine, (same, both) in operation.agreement(number).items():
            best.setdefault(engine, []).append((len(same), number))
    for engine, found in sorted(best.items()):
        rows[max(found)[1]].append(engine)
    for number, algorithm in enumerate(ALGORITHMS[name]):
        print(f"    {{{number}, \"{algorithm}\", {{{', '.join(map(str, rows[number]))}}}}},")
    for engine, found in sorted(best.items()):
        if len(found) > 1:
            print(f"    also: engine {engine} agrees with "
                  + ", ".join(f"{number} ({count})" for count, number in sorted(found, reverse=True)))
    for engine in sorted(operation.planned.keys() - best.keys()):
        alike = [number for number, ran in operation.legacy.items()
                 if {kind(each) for each in ran.values()} & set(operation.kinds(engine))]
        print(f"    no algorithm: engine {engine} ({operation.note_text(engine)})"
              + (f", its kind of kernel in {', '.join(map(str, sorted(alike)))}" if alike else "")
              + f" {' | '.join(operation.kinds(engine))[:120]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", help="files that algorithm_table.py wrote")
    parser.add_argument("--problems", action="store_true", help="name the cases of each line")
    options = parser.parse_args()
    operations = {name: Operation() for name in ALGORITHMS}
    crashed = []
    for path in options.tables:
        with open(path) as file:
            for line in map(json.loads, file):
                if line["step"] == "process":
                    crashed.append(f"{line['problem']} {line['candidate']}: {line['text']}")
                    continue
                operations[line["shape"]["operation"]].add(line)
    for name, operation in operations.items():
        if not operation.planned:
            continue
        print(f"{name}: legacy algorithms")
        print_algorithms(name, operation, options.problems)
        print(f"\n{name}: engines")
        print_engines(operation)
        print(f"\n{name}: rows of the table")
        print_rows(name, operation)
        print()
    for each in crashed:
        print(f"killed its process: {each}")


if __name__ == "__main__":
    sys.exit(main())
