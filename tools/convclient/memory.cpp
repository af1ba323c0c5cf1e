#include "tools/convclient/memory.hpp"

#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

namespace convclient {

using convpin::Parsed;

// cuda.h renames some functions by macro (cuMemAlloc is cuMemAlloc_v2). The list is expanded before it is
// turned into text, so that the name looked up is the one that the prototype belongs to.
// clang-format off
#define DRIVER_FUNCTIONS(X)                                                                       \
  X(cuInit) X(cuDeviceGet) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuGetErrorName)       \
  X(cuMemAlloc) X(cuMemFree) X(cuMemAllocHost) X(cuMemFreeHost)                                    \
  X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync)                                                       \
  X(cuStreamCreate) X(cuStreamDestroy) X(cuStreamSynchronize)                                     \
  X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventSynchronize) X(cuEventElapsedTime)
// clang-format on
#define AS_TEXT(name) #name

struct Driver {
#define MEMBER(name) decltype(&::name) name = nullptr;
  DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
  CUcontext context = nullptr;
  std::string missing;  // why there is no driver, empty where it works
};

namespace {

constexpr std::size_t kAlignment = 256;

std::string describe(const Driver& driver, const char* call, CUresult result) {
  const char* name = nullptr;
  if (driver.cuGetErrorName) driver.cuGetErrorName(result, &name);
  return std::string(call) + ": " + (name ? name : "CUDA error " + std::to_string(static_cast<int>(result)));
}

Driver load_driver() {
  Driver driver;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    driver.missing = dlerror();
    return driver;
  }
#define RESOLVE(name)                                                                   \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, AS_TEXT(name))); \
  if (!driver.name) driver.missing = "libcuda.so.1 has no " AS_TEXT(name);
  DRIVER_FUNCTIONS(RESOLVE)
#undef RESOLVE
  if (!driver.missing.empty()) return driver;

  // The primary context is the one that the CUDA runtime inside cuDNN uses.
  CUdevice device = 0;
  if (CUresult r = driver.cuInit(0); r != CUDA_SUCCESS)
    driver.missing = describe(driver, "cuInit", r);
  else if (r = driver.cuDeviceGet(&device, 0); r != CUDA_SUCCESS)
    driver.missing = describe(driver, "cuDeviceGet", r);
  else if (r = driver.cuDevicePrimaryCtxRetain(&driver.context, device); r != CUDA_SUCCESS)
    driver.missing = describe(driver, "cuDevicePrimaryCtxRetain", r);
  return driver;
}

const Driver& the_driver() {
  // Never destroyed: tests call cuDNN from a library's destructor, after the destructors of objects like
  // this.
  static const Driver& driver = *new Driver(load_driver());
  return driver;
}

}  // namespace

bool on_standin() {
  constexpr const char* name = "cudnnStandinDriver";
  if (dlsym(RTLD_DEFAULT, name)) return true;
  for (const char* soname : {"libcudnn.so.9", "libcudnn_standin.so.9"})  // opened RTLD_LOCAL it is in no scope of ours
    if (void* library = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD); library && dlsym(library, name)) return true;
  return false;
}

Buffer::~Buffer() {
  if (!data_) return;
  if (driver_ && where_ == Where::PinnedHost)
    driver_->cuMemFreeHost(data_);
  else if (driver_)
    driver_->cuMemFree(reinterpret_cast<CUdeviceptr>(data_));
  else
    std::free(data_);
}

Parsed<Device> Device::open() {
  if (on_standin()) return Parsed<Device>::ok(Device(nullptr, nullptr));
  const Driver& driver = the_driver();
  if (!driver.missing.empty()) return Parsed<Device>::fail("no GPU: " + driver.missing);
  if (CUresult r = driver.cuCtxSetCurrent(driver.context); r != CUDA_SUCCESS)
    return Parsed<Device>::fail(describe(driver, "cuCtxSetCurrent", r));
  CUstream stream = nullptr;
  if (CUresult r = driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING); r != CUDA_SUCCESS)
    return Parsed<Device>::fail(describe(driver, "cuStreamCreate", r));
  return Parsed<Device>::ok(Device(&driver, stream));
}

Device::~Device() {
  if (driver_ && stream_) driver_->cuStreamDestroy(stream_);
}

Parsed<Buffer> Device::allocate(std::size_t bytes) const {
  if (bytes == 0) return Parsed<Buffer>::ok({});
  if (is_host()) {
    const char* most = std::getenv("STANDIN_LARGEST_BUFFER");  // tests/standin/README.md
    if (most && bytes > std::strtoull(most, nullptr, 10))
      return Parsed<Buffer>::fail("no host memory for " + std::to_string(bytes) + " bytes (STANDIN_LARGEST_BUFFER)");
    void* data = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    if (!data) return Parsed<Buffer>::fail("no host memory for " + std::to_string(bytes) + " bytes");
    return Parsed<Buffer>::ok(Buffer(nullptr, data, bytes));
  }
  CUdeviceptr data = 0;
  if (CUresult r = driver_->cuMemAlloc(&data, bytes); r != CUDA_SUCCESS)
    return Parsed<Buffer>::fail(describe(*driver_, "cuMemAlloc", r) + " for " + std::to_string(bytes) +
                                " bytes");
  return Parsed<Buffer>::ok(Buffer(driver_, reinterpret_cast<void*>(data), bytes));
}

Parsed<Buffer> Device::allocate_pinned(std::size_t bytes) const {
  if (is_host() || bytes == 0) return allocate(bytes);
  void* data = nullptr;
  if (CUresult r = driver_->cuMemAllocHost(&data, bytes); r != CUDA_SUCCESS)
    return Parsed<Buffer>::fail(describe(*driver_, "cuMemAllocHost", r) + " for " + std::to_string(bytes) +
                                " bytes");
  return Parsed<Buffer>::ok(Buffer(driver_, data, bytes, Buffer::Where::PinnedHost));
}

std::string Device::upload(const Buffer& to, const void* from, std::size_t bytes) const {
  if (is_host()) {
    std::memcpy(to.data(), from, bytes);
    return {};
  }
  CUresult r = driver_->cuMemcpyHtoDAsync(reinterpret_cast<CUdeviceptr>(to.data()), from, bytes, stream_);
  return r == CUDA_SUCCESS ? synchronize() : describe(*driver_, "cuMemcpyHtoDAsync", r);
}

std::string Device::download(void* to, const Buffer& from, std::size_t bytes) const {
  if (is_host()) {
    std::memcpy(to, from.data(), bytes);
    return {};
  }
  CUresult r = driver_->cuMemcpyDtoHAsync(to, reinterpret_cast<CUdeviceptr>(from.data()), bytes, stream_);
  return r == CUDA_SUCCESS ? synchronize() : describe(*driver_, "cuMemcpyDtoHAsync", r);
}

std::string Device::synchronize() const {
  if (is_host()) return {};
  CUresult r = driver_->cuStreamSynchronize(stream_);
  return r == CUDA_SUCCESS ? std::string() : describe(*driver_, "cuStreamSynchronize", r);
}

std::optional<double> Device::time_ms(const std::function<bool()>& launch) const {
  if (is_host()) {
    auto start = std::chrono::steady_clock::now();
    if (!launch()) return std::nullopt;
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  CUevent start = nullptr, stop = nullptr;
  float ms = 0;
  bool good = driver_->cuEventCreate(&start, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
              driver_->cuEventCreate(&stop, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
              driver_->cuEventRecord(start, stream_) == CUDA_SUCCESS && launch() &&
              driver_->cuEventRecord(stop, stream_) == CUDA_SUCCESS &&
              driver_->cuEventSynchronize(stop) == CUDA_SUCCESS &&
              driver_->cuEventElapsedTime(&ms, start, stop) == CUDA_SUCCESS;
  if (start) driver_->cuEventDestroy(start);
  if (stop) driver_->cuEventDestroy(stop);
  return good ? std::optional<double>(ms) : std::nullopt;
}

}  // namespace convclient
