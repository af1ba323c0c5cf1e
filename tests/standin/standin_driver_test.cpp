// The stand-in's exports and its driver table. Fails when a listed function is missing, or when a driver
// function does not do what the profile's measurements rest on.
#include <cuda.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/standin/standin.h"

namespace standin {
namespace {

// Each listed function is exported by both libraries, with the real one's version.
TEST(StandinExports, AreTheTable) {
  void* dispatcher = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(dispatcher, nullptr);
  Dl_info info{};
  dladdr(dlsym(dispatcher, "cudnnCreate"), &info);
  const std::string path = info.dli_fname;
  void* implementation =
      dlopen((path.substr(0, path.rfind('/')) + "/libcudnn_standin.so.9").c_str(), RTLD_NOW);
  ASSERT_NE(implementation, nullptr) << dlerror();
#define STANDIN(name, count, home)                                         \
  EXPECT_NE(dlvsym(dispatcher, #name, "libcudnn.so.9"), nullptr) << #name; \
  EXPECT_NE(dlsym(implementation, #name), nullptr) << #name;
#include "tests/standin/standin.def"
#undef STANDIN
}

TEST(StandinDriver, Works) {
  EXPECT_EQ(cudnnStandinDriver("cuNothing"), nullptr);
#define GET(name, symbol)                                                                               \
  const auto name = reinterpret_cast<decltype(&::name)>(const_cast<void*>(cudnnStandinDriver(symbol))); \
  ASSERT_NE(name, nullptr)
  GET(cuMemAllocAsync, "cuMemAllocAsync");
  GET(cuMemFreeAsync, "cuMemFreeAsync");
  GET(cuMemGetInfo, "cuMemGetInfo_v2");
  GET(cuStreamIsCapturing, "cuStreamIsCapturing");
  GET(cuEventCreate, "cuEventCreate");
  GET(cuEventRecord, "cuEventRecord");
  GET(cuEventElapsedTime, "cuEventElapsedTime");
  GET(cuEventDestroy, "cuEventDestroy_v2");
  GET(cuDeviceGetAttribute, "cuDeviceGetAttribute");
#undef GET
  CUdeviceptr memory = 0;
  std::size_t free_bytes = 0, total = 0;
  ASSERT_EQ(cuMemAllocAsync(&memory, 1000, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(memory % 256, 0u);
  EXPECT_EQ(cudnnStandinAllocations(), 1u);
  cuMemGetInfo(&free_bytes, &total);
  EXPECT_EQ(free_bytes, (std::size_t{16} << 30) - 1000);
  EXPECT_EQ(cuMemFreeAsync(memory, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFreeAsync(memory, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cudnnStandinAllocations(), 0u);
  setenv("STANDIN_FREE_BYTES", "999", 1);
  EXPECT_EQ(cuMemAllocAsync(&memory, 1000, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  unsetenv("STANDIN_FREE_BYTES");
  CUstreamCaptureStatus capture{};
  cuStreamIsCapturing(nullptr, &capture);
  EXPECT_EQ(capture, CU_STREAM_CAPTURE_STATUS_NONE);
  setenv("STANDIN_CAPTURING", "1", 1);
  cuStreamIsCapturing(nullptr, &capture);
  EXPECT_EQ(capture, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_NE(cuMemAllocAsync(&memory, 1000, nullptr), CUDA_SUCCESS);
  unsetenv("STANDIN_CAPTURING");
  CUevent start = nullptr, end = nullptr;
  cuEventCreate(&start, 0);
  cuEventCreate(&end, 0);
  cuEventRecord(start, nullptr);
  cuEventRecord(end, nullptr);
  float elapsed = -1;
  EXPECT_EQ(cuEventElapsedTime(&elapsed, start, end), CUDA_SUCCESS);
  EXPECT_GE(elapsed, 0);
  cuEventDestroy(start);
  cuEventDestroy(end);
  int major = 0;
  cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
  EXPECT_TRUE(major == 9 || major == 8);
}

}  // namespace
}  // namespace standin
