#include "tools/convpin/repro.hpp"

#include <algorithm>

#include "shim/model/text.hpp"

namespace convpin::cli {
namespace {

// What stands before and behind the lines that are made for the problem.
constexpr const char* kHead =
    R"cpp(#include <cuda.h>
#include <cudnn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <vector>

          using D = cudnnBackendDescriptor_t;

          static void check(cudnnStatus_t status, const char* step) {
            if (status == CUDNN_STATUS_SUCCESS) return;
            char words[1024] = "";
            cudnnGetLastErrorString(words, sizeof words);
            std::printf("%s: %s: %s\n", step, cudnnGetErrorString(status), words);
            std::exit(1);
          }
          static void check(CUresult result, const char* step) {
            const char* name = "";
            if (result == CUDA_SUCCESS) return;
            cuGetErrorName(result, &name);
            std::printf("%s: %s\n", step, name);
            std::exit(1);
          }
#define CHECK(call) check(call, #call)

          static D create(cudnnBackendDescriptorType_t type) {
            D d = nullptr;
            CHECK(cudnnBackendCreateDescriptor(type, &d));
            return d;
          }
          template <typename T>
          static void set(D d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          std::initializer_list<T> values, const char* step) {
            check(cudnnBackendSetAttribute(d, name, type, static_cast<int64_t>(values.size()), values.begin()), step);
          }
#define SET(d, name, type, element, ...) set<element>(d, name, type, {__VA_ARGS__}, "set " #name " of " #d)
#define FINALIZE(d) check(cudnnBackendFinalize(d), "finalize " #d)

          // Multiples of a half between -1 and 1, in the element's own bits.
          static CUdeviceptr filled(size_t bytes, const std::vector<uint64_t>& bits, size_t size, uint32_t seed) {
            std::vector<unsigned char> host(bytes);
            for (size_t at = 0; at + size <= bytes; at += size) {
              seed = seed * 1664525u + 1013904223u;
              const uint64_t value = bits[(seed >> 16) % bits.size()];
              for (size_t i = 0; i < size; ++i) host[at + i] = static_cast<unsigned char>(value >> 8 * i);
            }
            CUdeviceptr memory = 0;
            CHECK(cuMemAlloc(&memory, bytes));
            CHECK(cuMemcpyHtoD(memory, host.data(), bytes));
            return memory;
          }

          int main() {
            CUdevice device = 0;
            CUcontext context = nullptr;
            char gpu[256] = "";
            CHECK(cuInit(0));
            CHECK(cuDeviceGet(&device, 0));
            CHECK(cuDeviceGetName(gpu, sizeof gpu, device));
            CHECK(cuDevicePrimaryCtxRetain(&context, device));
            CHECK(cuCtxSetCurrent(context));
            std::printf("cuDNN %zu on %s\n", cudnnGetVersion(), gpu);
            cudnnHandle_t handle = nullptr;
            CHECK(cudnnCreate(&handle));
)cpp";

constexpr const char* kTail = R"cpp(
  int64_t workspace_bytes = 0, count = 0;
  CHECK(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                                 &workspace_bytes));
  std::printf("workspace: %lld bytes\n", static_cast<long long>(workspace_bytes));
  CUdeviceptr workspace = 0;
  if (workspace_bytes > 0) CHECK(cuMemAlloc(&workspace, static_cast<size_t>(workspace_bytes)));
  const CUdeviceptr x_data = filled(kXBytes, kBitsX, kXSize, 1), w_data = filled(kWBytes, kBitsW, kWSize, 2),
                    y_data = filled(kYBytes, kBitsY, kYSize, 3);
  CHECK(cuMemsetD8(out_data(x_data, w_data, y_data), 0xff,
                   kOutBytes));  // NaNs: an element that nobody writes is seen
  D pack = create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  SET(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, int64_t, 'x', 'w', 'y');
  SET(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, void*,
      reinterpret_cast<void*>(x_data), reinterpret_cast<void*>(w_data), reinterpret_cast<void*>(y_data));
  SET(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, void*, reinterpret_cast<void*>(workspace));
  FINALIZE(pack);
  CHECK(cudnnBackendExecute(handle, plan, pack));
  CHECK(cuCtxSynchronize());

  std::vector<unsigned char> out(kOutBytes);
  CHECK(cuMemcpyDtoH(out.data(), out_data(x_data, w_data, y_data), out.size()));
  uint64_t checksum = 14695981039346656037u;
  for (const unsigned char byte : out) checksum = (checksum ^ byte) * 1099511628211u;
  long long nan = -1;
  for (size_t at = 0; at + kOutSize <= out.size() && nan < 0; at += kOutSize) {
    uint64_t bits = 0;
    for (size_t i = 0; i < kOutSize; ++i) bits |= static_cast<uint64_t>(out[at + i]) << 8 * i;
    if ((bits & kExponent) == kExponent && (bits & kMantissa)) nan = static_cast<long long>(at / kOutSize);
  }
  std::printf("checksum: %016llx, first NaN: %lld%s\n", static_cast<unsigned long long>(checksum), nan,
              nan < 0 ? " (none)" : "");

  constexpr int kLaunches = 20;
  CUevent begin = nullptr, end = nullptr;
  float ms = 0;
  CHECK(cuEventCreate(&begin, 0));
  CHECK(cuEventCreate(&end, 0));
  CHECK(cuEventRecord(begin, nullptr));
  for (int i = 0; i < kLaunches; ++i) CHECK(cudnnBackendExecute(handle, plan, pack));
  CHECK(cuEventRecord(end, nullptr));
  CHECK(cuEventSynchronize(end));
  CHECK(cuEventElapsedTime(&ms, begin, end));
  std::printf("time: %.5f ms\n", static_cast<double>(ms) / kLaunches);
  }
)cpp";

// An element in its own bits: multiples of a half from -1 to 1, and what tells a NaN.
struct Bits {
  DataType type;
  const char *name, *values, *exponent, *mantissa;
};
constexpr Bits kBits[] = {
    {DataType::Float, "FLOAT", "0xbf800000, 0xbf000000, 0, 0x3f000000, 0x3f800000", "0x7f800000", "0x7fffff"},
    {DataType::Half, "HALF", "0xbc00, 0xb800, 0, 0x3800, 0x3c00", "0x7c00", "0x3ff"},
    {DataType::BFloat16, "BFLOAT16", "0xbf80, 0xbf00, 0, 0x3f00, 0x3f80", "0x7f80", "0x7f"},
    {DataType::Double, "DOUBLE",
     "0xbff0000000000000, 0xbfe0000000000000, 0, 0x3fe0000000000000, 0x3ff0000000000000",
     "0x7ff0000000000000", "0xfffffffffffff"},
};
const Bits* bits_of(DataType type) {
  const auto at = std::ranges::find(kBits, type, &Bits::type);
  return at == std::end(kBits) ? nullptr : at;
}

// What is called how in the three operations.
struct Words {
  const char *descriptor, *attribute, *x, *w, *y, *written;
};
constexpr Words kWords[] = {{"FORWARD", "FORWARD", "X", "W", "Y", "Y"},
                            {"BACKWARD_DATA", "BWD_DATA", "DX", "W", "DY", "X"},
                            {"BACKWARD_FILTER", "BWD_FILTER", "X", "DW", "DY", "W"}};

std::string numbers(const std::array<std::int64_t, kMaxDims>& values, int count) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) all.push_back(std::to_string(values[static_cast<std::size_t>(i)]));
  return join(all, ", ");
}

class Text {
 public:
  void create(const std::string& name, const std::string& type) {
    text += "  D " + name + " = create(CUDNN_BACKEND_" + type + "_DESCRIPTOR);\n";
  }
  void set(const std::string& name, const std::string& attribute, const char* type, const char* element,
           const std::string& values) {
    text += "  SET(" + name + ", CUDNN_ATTR_" + attribute + ", CUDNN_TYPE_" + type + ", " + element + ", " +
            values + ");\n";
  }
  void integers(const std::string& name, const std::string& attribute, const std::string& values) {
    set(name, attribute, "INT64", "int64_t", values);
  }
  void descriptors(const std::string& name, const std::string& attribute, const std::string& values) {
    set(name, attribute, "BACKEND_DESCRIPTOR", "D", values);
  }
  void type(const std::string& name, const std::string& attribute, DataType type) {
    set(name, attribute, "DATA_TYPE", "cudnnDataType_t", std::string("CUDNN_DATA_") + bits_of(type)->name);
  }
  void finalize(const std::string& name) { text += "  FINALIZE(" + name + ");\n"; }

  std::string text;
};

void tensor(Text& out, const std::string& name, const Tensor& t) {
  out.create(name, "TENSOR");
  out.type(name, "TENSOR_DATA_TYPE", t.type);
  out.integers(name, "TENSOR_DIMENSIONS", numbers(t.dims, t.rank));
  out.integers(name, "TENSOR_STRIDES", numbers(t.strides, t.rank));
  out.integers(name, "TENSOR_UNIQUE_ID", "'" + name + "'");
  out.integers(name, "TENSOR_BYTE_ALIGNMENT", "16");
  out.finalize(name);
}

void operation(Text& out, const Problem& p) {
  const Words& words = kWords[static_cast<std::size_t>(p.operation)];
  const int dims = p.spatial_dims();
  out.create("convolution", "CONVOLUTION");
  out.type("convolution", "CONVOLUTION_COMP_TYPE", p.compute);
  out.set("convolution", "CONVOLUTION_CONV_MODE", "CONVOLUTION_MODE", "cudnnConvolutionMode_t",
          p.flipped ? "CUDNN_CONVOLUTION" : "CUDNN_CROSS_CORRELATION");
  out.integers("convolution", "CONVOLUTION_SPATIAL_DIMS", std::to_string(dims));
  out.integers("convolution", "CONVOLUTION_PRE_PADDINGS", numbers(p.pad, dims));
  out.integers("convolution", "CONVOLUTION_POST_PADDINGS", numbers(p.post_pad, dims));
  out.integers("convolution", "CONVOLUTION_FILTER_STRIDES", numbers(p.stride, dims));
  out.integers("convolution", "CONVOLUTION_DILATIONS", numbers(p.dilation, dims));
  out.finalize("convolution");
  const std::string prefix = std::string("OPERATION_CONVOLUTION_") + words.attribute + "_";
  const bool in_double = p.compute == DataType::Double;
  out.create("operation", std::string("OPERATION_CONVOLUTION_") + words.descriptor);
  out.descriptors("operation", prefix + words.x, "x");
  out.descriptors("operation", prefix + words.w, "w");
  out.descriptors("operation", prefix + words.y, "y");
  out.descriptors("operation", prefix + "CONV_DESC", "convolution");
  for (const auto& [name, value] : {std::pair("ALPHA", "1"), std::pair("BETA", "0")})
    out.set("operation", prefix + name, in_double ? "DOUBLE" : "FLOAT", in_double ? "double" : "float",
            value);
  out.finalize("operation");
}

void plan(Text& out, const EngineConfig& config) {
  out.create("graph", "OPERATIONGRAPH");
  out.set("graph", "OPERATIONGRAPH_HANDLE", "HANDLE", "cudnnHandle_t", "handle");
  out.descriptors("graph", "OPERATIONGRAPH_OPS", "operation");
  out.finalize("graph");
  out.create("engine", "ENGINE");
  out.descriptors("engine", "ENGINE_OPERATION_GRAPH", "graph");
  out.integers("engine", "ENGINE_GLOBAL_INDEX", std::to_string(config.engine));
  out.finalize("engine");
  std::vector<std::string> knobs;
  for (const Knob& knob : config.knobs) {
    const std::string name = "knob_" + std::to_string(knob.type);
    out.create(name, "KNOB_CHOICE");
    out.set(name, "KNOB_CHOICE_KNOB_TYPE", "KNOB_TYPE", "cudnnBackendKnobType_t",
            "static_cast<cudnnBackendKnobType_t>(" + std::to_string(knob.type) + ")");
    out.integers(name, "KNOB_CHOICE_KNOB_VALUE", std::to_string(knob.value));
    out.finalize(name);
    knobs.push_back(name);
  }
  out.create("config", "ENGINECFG");
  out.descriptors("config", "ENGINECFG_ENGINE", "engine");
  if (!knobs.empty()) out.descriptors("config", "ENGINECFG_KNOB_CHOICES", join(knobs, ", "));
  out.finalize("config");
  out.create("plan", "EXECUTION_PLAN");
  out.set("plan", "EXECUTION_PLAN_HANDLE", "HANDLE", "cudnnHandle_t", "handle");
  out.descriptors("plan", "EXECUTION_PLAN_ENGINE_CONFIG", "config");
  out.finalize("plan");
}

std::string constants(const Problem& p) {
  std::string text;
  const auto of = [&](const std::string& name, const Tensor& t) {
    text += "  const size_t k" + name + "Bytes = " + std::to_string(bytes_of(t)) + ", k" + name +
            "Size = " + std::to_string(size_of(t.type)) + ";\n";
  };
  const auto with_data = [&](const std::string& name, const Tensor& t) {
    of(name, t);
    text += "  const std::vector<uint64_t> kBits" + name + "{" + bits_of(t.type)->values + "};\n";
  };
  with_data("X", p.x);
  with_data("W", p.w);
  with_data("Y", p.y);
  of("Out", written(p));
  const Bits& bits = *bits_of(written(p).type);
  text +=
      std::string("  const uint64_t kExponent = ") + bits.exponent + ", kMantissa = " + bits.mantissa + ";\n";
  const char* out = kWords[static_cast<std::size_t>(p.operation)].written;
  for (const char* name : {"X", "W", "Y"})
    if (*name == *out)
      text += std::string(
                  "  const auto out_data = [](CUdeviceptr x, CUdeviceptr w, CUdeviceptr y) { return (void)x, "
                  "(void)w, (void)y, ") +
              lower(name) + "; };\n";
  return text;
}

}  // namespace

Parsed<std::string> repro_cpp(const Problem& problem, const EngineConfig& config) {
  using Result = Parsed<std::string>;
  if (problem.fused_count > 0)
    return Result::fail("--repro: not for graphs with operations fused to the convolution");
  for (const Tensor* t : {&problem.x, &problem.w, &problem.y})
    if (!bits_of(t->type)) return Result::fail("--repro: it has no data of type " + name_of(t->type));
  if (!bits_of(problem.compute))
    return Result::fail("--repro: not for the compute type " + name_of(problem.compute));
  const std::string line =
      "c++ -std=c++17 repro.cpp -o repro -I/usr/local/cuda/include -lcudnn -lcuda && ./repro";
  Text out;
  out.text = "// " + line + "\n// " + to_text(problem) + "\n// by " + to_tag(config) + "\n" + kHead;
  tensor(out, "x", problem.x);
  tensor(out, "w", problem.w);
  tensor(out, "y", problem.y);
  operation(out, problem);
  plan(out, config);
  out.text += constants(problem) + kTail;
  return Result::ok(std::move(out.text));
}

}  // namespace convpin::cli
