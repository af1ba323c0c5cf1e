"""The convolutions of the matrix as PyTorch makes them: each of the three operations by one call of PyTorch's own.

PyTorch sends a depthwise Conv2d in NCHW to kernels of its own (but for half), a depthwise ConvTranspose2d to cuDNN. Both
consist of the same three cuDNN problems: a transposed convolution's forward pass is backward_data, the gradient of its
input is forward. So depthwise NCHW is called as the transposed module would.
"""
import dataclasses
import itertools
import math

from cudnn_direct import OPERATIONS, Problem

DEVICE = "cuda"
LARGE = dict(n=32, c=64, size=(56, 56), k=64)
FILTERS = {
    "3x3": Problem(**LARGE, window=(3, 3), pad=1),
    "5x5": Problem(**LARGE, window=(5, 5), pad=2),
    "1x1": Problem(**LARGE, window=(1, 1)),
    "depthwise 3x3": Problem(**LARGE, window=(3, 3), pad=1, groups=64),
    "transposed 3x3": Problem(**LARGE, window=(3, 3), pad=1, stride=2),
    "3-D 3x3x3": Problem(n=4, c=32, size=(8, 28, 28), k=32, window=(3, 3, 3), pad=1),
}
# (cuDNN's name of the type, PyTorch's, TF32 allowed)
KINDS = {"fp32": ("float", "float32", False), "tf32": ("float", "float32", True),
         "fp16": ("half", "float16", False), "bf16": ("bfloat16", "bfloat16", False)}
LAYOUTS = ("nchw", "nhwc")


@dataclasses.dataclass(frozen=True)
class Convolution:
    filter: str
    kind: str
    layout: str

    @property
    def problem(self):
        shape = FILTERS[self.filter]
        # TF32 on and off are one problem to cuDNN: a batch of its own keeps them apart in the log.
        return dataclasses.replace(shape, n=shape.n - (self.kind == "fp32"), dtype=KINDS[self.kind][0], layout=self.layout)

    @property
    def transposed(self):
        return self.filter.startswith("transposed") or (self.filter.startswith("depthwise") and self.layout == "nchw")

    def text(self, operation):
        """The problem as convpin writes it."""
        p = self.problem
        x, w, _ = p.shapes()
        shape = lambda values: "[" + ",".join(map(str, values)) + "]"
        every = lambda value: ",".join([str(value)] * p.dims)
        layout = p.layout if p.dims == 2 else {"nchw": "ncdhw", "nhwc": "ndhwc"}[p.layout]
        return (f"{operation} x={shape(x)} w={shape(w)} {p.dtype} {layout} pad={every(p.pad)} stride={every(p.stride)} "
                f"dilation={every(p.dilation)} groups={p.groups}")

    def length(self, operation):
        """How many products each element of the result is a sum of."""
        p = self.problem
        if operation == "backward_filter":
            return p.n * math.prod(p.shapes()[2][2:])
        return (p.c if operation == "forward" else p.k) // p.groups * math.prod(p.window)

    def tensors(self):
        """x, w and y, the same values in both layouts."""
        import torch
        generator = torch.Generator(device=DEVICE).manual_seed(1)
        last = torch.channels_last if self.problem.dims == 2 else torch.channels_last_3d
        memory = last if self.layout == "nhwc" else torch.contiguous_format
        return [torch.randn(shape, device=DEVICE, generator=generator).to(getattr(torch, KINDS[self.kind][1]))
                .contiguous(memory_format=memory) for shape in self.problem.shapes()]

    def call(self, operation, x, w, y):
        """What the operation writes, by PyTorch's cuDNN path."""
        import torch
        torch.backends.cudnn.allow_tf32 = KINDS[self.kind][2]
        p = self.problem
        if not self.transposed:
            return convolve(operation, p, x, w, y)
        aten, every = torch.ops.aten, lambda value: [value] * p.dims
        left = [size - ((out - 1) * p.stride - 2 * p.pad + p.dilation * (window - 1) + 1)
                for size, out, window in zip(p.size, y.shape[2:], p.window)]
        module = (every(p.stride), every(p.pad), every(p.dilation), True, left, p.groups)
        if operation == "backward_data":
            return aten.convolution(y, w, None, *module)
        wanted = [operation == "forward", operation == "backward_filter", False]
        return aten.convolution_backward(x, y, w, None, *module, wanted)[wanted.index(True)]

    def references(self, x, w, y):
        """{operation: the result in float64}, by PyTorch's kernels without cuDNN."""
        import torch
        exact = [t.double().contiguous() for t in (x, w, y)]
        with torch.backends.cudnn.flags(enabled=False):
            return {operation: convolve(operation, self.problem, *exact) for operation in OPERATIONS}


def convolve(operation, problem, x, w, y):
    import torch
    aten, every = torch.ops.aten, lambda value: [value] * problem.dims
    module = (every(problem.stride), every(problem.pad), every(problem.dilation), False, every(0), problem.groups)
    if operation == "forward":
        return aten.convolution(x, w, None, *module)
    wanted = [operation == "backward_data", operation == "backward_filter", False]
    return aten.convolution_backward(y, x, w, None, *module, wanted)[wanted.index(True)]


def convolutions(filters=tuple(FILTERS)):
    """All of them; both layouts of a filter and a type stand together."""
    return [Convolution(f, k, layout) for f, k, layout in itertools.product(filters, KINDS, LAYOUTS)]
