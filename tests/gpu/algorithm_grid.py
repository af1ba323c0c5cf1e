"""The grid of convolutions of algorithm_table.py, and every way cuDNN can run one: its candidates."""
import fnmatch
import itertools
import time

import cudnn_direct as direct
from cudnn_direct import CudnnError, Problem

LARGE = dict(n=32, c=64, size=(56, 56), k=64)
FILTERS = {
    "3x3": dict(LARGE, window=(3, 3), pad=1),
    "1x1": dict(LARGE, window=(1, 1)),
    "5x5": dict(LARGE, window=(5, 5), pad=2),
    "3x3s2": dict(LARGE, window=(3, 3), pad=1, stride=2),
    "3x3small": dict(n=8, c=16, size=(28, 28), k=32, window=(3, 3), pad=1),
    "3x3dw": dict(LARGE, window=(3, 3), pad=1, groups=64),
    "3x3x3": dict(n=4, c=32, size=(8, 28, 28), k=32, window=(3, 3, 3), pad=1),
}
MATHS = {"float": ("DEFAULT", "ALLOW_CONVERSION", "FMA"), "half": ("DEFAULT", "TENSOR_OP", "FMA"),
         "bfloat16": ("DEFAULT", "TENSOR_OP", "FMA"), "double": ("DEFAULT",)}


class Skipped(Exception):
    """A candidate that is not worth its time: it has run in an earlier problem."""


def problems(pattern):
    """{name: Problem} of the grid, names operation-dtype-layout-filter, those that match the pattern."""
    found = {}
    for operation, dtype, layout, size in itertools.product(direct.OPERATIONS, MATHS, ("nchw", "nhwc"), FILTERS):
        name = f"{operation}-{dtype}-{layout}-{size}"
        if fnmatch.fnmatch(name, pattern):
            found[name] = Problem(**FILTERS[size], dtype=dtype, layout=layout, operation=operation)
    return found


class Candidate:
    """One way to run a problem: its record, and what runs it once it is prepared.

    prepare() fills the record and returns (bytes of workspace, bind), where bind is that of
    direct.Plan and direct.LegacyConvolution with the algorithm already given.
    """

    def __init__(self, label, prepare, **fields):
        self.record = dict(candidate=label, **fields, step=None, status=None, text=None)
        self.prepare, self.run, self.twin = prepare, None, None

    def fail(self, error):
        if isinstance(error, CudnnError):
            failure = dict(step=error.step, status=error.status, text=error.text)
        else:
            failure = dict(step=type(error).__name__, status=-1, text=str(error)[:300])
        self.record.update(failure)

    def line(self):
        """The record; a candidate with a twin has the twin's results and its own identity."""
        if not self.twin:
            return self.record
        own = ("candidate", "engine", "knobs")
        return {**self.twin.record, **{key: self.record[key] for key in own if key in self.record},
                "same_as": self.twin.record["candidate"]}


def legacy_candidates(cudnn, problem):
    algorithms = range(len(direct.ALGORITHMS[problem.operation]))
    for algorithm, math_type in itertools.product(algorithms, MATHS[problem.dtype]):
        candidate = Candidate(f"legacy:{algorithm}:{math_type}", None)

        def prepare(record=candidate.record, algorithm=algorithm, math_type=math_type):
            legacy = direct.LegacyConvolution(cudnn, problem, math_type)
            record["workspace"] = legacy.workspace(algorithm)
            return record["workspace"], lambda *tensors: legacy.bind(algorithm, *tensors)
        candidate.prepare = prepare
        yield candidate


def graph_candidate(graph, label, make_configuration, compiled):
    """A candidate for a configuration, which is built when the candidate is prepared.

    `compiled` remembers what has been compiled at run time: once for each operation, data type and
    layout is enough, as it costs about half a second each time. None: no limit.
    """
    candidate = Candidate(label, None)

    def prepare(record=candidate.record):
        start = time.perf_counter()
        configuration = make_configuration()
        record.update(engine=configuration.index, knobs=configuration.knobs,
                      numerical=configuration.numerical_notes(),
                      behaviour=configuration.behaviour_notes())
        key = (graph.problem.operation, graph.problem.dtype, graph.problem.layout, configuration.index)
        once = compiled is not None and "RUNTIME_COMPILATION" in record["behaviour"]
        if once and key in compiled:
            raise Skipped("compiled at run time, as in an earlier problem")
        plan = graph.plan(configuration)
        if once:
            compiled.add(key)
        record["build_ms"] = round(1e3 * (time.perf_counter() - start), 2)
        record["workspace"] = plan.workspace
        return plan.workspace, plan.bind
    candidate.prepare = prepare
    return candidate


def graph_candidates(graph, compiled):
    """Candidates of all engines, then of the heuristics; a repeated configuration gets a twin."""
    for index in range(graph.engine_count()):
        candidate = graph_candidate(graph, f"engine:{index}",
                                    lambda index=index: graph.configuration(index), compiled)
        candidate.record["engine"] = index
        yield candidate
    seen = {}
    for mode in ("instant", "fallback"):
        try:
            configurations = graph.heuristics(mode)
        except CudnnError as error:
            failed = Candidate(f"{mode}:-", None)
            failed.fail(error)
            yield failed
            continue
        for rank, configuration in enumerate(configurations):
            candidate = graph_candidate(graph, f"{mode}:{rank}", lambda made=configuration: made, compiled)
            candidate.record.update(engine=configuration.index, knobs=configuration.knobs)
            key = (configuration.index, *sorted(configuration.knobs.items()))
            candidate.twin = seen.get(key)
            seen.setdefault(key, candidate)
            yield candidate
