#include <algorithm>

#include "shim/model/text.hpp"
#include "tools/convpin/repro.hpp"
#include "tools/convpin/repro_steps.hpp"

namespace convpin::cli {
namespace {

constexpr const char* kHead = R"program(#include <cuda.h>
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

static D create(cudnnBackendDescriptorType_t type, const char* step) {
  D d = nullptr;
  check(cudnnBackendCreateDescriptor(type, &d), step);
  return d;
}
template <typename T>
static void set(D d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::initializer_list<T> values,
                const char* step) {
  check(cudnnBackendSetAttribute(d, name, type, static_cast<int64_t>(values.size()), values.begin()), step);
}
#define CREATE(d, type) D d = create(type, "create " #d)
#define SET(d, name, type, element, ...) set<element>(d, name, type, {__VA_ARGS__}, "set " #name " of " #d)
#define FINALIZE(d) check(cudnnBackendFinalize(d), "finalize " #d)

// Multiples of a half between -1 and 1, in the element's own bits; again from the first after 1000003 of them.
static CUdeviceptr filled(size_t bytes, size_t size, const std::vector<uint64_t>& bits, uint32_t first) {
  std::vector<unsigned char> host(bytes);
  uint32_t seed = first;
  for (size_t at = 0; at < bytes; at += size) {
    if (at / size % 1000003 == 0) seed = first;
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
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // what was said before a crash is seen
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

)program";

constexpr const char* kWorkspace = R"program(
  int64_t workspace_bytes = 0, count = 0;
  CHECK(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &workspace_bytes));
  std::printf("workspace: %lld bytes\n", static_cast<long long>(workspace_bytes));
  CUdeviceptr workspace = 0;
  if (workspace_bytes > 0) CHECK(cuMemAlloc(&workspace, static_cast<size_t>(workspace_bytes)));
)program";

constexpr const char* kRun = R"program(
  CHECK(cuMemsetD8(out_data, 0xff, out_bytes));  // NaNs: an element that nobody writes is seen
  CHECK(cudnnBackendExecute(handle, plan, pack));
  CHECK(cuCtxSynchronize());
  std::vector<unsigned char> out(out_bytes);
  CHECK(cuMemcpyDtoH(out.data(), out_data, out.size()));
  uint32_t crc = 0xffffffffu;
  for (const unsigned char byte : out) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  long long nan = -1;
  for (size_t at = 0; at < out.size() && nan < 0; at += out_size) {
    uint64_t bits = 0;
    for (size_t i = 0; i < out_size; ++i) bits |= static_cast<uint64_t>(out[at + i]) << 8 * i;
    if ((bits & exponent) == exponent && (bits & mantissa)) nan = static_cast<long long>(at / out_size);
  }
  std::printf("checksum: %08x, first NaN: %lld%s\n", static_cast<unsigned>(~crc), nan, nan < 0 ? " (none)" : "");

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
)program";

std::string line(const Step& step) {
  switch (step.kind) {
    case Step::Kind::Create:
      return "  CREATE(" + step.descriptor + ", " + step.what.name + ");\n";
    case Step::Kind::Finalize:
      return "  FINALIZE(" + step.descriptor + ");\n";
    case Step::Kind::Set:
      break;
  }
  std::vector<std::string> parts{step.descriptor, step.what.name, step.element->type.name, step.element->cpp};
  for (const StepValue& value : step.values) parts.push_back(value.cpp);
  return "  SET(" + join(parts, ", ") + ");\n";
}

std::string data(const Buffer& b) {
  return "  const CUdeviceptr " + b.name + "_data = filled(" + std::to_string(bytes_of(b.tensor)) + ", " +
         std::to_string(size_of(b.tensor.type)) + ", {" + b.bits->values + "}, " + std::to_string(b.seed) + ");\n";
}

}  // namespace

Parsed<std::string> repro_cpp(const Problem& problem, const EngineConfig& config) {
  const auto steps = repro_steps(problem, config);
  if (!steps) return Parsed<std::string>::fail(steps.error);
  std::string text = "// c++ -std=c++17 repro.cpp -o repro -I/usr/local/cuda/include -lcudnn -lcuda && ./repro\n// " + to_text(problem) +
                     "\n// by " + to_tag(config) + "\n" + kHead;
  for (const Step& step : steps->plan) text += line(step);
  text += kWorkspace;
  for (const Buffer& b : steps->buffers) text += data(b);
  const Buffer& out = steps->buffers[steps->output];
  text += "  const CUdeviceptr out_data = " + out.name + "_data;\n  const size_t out_bytes = " + std::to_string(bytes_of(out.tensor)) +
          ", out_size = " + std::to_string(size_of(out.tensor.type)) + ";\n  const uint64_t exponent = " + out.bits->exponent +
          ", mantissa = " + out.bits->mantissa + ";\n";
  for (const Step& step : steps->pack) text += line(step);
  return Parsed<std::string>::ok(text + kRun);
}

}  // namespace convpin::cli
