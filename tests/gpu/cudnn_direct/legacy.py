"""The legacy API: cudnnConvolutionForward, cudnnConvolutionBackwardData, cudnnConvolutionBackwardFilter."""
from ctypes import byref, c_int, c_size_t, c_void_p

from .library import DATA_TYPES, MATH_TYPES

# Tails of the names of cudnnConvolutionFwdAlgo_t, cudnnConvolutionBwdDataAlgo_t and cudnnConvolutionBwdFilterAlgo_t.
ALGORITHMS = {
    "forward": ("IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "DIRECT", "FFT", "FFT_TILING", "WINOGRAD",
                "WINOGRAD_NONFUSED"),
    "backward_data": ("0", "1", "FFT", "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED"),
    "backward_filter": ("0", "1", "FFT", "3", "WINOGRAD", "WINOGRAD_NONFUSED", "FFT_TILING"),
}

# How a call names an operation, and the order in which it takes (x, w, y): two that it reads, the one that it writes.
CALLS = {"forward": ("Forward", (0, 1, 2)), "backward_data": ("BackwardData", (1, 2, 0)),
         "backward_filter": ("BackwardFilter", (0, 2, 1))}


def ints(values):
    """A C array of ints."""
    return (c_int * len(values))(*values)


class LegacyConvolution:
    """The descriptors of a problem, with one math type."""
    KINDS = ("Tensor", "Filter", "Tensor", "Convolution")

    def __init__(self, cudnn, problem, math="DEFAULT"):
        self.cudnn, self.problem, self.created = cudnn, problem, []
        *self.tensors, self.convolution = map(self._create, self.KINDS)
        self.name, self.order = CALLS[problem.operation]
        shapes, data_type = problem.shapes(), DATA_TYPES[problem.dtype]
        for index in (0, 2):
            cudnn.call("cudnnSetTensorNdDescriptor", self.tensors[index], data_type, problem.dims + 2,
                       ints(shapes[index]), ints(problem.strides(shapes[index])))
        cudnn.call("cudnnSetFilterNdDescriptor", self.tensors[1], data_type,
                   int(problem.layout == "nhwc"), problem.dims + 2, ints(shapes[1]))
        pads, strides, dilations = (ints([each] * problem.dims) for each in
                                    (problem.pad, problem.stride, problem.dilation))
        cudnn.call("cudnnSetConvolutionNdDescriptor", self.convolution, problem.dims, pads, strides,
                   dilations, 1, DATA_TYPES[problem.compute_type])  # 1: cross-correlation
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
        """Bytes of workspace that an algorithm (a number) asks for."""
        size = c_size_t()
        first, second, written = (self.tensors[index] for index in self.order)
        self.cudnn.call(f"cudnnGetConvolution{self.name}WorkspaceSize", self.cudnn.handle, first, second,
                        self.convolution, written, algorithm, byref(size), step="workspace")
        return size.value

    def bind(self, algorithm, x, w, y, workspace):
        """As Plan.bind, for one algorithm."""
        # Each tensor is a descriptor and a pointer, side by side in every one of the three calls.
        first, second, written = ((self.tensors[index], c_void_p((x, w, y)[index].data_ptr()))
                                  for index in self.order)
        space = c_void_p(workspace.data_ptr() if workspace is not None else None)
        size = c_size_t(workspace.numel() if workspace is not None else 0)
        one, zero, kept = self.problem.scalar(1), self.problem.scalar(0), (x, w, y, workspace)

        def run(_kept=kept):
            self.cudnn.use_current_stream()
            self.cudnn.call(f"cudnnConvolution{self.name}", self.cudnn.handle, byref(one), *first, *second,
                            self.convolution, algorithm, space, size, byref(zero), *written, step="execute")
        return run
