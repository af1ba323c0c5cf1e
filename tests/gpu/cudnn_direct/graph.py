"""The graph API: a graph of one convolution, its engines, configurations and plans."""
from ctypes import byref, c_int64

from .library import (BACKEND_DESCRIPTOR, BEHAVIOR_NOTE, CONVOLUTION, CONVOLUTION_MODE, DATA_TYPE, DATA_TYPES, DOUBLE,
                      ENGINE, ENGINECFG, ENGINEHEUR, EXECUTION_PLAN, FLOAT, HANDLE, HEUR_MODE, INT64, KNOB_CHOICE,
                      KNOB_TYPE, NUMERICAL_NOTE, OPERATIONGRAPH, TENSOR, VARIANT_PACK, VOID_PTR, Descriptor)

HEURISTIC_MODES = {"instant": 0, "b": 1, "fallback": 2, "a": 3}  # cudnnBackendHeurMode_t
NUMERICAL_NOTES = ("TENSOR_CORE", "DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION", "FFT",
                   "NONDETERMINISTIC", "WINOGRAD", "WINOGRAD_TILE_4x4", "WINOGRAD_TILE_6x6",
                   "WINOGRAD_TILE_13x13", "STRICT_NAN_PROP")
BEHAVIOUR_NOTES = ("RUNTIME_COMPILATION", "REQUIRES_FILTER_INT8x32_REORDER",
                   "REQUIRES_BIAS_INT8x32_REORDER", "SUPPORTS_CUDA_GRAPH_NATIVE_API",
                   "CUBLASLT_DEPENDENCY")

# Each operation's descriptor type and its first attribute. From there, in this order for all three:
# ALPHA, BETA, CONV_DESC, and then the tensors W, X, Y (CUDNN_ATTR_OPERATION_CONVOLUTION_…).
OPERATION_DESCRIPTORS = {"forward": (10, 700), "backward_data": (12, 706), "backward_filter": (11, 712)}


class Configuration:
    """An engine configuration (ENGINECFG): global engine index, knobs {type: value}, engine."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self.engine = descriptor.get_descriptors(300, ENGINE, 1)[0]
        self.index = self.engine.get(1301, INT64, 1)[0]

    @property
    def knobs(self):
        choices = self.descriptor.get_descriptors(302, KNOB_CHOICE, 64)
        return {choice.get(600, KNOB_TYPE, 1)[0]: choice.get(601, INT64, 1)[0] for choice in choices}

    def numerical_notes(self):
        return note_names(self.engine.get(1303, NUMERICAL_NOTE), NUMERICAL_NOTES)

    def behaviour_notes(self):
        return note_names(self.engine.get(1305, BEHAVIOR_NOTE), BEHAVIOUR_NOTES)


def note_names(numbers, names):
    """Names of notes; a number newer than this file stays a number."""
    return [names[number] if number < len(names) else str(number) for number in numbers]


class ConvolutionGraph:
    """The one-operation graph of a problem, with unique ids x, w, y."""
    IDS = [ord("x"), ord("w"), ord("y")]

    def __init__(self, cudnn, problem):
        self.cudnn, self.problem = cudnn, problem
        x, w, y = (self._tensor(uid, shape) for uid, shape in zip(self.IDS, problem.shapes()))
        kind, first = OPERATION_DESCRIPTORS[problem.operation]
        operation = Descriptor(cudnn, kind)
        for attribute, value in enumerate((self._convolution(), w, x, y), first + 2):
            operation.set(attribute, BACKEND_DESCRIPTOR, [value])
        scalar_type = DOUBLE if problem.dtype == "double" else FLOAT
        operation.set(first, scalar_type, [1.0])
        operation.set(first + 1, scalar_type, [0.0])
        operation.finalize("operation")
        self.descriptor = Descriptor(cudnn, OPERATIONGRAPH)
        self.descriptor.set(801, BACKEND_DESCRIPTOR, [operation])
        if cudnn.handle:
            self.descriptor.set(800, HANDLE, [cudnn.handle.value])
        self.descriptor.finalize("operation graph")

    def _tensor(self, uid, shape):
        tensor = Descriptor(self.cudnn, TENSOR)
        tensor.set(901, DATA_TYPE, [DATA_TYPES[self.problem.dtype]])
        tensor.set(902, INT64, shape)
        tensor.set(903, INT64, self.problem.strides(shape))
        tensor.set(906, INT64, [uid])
        tensor.set(900, INT64, [16])  # bytes of alignment
        tensor.finalize("tensor")
        return tensor

    def _convolution(self):
        problem, convolution = self.problem, Descriptor(self.cudnn, CONVOLUTION)
        convolution.set(100, DATA_TYPE, [DATA_TYPES[problem.compute_type]])
        convolution.set(101, CONVOLUTION_MODE, [1])  # cross-correlation
        convolution.set(106, INT64, [problem.dims])
        for attribute, value in ((102, problem.dilation), (103, problem.stride),
                                 (104, problem.pad), (105, problem.pad)):
            convolution.set(attribute, INT64, [value] * problem.dims)
        convolution.finalize("convolution")
        return convolution

    def engine_count(self):
        return self.descriptor.get(802, INT64, 1)[0]

    def heuristics(self, mode):
        """The configurations that cuDNN suggests in a mode of HEURISTIC_MODES, best first."""
        query = Descriptor(self.cudnn, ENGINEHEUR)
        query.set(201, BACKEND_DESCRIPTOR, [self.descriptor])
        query.set(200, HEUR_MODE, [HEURISTIC_MODES[mode]])
        if self.cudnn.device:
            query.set(204, BACKEND_DESCRIPTOR, [self.cudnn.device])
        query.finalize("heuristics")
        count = c_int64()
        self.cudnn.call("cudnnBackendGetAttribute", query.pointer, 202, BACKEND_DESCRIPTOR, 0,
                        byref(count), None, step="heuristics count")
        if not count.value:
            return []
        return [Configuration(each) for each in query.get_descriptors(202, ENGINECFG, count.value)]

    def configuration(self, index, knobs=None):
        """A configuration of one engine with the knobs {type: value}, or its default ones."""
        engine = Descriptor(self.cudnn, ENGINE)
        engine.set(1300, BACKEND_DESCRIPTOR, [self.descriptor])
        engine.set(1301, INT64, [index])
        if self.cudnn.device:
            engine.set(1307, BACKEND_DESCRIPTOR, [self.cudnn.device])
        engine.finalize("engine")
        config = Descriptor(self.cudnn, ENGINECFG)
        config.set(300, BACKEND_DESCRIPTOR, [engine])
        if knobs:
            config.set(302, BACKEND_DESCRIPTOR, [self._choice(*knob) for knob in knobs.items()])
        config.finalize("configuration")
        return Configuration(config)

    def _choice(self, knob_type, value):
        choice = Descriptor(self.cudnn, KNOB_CHOICE)
        choice.set(600, KNOB_TYPE, [knob_type])
        choice.set(601, INT64, [value])
        choice.finalize("knob choice")
        return choice

    def plan(self, configuration):
        return Plan(self.cudnn, configuration)


class Plan:
    """A finalized execution plan; `workspace` is in bytes."""

    def __init__(self, cudnn, configuration):
        self.cudnn, self.descriptor = cudnn, Descriptor(cudnn, EXECUTION_PLAN)
        if cudnn.device:
            self.descriptor.set(407, BACKEND_DESCRIPTOR, [cudnn.device])
        else:
            self.descriptor.set(400, HANDLE, [cudnn.handle.value])
        self.descriptor.set(401, BACKEND_DESCRIPTOR, [configuration.descriptor])
        self.descriptor.finalize("plan")
        self.workspace = self.descriptor.get(402, INT64, 1)[0]

    def bind(self, x, w, y, workspace):
        """A function that runs the plan once on these torch tensors, on the current stream.

        The tensors (workspace: bytes, or None) are kept alive by the function.
        """
        pack = Descriptor(self.cudnn, VARIANT_PACK)
        pack.set(1000, INT64, ConvolutionGraph.IDS)
        pack.set(1001, VOID_PTR, [tensor.data_ptr() for tensor in (x, w, y)])
        pack.set(1003, VOID_PTR, [workspace.data_ptr() if workspace is not None else None])
        pack.finalize("variant pack")
        pack.kept += [x, w, y, workspace]

        def run():
            self.cudnn.use_current_stream()
            self.cudnn.call("cudnnBackendExecute", self.cudnn.handle, self.descriptor.pointer,
                            pack.pointer, step="execute")
        return run
