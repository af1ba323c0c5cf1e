"""cuDNN convolutions by ctypes, through the library that PyTorch itself has loaded.

Nothing of the code under test is in between, so run it without a preload: functions are looked up in
libcudnn.so.9 by dlsym, which convpin answers too. Two ways to run a problem of any of the three operations:

    cudnn = Cudnn()                                 # on a GPU, beside torch
    problem = Problem(32, 64, (56, 56), 64, (3, 3), pad=1, operation="backward_data")
    graph = ConvolutionGraph(cudnn, problem)
    plan = graph.plan(graph.configuration(28))
    plan.bind(x, w, y, workspace)()                 # writes x: see Problem.written
    LegacyConvolution(cudnn, problem).bind(1, x, w, y, workspace)()

With `Cudnn(path, device_json=text)` no GPU is needed: everything up to finalized plans works for the
device that the JSON text describes (cuDNN 9.8 or newer, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR).

Numbers are those of cudnn_graph.h and cudnn_ops.h of cuDNN 9.19; they are stable within cuDNN 9.
"""
from .graph import Configuration, ConvolutionGraph, Plan
from .legacy import ALGORITHMS, LegacyConvolution
from .library import Cudnn, CudnnError, Descriptor
from .problem import OPERATIONS, Problem
from .profiling import kernels, kernels_of_each

__all__ = ["ALGORITHMS", "OPERATIONS", "Configuration", "ConvolutionGraph", "Cudnn", "CudnnError", "Descriptor",
           "LegacyConvolution", "Plan", "Problem", "kernels", "kernels_of_each"]
