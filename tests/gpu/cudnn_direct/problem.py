"""What is to be computed: one convolution, in plain data."""
import math
from ctypes import c_double, c_float
from dataclasses import dataclass

# What each operation writes of (x, w, y), as an index; it reads the other two.
OPERATIONS = {"forward": 2, "backward_data": 0, "backward_filter": 1}


@dataclass(frozen=True)
class Problem:
    """A convolution: x [n,c,*size], w [k,c/groups,*window], y; 2-d or 3-d, padding is symmetric.

    x, w and y are the same tensors in every operation: backward_data computes x (dx in cuDNN's
    documentation) from w and y, backward_filter w from x and y. The layout nchw stands for channels
    first and nhwc for channels last, in 3-d too.
    """
    n: int
    c: int
    size: tuple
    k: int
    window: tuple
    pad: int = 0
    stride: int = 1
    dilation: int = 1
    groups: int = 1
    dtype: str = "float"
    layout: str = "nchw"
    operation: str = "forward"

    @property
    def dims(self):
        return len(self.size)

    @property
    def written(self):
        """Index of the tensor of (x, w, y) that the operation writes."""
        return OPERATIONS[self.operation]

    def shapes(self):
        """The shapes of x, w and y, in the order N,C,[D,]H,W (K,C/groups,…) whatever the layout."""
        extents = ((size + 2 * self.pad - self.dilation * (window - 1) - 1) // self.stride + 1
                   for size, window in zip(self.size, self.window))
        return ((self.n, self.c, *self.size), (self.k, self.c // self.groups, *self.window),
                (self.n, self.k, *extents))

    def strides(self, shape):
        """Strides in elements of a packed tensor of that shape in the problem's layout."""
        channels, spatial = shape[1], shape[2:]
        inner = [math.prod(spatial[i + 1:]) for i in range(len(spatial))]
        if self.layout == "nhwc":
            return (math.prod(shape[1:]), 1, *(each * channels for each in inner))
        return (math.prod(shape[1:]), math.prod(spatial), *inner)

    @property
    def compute_type(self):
        return "double" if self.dtype == "double" else "float"

    def scalar(self, value):
        """alpha and beta are float, but double for double data (cuDNN documentation)."""
        return (c_double if self.dtype == "double" else c_float)(value)
