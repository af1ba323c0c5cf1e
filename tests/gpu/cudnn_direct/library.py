"""libcudnn.so.9 by ctypes: its calls, and the descriptors of its graph API."""
import ctypes
import re
from ctypes import byref, c_float, c_double, c_int, c_int64, c_size_t, c_void_p

DATA_TYPES = {"float": 0, "double": 1, "half": 2, "bfloat16": 9}        # cudnnDataType_t
MATH_TYPES = {"DEFAULT": 0, "TENSOR_OP": 1, "ALLOW_CONVERSION": 2, "FMA": 3}  # cudnnMathType_t

# cudnnBackendDescriptorType_t
CONVOLUTION, ENGINE, ENGINECFG, ENGINEHEUR, EXECUTION_PLAN, KNOB_CHOICE = 1, 2, 3, 4, 5, 7
OPERATIONGRAPH, VARIANT_PACK, TENSOR, DEVICEPROP = 15, 16, 17, 38

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
