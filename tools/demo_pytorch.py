"""An ordinary PyTorch program, for tools/demo.sh. It knows nothing of convpin.

Prints each layer's output as an error against float64, so that runs can be compared.
"""
import torch
from torch.profiler import ProfilerActivity, profile

torch.manual_seed(0)
LAYERS = [("conv 3x3", 64, 64, 3, torch.float32), ("conv 5x5", 32, 64, 5, torch.float32), ("conv 3x3 half", 64, 64, 3, torch.float16)]
for name, inputs, outputs, size, dtype in LAYERS:
    layer = torch.nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False, device="cuda", dtype=dtype)
    x = torch.randn(32, inputs, 56, 56, device="cuda", dtype=dtype)
    with torch.no_grad():
        layer(x)
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            y = layer(x)
            torch.cuda.synchronize()
        with torch.backends.cudnn.flags(enabled=False):
            reference = torch.nn.functional.conv2d(x.double(), layer.weight.double(), padding=size // 2)
    error = ((y - reference).abs().max() / reference.abs().max()).item()
    # The convolution's own kernels: layout and type conversions around them left out.
    kernels = [e.name for e in seen.events() if e.device_type == torch.autograd.DeviceType.CUDA
               and not any(word in e.name for word in ("Memset", "Memcpy", "ToNhwc", "ToNchw", "convertTensor"))]
    print(f"{name}: max|out-ref|/max|ref| = {error:.1e}, kernels {', '.join(k.removeprefix('void ')[:48] for k in kernels)}")
