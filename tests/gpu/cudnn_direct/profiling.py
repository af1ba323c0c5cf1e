"""The kernels that a function launches, by torch.profiler."""
import re

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
