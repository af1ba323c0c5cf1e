"""cuDNN forward convolutions by ctypes, through the library that PyTorch itself has loaded.

Nothing of the code under test is in between: functions are looked up in libcudnn.so.9 itself, so a
preloaded library does not see these calls. Two ways to run a problem:

    cudnn = Cudnn()                                 # on a GPU, beside torch
    graph = ForwardGraph(cudnn, Problem(32, 64, 56, 56, 64, 3, 3, pad=1))
    plan = graph.plan(graph.configuration(28))
    plan.bind(x, w, y, workspace)()
    LegacyForward(cudnn, problem).bind(1, x, w, y, workspace)()

With `Cudnn(path, device_json=text)` no GPU is needed: everything up to finalized plans works for the
device that the JSON text describes (cuDNN 9.8 or newer, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR).

Numbers are those of cudnn_graph.h and cudnn_ops.h of cuDNN 9.19; they are stable within cuDNN 9.
"""
import ctypes
import re
from ctypes import byref, c_float, c_double, c_int, c_int64, c_size_t, c_void_p
from dataclasses import dataclass

DATA_TYPES = {"float": 0, "double": 1, "half": 2, "bfloat16": 9}        # cudnnDataType_t
MATH_TYPES = {"DEFAULT": 0, "TENSOR_OP": 1, "ALLOW_CONVERSION": 2, "FMA": 3}  # cudnnMathType_t
HEURISTIC_MODES = {"instant": 0, "b": 1, "fallback": 2, "a": 3}         # cudnnBackendHeurMode_t
LEGACY_FORWARD = ("IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "DIRECT", "FFT", "FFT_TILING",
                  "WINOGRAD", "WINOGRAD_NONFUSED")                      # cudnnConvolutionFwdAlgo_t
NUMERICAL_NOTES = ("TENSOR_CORE", "DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION", "FFT",
                   "NONDETERMINISTIC", "WINOGRAD", "WINOGRAD_TILE_4x4", "WINOGRAD_TILE_6x6",
                   "WINOGRAD_TILE_13x13", "STRICT_NAN_PROP")
BEHAVIOUR_NOTES = ("RUNTIME_COMPILATION", "REQUIRES_FILTER_INT8x32_REORDER",
                   "REQUIRES_BIAS_INT8x32_REORDER", "SUPPORTS_CUDA_GRAPH_NATIVE_API",
                   "CUBLASLT_DEPENDENCY")

# cudnnBackendDescriptorType_t
CONVOLUTION, ENGINE, ENGINECFG, ENGINEHEUR, EXECUTION_PLAN, KNOB_CHOICE = 1, 2, 3, 4, 5, 7
OPERATION_FORWARD, OPERATIONGRAPH, VARIANT_PACK, TENSOR, DEVICEPROP = 10, 15, 16, 17, 38

# cudnnBackendAttributeType_t, with the C type of one element (enumerations are ints)
HANDLE, DATA_TYPE, INT64, FLOAT, DOUBLE, VOID_PTR = 0, 1, 3, 4, 5, 6
CONVOLUTION_MODE, HEUR_MODE, KNOB_TYPE, NUMERICAL_NOTE = 7, 8, 9, 11
BACKEND_DESCRIPTOR, BEHAVIOR_NOTE, CHAR = 15, 19, 24
ELEMENT = {HANDLE: c_void_p, INT64: c_int64, FLOAT: c_float, DOUBLE: c_double, VOID_PTR: c_void_p,
           BACKEND_DESCRIPTOR: c_void_p, CHAR: ctypes.c_char}


class CudnnError(Exception):
    """A call that did not return CUDNN_STATUS_SUCCESS: which step, the status, cuDNN's own words."""

    def __init__(self, step, status, text=""):
        super().__init__(f"{step}: status {status} {text}".rstrip())
        self.step, self.status, self.text = step, status, text


@dataclass(frozen=True)
class Problem:
    """A 2-d forward convolution: x [n,c,h,w] * w [k,c/groups,r,s] -> y; padding is symmetric."""
    n: int
    c: int
    h: int
    w: int
    k: int
    r: int
    s: int
    pad: int = 0
    stride: int = 1
    dilation: int = 1
    groups: int = 1
    dtype: str = "float"
    layout: str = "nchw"

    def shapes(self):
        """The shapes of x, w and y, in the order N,C,H,W (K,C/groups,R,S) whatever the layout."""
        def extent(size, window):
            return (size + 2 * self.pad - self.dilation * (window - 1) - 1) // self.stride + 1
        return ((self.n, self.c, self.h, self.w), (self.k, self.c // self.groups, self.r, self.s),
                (self.n, self.k, extent(self.h, self.r), extent(self.w, self.s)))

    def strides(self, shape):
        """Strides in elements of a packed tensor of that shape in the problem's layout."""
        _, c, h, w = shape
        return (c * h * w, 1, w * c, c) if self.layout == "nhwc" else (c * h * w, h * w, w, 1)

    @property
    def compute_type(self):
        return "double" if self.dtype == "double" else "float"

    def scalar(self, value):
        """alpha and beta are float, but double for double data (cuDNN documentation)."""
        return (c_double if self.dtype == "double" else c_float)(value)


def loaded_library():
    """Path of the libcudnn.so.9 that is mapped into this process once torch is imported."""
    import torch  # noqa: F401  (loads cuDNN)
    with open("/proc/self/maps") as maps:
        paths = {match[1] for match in re.finditer(r"(/\S*/libcudnn\.so[.\d]*)$", maps.read(), re.M)}
    if len(paths) != 1:
        raise RuntimeError(f"expected one loaded libcudnn.so.9, found {sorted(paths)}")
    return paths.pop()


class Cudnn:
    """The library with a handle of our own, or with a described device instead of a GPU."""

    def __init__(self, path=None, device_json=None):
        self.path = path or loaded_library()
        self.library = ctypes.CDLL(self.path)
        self.library.cudnnGetVersion.restype = c_size_t
        self.library.cudnnBackendSetAttribute.argtypes = [c_void_p, c_int, c_int, c_int64, c_void_p]
        self.library.cudnnBackendGetAttribute.argtypes = [c_void_p, c_int, c_int, c_int64,
                                                          c_void_p, c_void_p]
        self.version = self.library.cudnnGetVersion()
        self.handle, self.device = c_void_p(), None
        if device_json is None:
            self.call("cudnnCreate", byref(self.handle))
        else:
            self.device = Descriptor(self, DEVICEPROP)
            self.device.set(2702, CHAR, device_json.encode())
            self.device.finalize("device description")

    def call(self, name, *arguments, step=None):
        """Call a function of the library that returns cudnnStatus_t; anything but 0 raises."""
        status = getattr(self.library, name)(*arguments)
        if status:
            text = ctypes.create_string_buffer(1024)
            self.library.cudnnGetLastErrorString(text, c_size_t(len(text)))
            raise CudnnError(step or name, status, text.value.decode(errors="replace"))

    def use_current_stream(self):
        import torch
        self.call("cudnnSetStream", self.handle, c_void_p(torch.cuda.current_stream().cuda_stream))


class Descriptor:
    """One cudnnBackendDescriptor_t, destroyed with this object; keeps alive what it was given."""

    def __init__(self, cudnn, kind):
        self.cudnn, self.kept, self.pointer = cudnn, [], c_void_p()
        cudnn.call("cudnnBackendCreateDescriptor", kind, byref(self.pointer))

    def __del__(self):
        if self.pointer:
            self.cudnn.library.cudnnBackendDestroyDescriptor(self.pointer)

    def set(self, attribute, kind, values):
        """Set an attribute to a sequence of values (a bytes object for CHAR)."""
        self.kept += [value for value in values if isinstance(value, Descriptor)]
        values = [value.pointer.value if isinstance(value, Descriptor) else value for value in values]
        array = (ELEMENT.get(kind, c_int) * len(values))(*values)
        self.cudnn.call("cudnnBackendSetAttribute", self.pointer, attribute, kind, len(values), array,
                        step=f"set attribute {attribute}")

    def get(self, attribute, kind, room=64):
        """The values of an attribute, at most `room` of them."""
        array, count = (ELEMENT.get(kind, c_int) * room)(), c_int64()
        self.cudnn.call("cudnnBackendGetAttribute", self.pointer, attribute, kind, room,
                        byref(count), array, step=f"get attribute {attribute}")
        return list(array[:min(count.value, room)])

    def get_descriptors(self, attribute, kind, room):
        """Descriptors that an attribute holds: cuDNN fills ones that the caller has created."""
        filled, count = [Descriptor(self.cudnn, kind) for _ in range(room)], c_int64()
        array = (c_void_p * room)(*[each.pointer.value for each in filled])
        self.cudnn.call("cudnnBackendGetAttribute", self.pointer, attribute, BACKEND_DESCRIPTOR, room,
                        byref(count), array, step=f"get attribute {attribute}")
        return filled[:count.value]

    def finalize(self, step):
        self.cudnn.call("cudnnBackendFinalize", self.pointer, step=step)


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


class ForwardGraph:
    """The one-operation graph y = conv(x, w) of a problem, with unique ids x, w, y."""
    IDS = [ord("x"), ord("w"), ord("y")]

    def __init__(self, cudnn, problem):
        self.cudnn, self.problem = cudnn, problem
        x, w, y = (self._tensor(uid, shape) for uid, shape in zip(self.IDS, problem.shapes()))
        operation = Descriptor(cudnn, OPERATION_FORWARD)
        for attribute, value in ((702, self._convolution()), (703, w), (704, x), (705, y)):
            operation.set(attribute, BACKEND_DESCRIPTOR, [value])
        scalar_type = DOUBLE if problem.dtype == "double" else FLOAT
        operation.set(700, scalar_type, [1.0])
        operation.set(701, scalar_type, [0.0])
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
        convolution.set(106, INT64, [2])
        for attribute, value in ((102, problem.dilation), (103, problem.stride),
                                 (104, problem.pad), (105, problem.pad)):
            convolution.set(attribute, INT64, [value, value])
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
        pack.set(1000, INT64, ForwardGraph.IDS)
        pack.set(1001, VOID_PTR, [tensor.data_ptr() for tensor in (x, w, y)])
        pack.set(1003, VOID_PTR, [workspace.data_ptr() if workspace is not None else None])
        pack.finalize("variant pack")
        pack.kept += [x, w, y, workspace]

        def run():
            self.cudnn.use_current_stream()
            self.cudnn.call("cudnnBackendExecute", self.cudnn.handle, self.descriptor.pointer,
                            pack.pointer, step="execute")
        return run


class LegacyForward:
    """The descriptors of a problem for cudnnConvolutionForward, with one math type."""
    KINDS = ("Tensor", "Filter", "Tensor", "Convolution")

    def __init__(self, cudnn, problem, math="DEFAULT"):
        self.cudnn, self.problem, self.created = cudnn, problem, []
        self.x, self.w, self.y, self.convolution = map(self._create, self.KINDS)
        shapes, data_type = problem.shapes(), DATA_TYPES[problem.dtype]
        for tensor, shape in ((self.x, shapes[0]), (self.y, shapes[2])):
            cudnn.call("cudnnSetTensor4dDescriptorEx", tensor, data_type, *shape,
                       *problem.strides(shape))
        cudnn.call("cudnnSetFilter4dDescriptor", self.w, data_type, int(problem.layout == "nhwc"),
                   *shapes[1])
        cudnn.call("cudnnSetConvolution2dDescriptor", self.convolution, problem.pad, problem.pad,
                   problem.stride, problem.stride, problem.dilation, problem.dilation,
                   1, DATA_TYPES[problem.compute_type])  # 1: cross-correlation
        cudnn.call("cudnnSetConvolutionGroupCount", self.convolution, problem.groups)
        cudnn.call("cudnnSetConvolutionMathType", self.convolution, MATH_TYPES[math])

    def _create(self, kind):
        descriptor = c_void_p()
        self.cudnn.call(f"cudnnCreate{kind}Descriptor", byref(descriptor))
        self.created.append((kind, descriptor))
        return descriptor

    def __del__(self):
        for kind, descriptor in self.created:
            getattr(self.cudnn.library, f"cudnnDestroy{kind}Descriptor")(descriptor)

    def workspace(self, algorithm):
        """Bytes of workspace that an algorithm (0..7) asks for."""
        size = c_size_t()
        self.cudnn.call("cudnnGetConvolutionForwardWorkspaceSize", self.cudnn.handle, self.x, self.w,
                        self.convolution, self.y, algorithm, byref(size), step="workspace")
        return size.value

    def bind(self, algorithm, x, w, y, workspace):
        """As Plan.bind, for one algorithm."""
        pointers = [c_void_p(tensor.data_ptr()) for tensor in (x, w, y)]
        space = c_void_p(workspace.data_ptr() if workspace is not None else None)
        size = c_size_t(workspace.numel() if workspace is not None else 0)
        one, zero, kept = self.problem.scalar(1), self.problem.scalar(0), (x, w, y, workspace)

        def run(_kept=kept):
            self.cudnn.use_current_stream()
            self.cudnn.call("cudnnConvolutionForward", self.cudnn.handle, byref(one), self.x,
                            pointers[0], self.w, pointers[1], self.convolution, algorithm, space,
                            size, byref(zero), self.y, pointers[2], step="execute")
        return run


NOT_WORK = re.compile(r"Activity Buffer|(Context|Stream|Event|Device) (Sync|Wait)|Lazy Function|cuda[A-Z]")


def _device_work(run):
    """Names of the kernels, copies and memsets that run() puts on the device, in order of start."""
    import torch
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        run()
        torch.cuda.synchronize()
    events = [event for event in profiler.events()
              if event.device_type == torch.autograd.DeviceType.CUDA and not NOT_WORK.match(event.name)]
    return [event.name for event in sorted(events, key=lambda event: event.time_range.start)]


def kernels_of_each(functions):
    """For each function the names of its kernels, from one profiler session.

    Starting a session costs tenths of a second, so a marker kernel that no convolution uses (a fill of
    complex128) stands before each function and after the last one. Call each function once before.
    """
    import torch
    cell = torch.ones(1, dtype=torch.complex128, device="cuda")

    def mark():
        torch.cuda.synchronize()
        cell.fill_(2.0)
        torch.cuda.synchronize()

    def run_all():
        for function in functions:
            mark()
            function()
        mark()
    if not hasattr(kernels_of_each, "marker"):
        _device_work(mark)  # the first session starts the profiler's machinery and may miss events
        kernels_of_each.marker = _device_work(mark)[0]
    groups, marker = [], kernels_of_each.marker
    for name in _device_work(run_all):
        if name == marker:
            groups.append([])
        elif groups:
            groups[-1].append(name)
    if len(groups) != len(functions) + 1:
        raise RuntimeError(f"profiler saw {len(groups)} markers of {len(functions) + 1}")
    return groups[:-1]


def kernels(function):
    """Names of the kernels that function() launches, in order; it runs twice."""
    function()
    return kernels_of_each([function])[0]
