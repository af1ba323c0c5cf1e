"""The programs of callers.py: each reaches cuDNN's convolutions in its own way, and knows nothing of convpin.

    python3 caller_programs.py NAME

Each runs its convolutions CALLS times or more, forward and (where it can) both backward ones, and checks what they give
against a float64 convolution that does not use cuDNN, or against itself.
"""
import sys

CALLS = 20
N, C, K, SIZE = 8, 32, 32, 28


def layer(torch, **kwargs):
    """A convolution, an input and its output's gradient; the input wants a gradient too."""
    torch.manual_seed(0)
    conv = torch.nn.Conv2d(C, K, 3, padding=1, bias=False).cuda().to(**kwargs)
    x = torch.randn(N, C, SIZE, SIZE, device="cuda").to(**kwargs).requires_grad_()
    return conv, x, torch.randn(N, K, SIZE, SIZE, device="cuda").to(**kwargs)


def exact(torch, x, w, g):
    """[y, dx, dw] in float64, without cuDNN."""
    aten, module = torch.ops.aten, ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    x, w, g = (t.detach().double().contiguous() for t in (x, w, g))
    with torch.backends.cudnn.flags(enabled=False):
        return [aten.convolution(x, w, None, *module), *aten.convolution_backward(g, x, w, None, *module, [True, True, False])[:2]]


def check(torch, results, references, allowed=0.05):
    for result, reference in zip(results, references):
        error = (result.detach().double() - reference).abs().max().item() / reference.abs().max().item()
        assert error <= allowed, f"error {error}"


def eager(benchmark=False, **kwargs):
    import torch
    torch.backends.cudnn.benchmark = benchmark
    conv, x, g = layer(torch, **kwargs)
    for _ in range(CALLS):
        conv.zero_grad()
        x.grad = None
        y = conv(x)
        y.backward(g)
    check(torch, [y, x.grad, conv.weight.grad], exact(torch, x, conv.weight, g))


def half():
    import torch
    eager(dtype=torch.float16, memory_format=torch.channels_last)


def compiled():
    import torch
    conv, x, g = layer(torch, memory_format=torch.channels_last)
    model = torch.compile(torch.nn.Sequential(conv, torch.nn.ReLU()))
    for _ in range(CALLS):
        conv.zero_grad()
        x.grad = None
        y = model(x)
        y.backward(g)
    before = conv(x)
    y, dx, dw = exact(torch, x, conv.weight, g * (before > 0))
    check(torch, [torch.relu(before), x.grad, conv.weight.grad], [y.relu(), dx, dw])


def captured():
    import torch
    conv, x, g = layer(torch)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            conv(x).backward(g)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    conv.weight.grad = x.grad = None
    with torch.cuda.graph(graph):
        y = conv(x)
        y.backward(g)
    for _ in range(CALLS):
        graph.replay()
    torch.cuda.synchronize()
    check(torch, [y, x.grad, conv.weight.grad], exact(torch, x, conv.weight, g))


def graphed():
    import torch
    conv, x, g = layer(torch)
    model = torch.cuda.make_graphed_callables(conv, (x.detach().clone().requires_grad_(),))
    for _ in range(CALLS):
        conv.zero_grad()
        x.grad = None
        y = model(x)
        y.backward(g)
    check(torch, [y, x.grad, conv.weight.grad], exact(torch, x, conv.weight, g))


def threads():
    import threading
    import torch
    conv, x, g = layer(torch)
    references, wrong = exact(torch, x, conv.weight, g), []
    torch.cuda.synchronize()

    def work():
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(CALLS):
                    y = conv(x)
                    dx, dw = torch.autograd.grad(y, (x, conv.weight), g)
                check(torch, [y, dx, dw], references)
        except Exception as error:
            wrong.append(error)
    workers = [threading.Thread(target=work) for _ in range(4)]
    [each.start() for each in workers]
    [each.join() for each in workers]
    assert not wrong, wrong


class Samples:
    """A data set whose samples come from worker processes."""

    def __len__(self):
        return CALLS * N

    def __getitem__(self, index):
        import torch
        return torch.randn(C, SIZE, SIZE, generator=torch.Generator().manual_seed(index))


def loader(context):
    import torch
    conv, _, g = layer(torch)
    conv(torch.zeros(N, C, SIZE, SIZE, device="cuda"))   # cuDNN is in use before the workers come
    for batch in torch.utils.data.DataLoader(Samples(), batch_size=N, num_workers=2, multiprocessing_context=context):
        x = batch.cuda().requires_grad_()
        y = conv(x)
        dx, dw = torch.autograd.grad(y, (x, conv.weight), g)
    check(torch, [y, dx, dw], exact(torch, x, conv.weight, g))


def profiled():
    import torch
    from torch.profiler import ProfilerActivity, profile
    eager()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        eager()
    counts = {}
    for event in seen.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            counts[event.name] = counts.get(event.name, 0) + 1
    for name, count in counts.items():
        print(f"kernel {count} {name}")


def jax_layer(dtype):
    import jax
    import jax.numpy as jnp
    import numpy as np
    random = np.random.default_rng(0)
    x, w, g = (jnp.asarray(random.standard_normal(shape), dtype) for shape in ((N, C, SIZE, SIZE), (K, C, 3, 3), (N, K, SIZE, SIZE)))

    def conv(x, w):
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))

    @jax.jit
    def step(x, w, g):
        y, back = jax.vjp(conv, x, w)
        return y, *back(g)
    forward = jax.jit(conv)
    for _ in range(CALLS):
        y = forward(x, w)
        results = step(x, w, g)
    jax.block_until_ready((y, results))
    # y at one point, by hand: the sum over the window of x * w.
    a, b = (np.asarray(t, dtype=np.float64) for t in (x, w))
    point = (a[0, :, 9:12, 9:12] * b[0]).sum()
    for each in (y, results[0]):
        assert abs(float(each[0, 0, 10, 10]) - point) < 0.05 * np.abs(np.asarray(y, dtype=np.float64)).max()
    return jax


def jax_float():
    jax_layer("float32")


def jax_bfloat16():
    jax_layer("bfloat16")


def onnxruntime():
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper
    random = np.random.default_rng(0)
    x, w = random.standard_normal((N, C, SIZE, SIZE)).astype("f"), random.standard_normal((K, C, 3, 3)).astype("f")
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    shape = lambda name, channels: helper.make_tensor_value_info(name, TensorProto.FLOAT, [N, channels, SIZE, SIZE])
    graph = helper.make_graph([node], "conv", [shape("x", C)], [shape("y", K)], [numpy_helper.from_array(w, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CUDAExecutionProvider"])
    assert "CUDAExecutionProvider" in session.get_providers(), session.get_providers()
    for _ in range(CALLS):
        y, = session.run(None, {"x": x})
    point = (x[0, :, 9:12, 9:12].astype("d") * w[0]).sum()
    assert abs(y[0, 0, 10, 10] - point) < 0.05 * abs(y).max()


def frontend_python():
    import cudnn
    import torch
    conv, x, g = layer(torch, memory_format=torch.channels_last)
    x, w = x.detach(), conv.weight.detach()
    handle = cudnn.create_handle()
    outputs = [torch.empty_like(t) for t in (g, x, w)]
    window = dict(padding=[1, 1], stride=[1, 1], dilation=[1, 1])
    for build, operands, out in (
            (lambda graph, a, b: graph.conv_fprop(image=a, weight=b, **window), (x, w), outputs[0]),
            (lambda graph, a, b: graph.conv_dgrad(loss=a, filter=b, **window), (g, w), outputs[1]),
            (lambda graph, a, b: graph.conv_wgrad(image=a, loss=b, **window), (x, g), outputs[2])):
        graph = cudnn.pygraph(handle=handle, io_data_type=cudnn.data_type.FLOAT, intermediate_data_type=cudnn.data_type.FLOAT,
                              compute_data_type=cudnn.data_type.FLOAT)
        tensors = [graph.tensor(name=name, dim=list(t.shape), stride=list(t.stride()), data_type=cudnn.data_type.FLOAT)
                   for name, t in zip("ab", operands)]
        result = build(graph, *tensors)
        result.set_output(True).set_dim(list(out.shape)).set_stride(list(out.stride())).set_data_type(cudnn.data_type.FLOAT)
        graph.validate()
        graph.build_operation_graph()
        graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        graph.check_support()
        graph.build_plans()
        workspace = torch.empty(max(1, graph.get_workspace_size()), device="cuda", dtype=torch.uint8)
        for _ in range(CALLS):
            graph.execute({tensors[0]: operands[0], tensors[1]: operands[1], result: out}, workspace, handle=handle)
    torch.cuda.synchronize()
    check(torch, outputs, exact(torch, x, w, g))


PROGRAMS = {
    "eager": eager, "benchmark": lambda: eager(benchmark=True), "half": half, "compiled": compiled, "captured": captured,
    "graphed": graphed, "threads": threads, "fork": lambda: loader("fork"), "spawn": lambda: loader("spawn"),
    "profiled": profiled, "jax_float": jax_float, "jax_bfloat16": jax_bfloat16, "onnxruntime": onnxruntime,
    "frontend_python": frontend_python,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
    print("ok")
