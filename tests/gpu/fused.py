"""Fused convolutions of stock PyTorch, to be run under convpin with CONVPIN_PROFILE=engines: a table of the fused engines, and
of the same operations one after the other (`apart`)."""
import torch

torch.manual_seed(0)


def channels_last(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.half).to(memory_format=torch.channels_last)


x, w, b = channels_last(32, 64, 56, 56), channels_last(64, 64, 3, 3), torch.randn(64, device="cuda", dtype=torch.half)
y = torch.cudnn_convolution_relu(x, w, b, (1, 1), (1, 1), (1, 1), 1)
y = torch.cudnn_convolution_add_relu(x, w, y, 1.0, b, (1, 1), (1, 1), (1, 1), 1)
torch.cuda.synchronize()
print(y.float().mean().item())
