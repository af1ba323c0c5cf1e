"""convpin from Python: changing which algorithm runs a convolution while the program runs, and asking what ran.

One file, without dependencies; it talks to the libconvpin.so that the program was started with:

    LD_PRELOAD=/path/libconvpin.so python train.py

    import convpin                          # before the first convolution
    convpin.conv_fwd_algo = 1               # number, name, engine tag, several of them ("5,eng38"), -1: the framework's choice
    convpin.conv_bwd_data_algo = None       # no longer set
    with convpin.pin(forward="FFT_TILING", backward_filter=3):
        ...
    convpin.rules('[[rule]]\nproblem = "w=[64,3,7,7]"\nalgo = "eng38"')
    with convpin.annotate(model):           # what runs is labelled with the module's name, backward too
        ...
    for problem in convpin.problems(): ...
    print(convpin.report())

All of it holds for the whole process and takes effect at the next execution of each convolution; CUDA graphs that are
captured already don't change. Without the library preloaded, importing works and `convpin.available` is False; anything
that needs the library raises RuntimeError.
"""
import contextlib
import ctypes
import json
import sys
import types

_OPERATIONS = {"conv_fwd_algo": "forward", "conv_bwd_data_algo": "backward_data", "conv_bwd_filter_algo": "backward_filter"}
_ORDER = ("any",) + tuple(_OPERATIONS.values())
_HOW = ("libconvpin.so is not loaded in this process: start the program with LD_PRELOAD=/path/libconvpin.so python ... "
        "(a notebook: in its kernel's environment)")


def _find():
    """The functions of the preloaded library, None without it. Functions that take a lock let other threads of Python run."""
    process = ctypes.CDLL(None)
    try:
        process.convpin_version
    except AttributeError:
        return None
    text = ctypes.c_char_p
    for name, result, arguments in (("version", text, []), ("enable", None, []), ("set_algo", text, [text, text]),
                                    ("set_rules", text, [text]), ("clear", text, [text]), ("problems", ctypes.c_void_p, []),
                                    ("free", None, [ctypes.c_void_p])):
        function = getattr(process, "convpin_" + name)
        function.restype, function.argtypes = result, arguments
    label = ctypes.PyDLL(None).convpin_label   # twice for each convolution, and over at once
    label.restype, label.argtypes = None, [text]
    process.label_now = label
    return process


_library = _find()
_set = {}            # operation -> what was set, as the program gave it
_rules = None        # the text of rules()
available = _library is not None


def _call():
    if _library is None:
        raise RuntimeError(_HOW)
    return _library


def _check(error):
    if error is not None:
        raise ValueError(error.decode(errors="replace"))


def _text(value):
    if isinstance(value, bool) or not isinstance(value, (int, str, list, tuple)):
        raise TypeError(f"an algorithm is a number, a name, an engine tag, or a list of these, not {value!r}")
    return ",".join(_text(each) for each in value) if isinstance(value, (list, tuple)) else str(value)


def _put(operation, value):
    library = _call()
    names = _ORDER[1:] if operation == "any" else (operation,)
    if value is None:
        _check(library.convpin_clear(operation.encode()))
        for name in names:
            _set.pop(name, None)
        return
    text = _text(value).encode()
    _check(library.convpin_set_algo(operation.encode(), text))
    for name in names:
        if operation != "any" or library.convpin_set_algo(name.encode(), text) is None:  # not each operation knows each name
            _set[name] = value


def _apply(wanted):
    for name in wanted:
        if name not in _ORDER:
            raise TypeError(f"{name} is not an operation: allowed are {', '.join(_ORDER)}")
    for operation in _ORDER:      # "any" first, so that an operation's own comes after it
        if operation in wanted:
            _put(operation, wanted[operation])


def _restore(before):
    for operation in _ORDER[1:]:
        if _set.get(operation) != before.get(operation):
            _put(operation, before.get(operation))


def set(**wanted):  # noqa: A001  convpin.set(forward=1) reads as it should
    """Sets algorithms: forward=, backward_data=, backward_filter=, any=. None takes one away. All of them, or none."""
    _call()
    before = dict(_set)
    try:
        _apply(wanted)
    except BaseException:
        _restore(before)
        raise


@contextlib.contextmanager
def pin(**wanted):
    """The same inside a with block; at its end what was set before is again."""
    before = dict(_set)
    set(**wanted)
    try:
        yield
    finally:
        _restore(before)


def clear():
    """Takes away everything that was set here, rules too."""
    global _rules
    _check(_call().convpin_clear(None))
    _set.clear()
    _rules = None


def rules(toml=None):
    """Sets [[rule]] tables, as in a file, in place of those of before; "" takes them away. Without an argument: what is set."""
    global _rules
    if toml is not None:
        _check(_call().convpin_set_rules(toml.encode()))
        _rules = toml if toml.strip() else None
    return _rules


def problems():
    """What was met so far: a list of dicts, one for each convolution (see convpin_problems in convpin.h)."""
    library = _call()
    address = library.convpin_problems()
    if not address:
        raise MemoryError("convpin_problems")
    try:
        return json.loads(ctypes.string_at(address).decode(errors="replace"))
    finally:
        library.convpin_free(address)


def label(name):
    """What this thread runs from now on is labelled so; None ends it."""
    _call().label_now(None if name is None else str(name).encode())


def version():
    return _call().convpin_version().decode()


def report():
    """What was met so far as a table, one line for each way in which each problem ran, or one if it failed."""
    rows = [("calls", "ran", "choice", "labels", "problem")]
    for problem in problems():
        labels = ", ".join(problem["labels"][:3]) + (f" and {len(problem['labels']) - 3} more" if len(problem["labels"]) > 3 else "")
        failed = [{"calls": 0, "what": "-"}] if problem["choice"] else []
        for at, way in enumerate(problem["ran"] or failed):
            rows.append((str(way["calls"]), way["what"], (problem["choice"] or "") if at == 0 else "", labels, problem["problem"]))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return "\n".join("  ".join([text.ljust(width) for text, width in zip(row, widths)] + [row[-1]]).rstrip() for row in rows)


class annotate:
    """Labels what the convolution modules of a torch.nn.Module run with their names in it ("layer3.0.conv2"), their backward
    passes too. Results and the autograd graph stay as they are. remove() ends it, and so does a with block.

    For eager execution: torch.compile traces a model without its labels. Convolutions that are not modules of torch.nn's own
    kinds can be labelled by hand: convpin.label."""

    def __init__(self, model, prefix=""):
        import torch
        library = _call()
        library.convpin_enable()
        self._label = library.label_now
        self._compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
        self._active = True
        self._handles = []
        for name, module in model.named_modules(prefix=prefix):
            if isinstance(module, torch.nn.modules.conv._ConvNd):
                self._watch(module, (name or type(module).__name__).encode())

    def _watch(self, module, name):
        def before(module, arguments):
            if self._active and not self._compiling():
                self._label(name)

        def after(module, arguments, output):
            if self._compiling():
                return
            self._label(None)
            node = _convolution_of(getattr(output, "grad_fn", None)) if self._active else None
            if node is not None:
                node.register_prehook(backward_begins)
                node.register_hook(backward_ends)

        def backward_begins(gradients):
            if self._active:
                self._label(name)

        def backward_ends(inputs, outputs):
            self._label(None)

        self._handles.append(module.register_forward_pre_hook(before))
        try:
            self._handles.append(module.register_forward_hook(after, always_call=True))
        except TypeError:    # PyTorch before 2.0: a forward pass that raises leaves its label until the next module's
            self._handles.append(module.register_forward_hook(after))

    def remove(self):
        self._active = False
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def _convolution_of(node):
    """The autograd node of the convolution that made a module's output, behind what only reshapes its result."""
    first = node
    for _ in range(4):
        if node is None or "onvolution" in node.name():
            break
        if not any(word in node.name() for word in ("Squeeze", "View", "Reshape", "Add", "Clone", "Copy")):
            return first
        node = next((each for each, _ in node.next_functions if each is not None), None)
    return node if node is not None and "onvolution" in node.name() else first


class _Module(types.ModuleType):
    """convpin.conv_fwd_algo = 1: assigning to a module's name can only be seen by its class."""

    def _property(name, operation):  # noqa: N805
        return property(lambda self: _set.get(operation), lambda self, value: _put(operation, value),
                        lambda self: _put(operation, None), f"What is set for {operation}, None for nothing.")

    for _name, _operation in _OPERATIONS.items():
        locals()[_name] = _property(_name, _operation)
    del _name, _operation, _property

    def __setattr__(self, name, value):
        if name.startswith("conv_") and name not in _OPERATIONS:
            raise AttributeError(f"convpin has no {name}: {', '.join(_OPERATIONS)}")
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Module
if available:
    _library.convpin_enable()
