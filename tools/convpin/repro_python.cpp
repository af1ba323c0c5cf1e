#include <cudnn.h>

#include "shim/model/text.hpp"
#include "tools/convpin/repro.hpp"
#include "tools/convpin/repro_steps.hpp"

namespace convpin::cli {
namespace {

constexpr const char* kHead = R"program(import array
import binascii
import ctypes
import sys

sys.stdout.reconfigure(line_buffering=True)  # what was said before a crash is seen


def open_cudnn():
    if len(sys.argv) > 1:
        return ctypes.CDLL(sys.argv[1])
    try:
        return ctypes.CDLL("libcudnn.so.9")
    except OSError as e:
        try:
            import nvidia.cudnn
        except ImportError:
            sys.exit("%s; its path may be the argument" % e)
        return ctypes.CDLL(nvidia.cudnn.__path__[0] + "/lib/libcudnn.so.9")


cudnn, cuda = open_cudnn(), ctypes.CDLL("libcuda.so.1")
cudnn.cudnnGetVersion.restype = ctypes.c_size_t
cudnn.cudnnGetErrorString.restype = ctypes.c_char_p


def check(status, step):
    if status:
        words = ctypes.create_string_buffer(1024)
        cudnn.cudnnGetLastErrorString(words, ctypes.c_size_t(len(words)))
        print("%s: %s: %s" % (step, cudnn.cudnnGetErrorString(status).decode(), words.value.decode(errors="replace")))
        sys.exit(1)


def driver(name, *arguments):
    result = getattr(cuda, name)(*arguments)
    if result:
        words = ctypes.c_char_p()
        cuda.cuGetErrorName(result, ctypes.byref(words))
        print("%s: %s" % (name, (words.value or b"").decode()))
        sys.exit(1)


class Descriptor(ctypes.c_void_p):
    name = ""


def create(name, type_name, type_number):
    d = Descriptor()
    d.name = name
    check(cudnn.cudnnBackendCreateDescriptor(type_number, ctypes.byref(d)), "create %s (%s)" % (name, type_name))
    return d


def put(d, name, number, element, *values):
    element_type, c_type = element
    check(cudnn.cudnnBackendSetAttribute(d, number, element_type, ctypes.c_int64(len(values)), (c_type * len(values))(*values)),
          "set %s of %s" % (name, d.name))


def finalize(d):
    check(cudnn.cudnnBackendFinalize(d), "finalize " + d.name)


def execute():
    check(cudnn.cudnnBackendExecute(handle, plan, pack), "cudnnBackendExecute")


def allocated(size):
    memory = ctypes.c_void_p()
    driver("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
    return memory


# Multiples of a half between -1 and 1, in the element's own bits; again from the first after 1000003 of them.
def filled(count, code, bits, seed):
    block = array.array(code)
    for _ in range(min(count, 1000003)):
        seed = (seed * 1664525 + 1013904223) & 0xffffffff
        block.append(bits[(seed >> 16) % len(bits)])
    host = block * (count // len(block)) + block[:count % len(block)]
    address, size = host.buffer_info()[0], count * host.itemsize
    memory = allocated(size)
    driver("cuMemcpyHtoD_v2", memory, ctypes.c_void_p(address), ctypes.c_size_t(size))
    return memory


device, context, gpu = ctypes.c_int(), ctypes.c_void_p(), ctypes.create_string_buffer(256)
driver("cuInit", 0)
driver("cuDeviceGet", ctypes.byref(device), 0)
driver("cuDeviceGetName", gpu, len(gpu), device)
driver("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
driver("cuCtxSetCurrent", context)
print("cuDNN %d on %s" % (cudnn.cudnnGetVersion(), gpu.value.decode()))
handle = ctypes.c_void_p()
check(cudnn.cudnnCreate(ctypes.byref(handle)), "cudnnCreate")

)program";

constexpr const char* kRun = R"program(
out = array.array(out_code, [0]) * out_count
out_bytes = ctypes.c_size_t(out_count * out.itemsize)
driver("cuMemsetD8_v2", out_data, 0xff, out_bytes)  # NaNs: an element that nobody writes is seen
execute()
driver("cuCtxSynchronize")
driver("cuMemcpyDtoH_v2", ctypes.c_void_p(out.buffer_info()[0]), out_data, out_bytes)
nan = next((i for i, bits in enumerate(out) if bits & exponent == exponent and bits & mantissa), -1)
print("checksum: %08x, first NaN: %d%s" % (binascii.crc32(out), nan, " (none)" if nan < 0 else ""))

launches = 20
begin, end, ms = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
driver("cuEventCreate", ctypes.byref(begin), 0)
driver("cuEventCreate", ctypes.byref(end), 0)
driver("cuEventRecord", begin, None)
for _ in range(launches):
    execute()
driver("cuEventRecord", end, None)
driver("cuEventSynchronize", end)
driver("cuEventElapsedTime", ctypes.byref(ms), begin, end)
print("time: %.5f ms" % (ms.value / launches))
)program";

// CUDNN_TYPE_INT64 is INT64 in the program.
std::string short_name(const ElementType& element) { return std::string(element.type.name).substr(sizeof("CUDNN_TYPE_") - 1); }

std::string named(const Enumerator& e) { return std::string("\"") + e.name + "\", " + std::to_string(e.number); }

std::string line(const Step& step) {
  switch (step.kind) {
    case Step::Kind::Create:
      return step.descriptor + " = create(\"" + step.descriptor + "\", " + named(step.what) + ")\n";
    case Step::Kind::Finalize:
      return "finalize(" + step.descriptor + ")\n";
    case Step::Kind::Set:
      break;
  }
  std::vector<std::string> parts{step.descriptor, named(step.what), short_name(*step.element)};
  std::string comment;
  for (const StepValue& value : step.values) {
    parts.push_back(value.python);
    if (!value.meaning.empty()) comment += "  # " + value.meaning;
  }
  return "put(" + join(parts, ", ") + ")" + comment + "\n";
}

// An unsigned element of as many bytes, as Python's array has them, and how many.
std::string count_and_code(const Tensor& t) {
  const std::size_t size = size_of(t.type);
  return std::to_string(bytes_of(t) / size) + ", \"" + (size == 2 ? "H" : size == 4 ? "I" : "Q") + "\"";
}

std::string workspace() {
  const Enumerator attribute{"CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE", CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE};
  return "\ncount, workspace_bytes = ctypes.c_int64(), ctypes.c_int64()\n"
         "check(cudnn.cudnnBackendGetAttribute(plan, " +
         std::to_string(attribute.number) +
         ", INT64[0], ctypes.c_int64(1), ctypes.byref(count), ctypes.byref(workspace_bytes)),\n      \"get " + attribute.name +
         "\")\n"
         "print(\"workspace: %d bytes\" % workspace_bytes.value)\n"
         "workspace = allocated(workspace_bytes.value) if workspace_bytes.value > 0 else None\n";
}

}  // namespace

Parsed<std::string> repro_python(const Problem& problem, const EngineConfig& config) {
  const auto steps = repro_steps(problem, config);
  if (!steps) return Parsed<std::string>::fail(steps.error);
  std::string text = "# python3 repro.py [libcudnn.so.9]\n# " + to_text(problem) + "\n# by " + to_tag(config) + "\n" + kHead;
  text += "# cudnnBackendAttributeType_t, and what the values are\n";
  for (const ElementType& element : element_types())
    text += short_name(element) + " = " + std::to_string(element.type.number) + ", ctypes." + element.python + "\n";
  text += "\n";
  for (const Step& step : steps->plan) text += line(step);
  text += workspace();
  for (const Buffer& b : steps->buffers)
    text += b.name + "_data = filled(" + count_and_code(b.tensor) + ", [" + b.bits->values + "], " + std::to_string(b.seed) + ")\n";
  const Buffer& out = steps->buffers[steps->output];
  text += "out_data, out_count, out_code = " + out.name + "_data, " + count_and_code(out.tensor) +
          "\nexponent, mantissa = " + out.bits->exponent + ", " + out.bits->mantissa + "\n";
  for (const Step& step : steps->pack) text += line(step);
  return Parsed<std::string>::ok(text + kRun);
}

}  // namespace convpin::cli
