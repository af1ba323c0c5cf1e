// The stand-in's legacy API, its algorithms and its driver table, as an ordinary program uses them.
// Fails when an algorithm computes a wrong convolution, when two algorithms turn out to be the same one,
// when a shape that an algorithm can't do is accepted, or when a listed function is missing.
#include <cuda.h>
#include <dlfcn.h>

#include <set>

#include "tests/standin/standin.h"
#include "tests/standin/test_problem.hpp"

namespace standin {
namespace {

constexpr cudnnConvolutionFwdAlgo_t algorithm_number(int i) {
  return static_cast<cudnnConvolutionFwdAlgo_t>(i);
}

constexpr Algorithm runs_as[] = {
    Algorithm::ImplicitGemm, Algorithm::ImplicitGemm, Algorithm::Im2colGemm, Algorithm::Direct,
    Algorithm::Fft,          Algorithm::FftTiling,    Algorithm::Winograd,   Algorithm::WinogradNonfused};

class StandinLegacy : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
    cudnnCreateTensorDescriptor(&x_);
    cudnnCreateTensorDescriptor(&y_);
    cudnnCreateTensorDescriptor(&bias_);
    cudnnCreateFilterDescriptor(&w_);
    cudnnCreateConvolutionDescriptor(&conv_);
    cudnnCreateActivationDescriptor(&activation_);
  }
  void TearDown() override {
    cudnnDestroyTensorDescriptor(x_);
    cudnnDestroyTensorDescriptor(y_);
    cudnnDestroyTensorDescriptor(bias_);
    cudnnDestroyFilterDescriptor(w_);
    cudnnDestroyConvolutionDescriptor(conv_);
    cudnnDestroyActivationDescriptor(activation_);
    cudnnDestroy(handle_);
  }

  static void describe(cudnnTensorDescriptor_t descriptor, const Tensor& t) {
    int dim[4], stride[4];
    for (std::size_t i = 0; i < 4; ++i)
      dim[i] = static_cast<int>(t.dim[i]), stride[i] = static_cast<int>(t.stride[i]);
    ASSERT_EQ(cudnnSetTensorNdDescriptor(descriptor, t.type, 4, dim, stride), CUDNN_STATUS_SUCCESS);
  }

  void describe(const Problem& p, cudnnMathType_t math = CUDNN_DEFAULT_MATH) {
    describe(x_, p.x);
    describe(y_, p.y);
    int dim[4];
    for (std::size_t i = 0; i < 4; ++i) dim[i] = static_cast<int>(p.w.dim[i]);
    const bool nhwc = p.w.stride[1] == 1 && p.w.dim[2] * p.w.dim[3] > 1;
    ASSERT_EQ(cudnnSetFilterNdDescriptor(w_, p.w.type, nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, 4, dim),
              CUDNN_STATUS_SUCCESS);
    const Convolution& c = p.conv;
    const int pad[] = {static_cast<int>(c.pad_h), static_cast<int>(c.pad_w)};
    const int stride[] = {static_cast<int>(c.stride_h), static_cast<int>(c.stride_w)};
    const int dilation[] = {static_cast<int>(c.dilation_h), static_cast<int>(c.dilation_w)};
    ASSERT_EQ(
        cudnnSetConvolutionNdDescriptor(conv_, 2, pad, stride, dilation,
                                        c.flipped ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION, p.compute),
        CUDNN_STATUS_SUCCESS);
    cudnnSetConvolutionGroupCount(conv_, static_cast<int>(c.groups));
    cudnnSetConvolutionMathType(conv_, math);
  }

  cudnnStatus_t workspace_size(int algorithm, std::size_t& size) {
    return cudnnGetConvolutionForwardWorkspaceSize(handle_, x_, w_, conv_, y_, algorithm_number(algorithm),
                                                   &size);
  }

  cudnnStatus_t forward(Problem& p, int algorithm, double alpha = 1, double beta = 0) {
    std::size_t size = 0;
    if (const cudnnStatus_t status = workspace_size(algorithm, size); status != CUDNN_STATUS_SUCCESS)
      return status;
    std::vector<std::byte> workspace(size);
    const float narrow[] = {static_cast<float>(alpha), static_cast<float>(beta)};
    const double wide[] = {alpha, beta};
    const bool is_double = p.x.type == CUDNN_DATA_DOUBLE;
    const void* a = is_double ? static_cast<const void*>(&wide[0]) : &narrow[0];
    const void* b = is_double ? static_cast<const void*>(&wide[1]) : &narrow[1];
    return cudnnConvolutionForward(handle_, a, x_, p.x_memory.data(), w_, p.w_memory.data(), conv_,
                                   algorithm_number(algorithm), size > 0 ? workspace.data() : nullptr, size,
                                   b, y_, p.y_memory.data());
  }

  cudnnHandle_t handle_ = nullptr;
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr, bias_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t conv_ = nullptr;
  cudnnActivationDescriptor_t activation_ = nullptr;
};

// The algorithms themselves, beyond what cuDNN would let through: every one on every shape that it can do.
TEST(StandinAlgorithms, AgreeWithTheDefinition) {
  const Shape shapes[] = {{2, 5, 13, 11, 7, 3, 3, 1},          {1, 4, 40, 37, 6, 3, 3, 2},
                          {2, 6, 12, 10, 8, 3, 3, 0, 1, 1, 2}, {1, 3, 33, 9, 4, 5, 7, 2},
                          {2, 6, 14, 9, 4, 3, 3, 2, 2, 2, 2},  {1, 1, 1, 1, 1, 1, 1}};
  for (const Shape& shape : shapes) {
    const Problem p = make_problem(shape, CUDNN_DATA_DOUBLE);
    const auto x = unpack(p.x, p.x_memory), w = unpack(p.w, p.w_memory);
    const std::vector<float> x_float(x.begin(), x.end()), w_float(w.begin(), w.end());
    for (int i = 0; i < algorithm_count; ++i) {
      const auto algorithm = static_cast<Algorithm>(i);
      if (!documented_as_supported(algorithm, p.conv)) continue;
      SCOPED_TRACE(::testing::Message() << name_of(algorithm) << " h " << shape.h << " r " << shape.r);
      std::vector<std::byte> workspace(transform_bytes(algorithm, p.conv, sizeof(double)));
      std::vector<double> y(p.reference.size());
      std::vector<float> y_float(p.reference.size());
      Scratch in_workspace{workspace}, on_heap{std::span<std::byte>()};
      convolve(algorithm, p.conv, x.data(), w.data(), y.data(), in_workspace);
      convolve(algorithm, p.conv, x_float.data(), w_float.data(), y_float.data(), on_heap);
      for (std::size_t j = 0; j < y.size(); ++j) {
        ASSERT_NEAR(y[j], p.reference[j],
                    error_bound(CUDNN_DATA_DOUBLE, algorithm, p.terms(), p.reference[j]));
        // the inputs were rounded to float as well: one more unit each per term
        ASSERT_NEAR(y_float[j], p.reference[j],
                    2 * error_bound(CUDNN_DATA_FLOAT, algorithm, p.terms(), p.reference[j]));
      }
    }
  }
}

TEST_F(StandinLegacy, EveryAlgorithmAgreesWithTheDefinition) {
  const Shape shapes[] = {{2, 16, 14, 14, 32, 3, 3, 1},
                          {1, 8, 9, 11, 5, 3, 3, 0, 2},
                          {1, 8, 12, 12, 8, 5, 5, 2},
                          {2, 8, 10, 10, 12, 3, 3, 1, 1, 1, 4},
                          {1, 6, 12, 10, 8, 3, 3, 2, 1, 2}};
  std::set<int> ran;
  for (const Shape& shape : shapes) {
    for (const cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_DOUBLE}) {
      for (const Layout layout : {Layout::Nchw, Layout::Nhwc}) {
        for (int i = 0; i < 8; ++i) {
          Problem problem = make_problem(shape, type, layout);
          describe(problem);
          SCOPED_TRACE(::testing::Message() << "algorithm " << i << " type " << type << " r " << shape.r);
          const cudnnStatus_t status = forward(problem, i);
          if (status / 1000 == 3) continue;
          ASSERT_EQ(status, CUDNN_STATUS_SUCCESS);
          expect_close(problem, runs_as[i], problem.reference);
          ran.insert(i);
        }
      }
    }
  }
  EXPECT_EQ(ran, (std::set<int>{0, 1, 2, 3, 4, 5, 7})) << "6 (WINOGRAD) doesn't exist on sm_90";
}

TEST_F(StandinLegacy, AlgorithmsMultiplyDifferently) {
  // padding, and outputs that don't fill the tiles: nothing coincides by chance
  Problem problem = make_problem({1, 6, 40, 37, 7, 3, 3, 1});
  describe(problem);
  std::set<unsigned long long> counts;
  for (const int i : {0, 2, 3, 4, 5, 7}) {
    const auto runs = cudnnStandinRuns(name_of(runs_as[i]));
    const auto before = cudnnStandinMultiplies();
    ASSERT_EQ(forward(problem, i), CUDNN_STATUS_SUCCESS) << i;
    EXPECT_EQ(cudnnStandinRuns(name_of(runs_as[i])), runs + 1);
    EXPECT_TRUE(counts.insert(cudnnStandinMultiplies() - before).second) << i;
  }
  const auto products = 1ull * 7 * 6 * 9 * 40 * 37;
  EXPECT_EQ(counts.count(products), 1u) << "im2col_gemm multiplies exactly K*C*R*S*P*Q times";
}

TEST_F(StandinLegacy, RefusesWhatCudnnRefuses) {
  std::size_t size = 0;
  describe(make_problem({1, 8, 12, 12, 8, 5, 5, 2}));
  EXPECT_EQ(workspace_size(7, size), CUDNN_STATUS_NOT_SUPPORTED) << "Winograd of 5x5";
  EXPECT_EQ(workspace_size(4, size), CUDNN_STATUS_SUCCESS);
  describe(make_problem({1, 8, 12, 12, 8, 3, 3, 1, 2}));
  for (const int i : {4, 5, 6, 7})
    EXPECT_EQ(workspace_size(i, size), CUDNN_STATUS_NOT_SUPPORTED) << "stride 2: " << i;
  describe(make_problem({1, 8, 12, 12, 8, 3, 3, 1}, CUDNN_DATA_FLOAT, Layout::Nhwc));
  EXPECT_EQ(workspace_size(5, size), CUDNN_STATUS_NOT_SUPPORTED) << "FFT in NHWC";
  EXPECT_NE(workspace_size(8, size), CUDNN_STATUS_SUCCESS);
}

TEST_F(StandinLegacy, AlphaBetaAndASmallWorkspace) {
  Problem problem = make_problem({2, 16, 14, 14, 32, 3, 3, 1});
  describe(problem);
  const auto before = unpack(problem.y, problem.y_memory);
  std::vector<double> expected = problem.reference;
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = -2 * expected[i] + 0.25 * before[i];
  ASSERT_EQ(forward(problem, 2, -2, 0.25), CUDNN_STATUS_SUCCESS);
  expect_close(problem, Algorithm::Im2colGemm, expected);
  const float one = 1, zero = 0;
  std::byte little[16];
  EXPECT_NE(
      cudnnConvolutionForward(handle_, &one, x_, problem.x_memory.data(), w_, problem.w_memory.data(), conv_,
                              algorithm_number(2), little, sizeof little, &zero, y_, problem.y_memory.data()),
      CUDNN_STATUS_SUCCESS);
}

TEST_F(StandinLegacy, GetAndFind) {
  Problem problem = make_problem({2, 16, 14, 14, 32, 3, 3, 1});
  describe(problem);
  int count = 0, maximum = 0;
  ASSERT_EQ(cudnnGetConvolutionForwardAlgorithmMaxCount(handle_, &maximum), CUDNN_STATUS_SUCCESS);
  std::vector<cudnnConvolutionFwdAlgoPerf_t> list(static_cast<std::size_t>(maximum));
  ASSERT_EQ(cudnnGetConvolutionForwardAlgorithm_v7(handle_, x_, w_, conv_, y_, maximum, &count, list.data()),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(count, 8);
  EXPECT_EQ(list[0].algo, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
  EXPECT_EQ(list[7].algo, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD);
  EXPECT_EQ(list[7].status, CUDNN_STATUS_NOT_SUPPORTED);

  std::vector<std::byte> workspace(64 << 20);
  ASSERT_EQ(cudnnFindConvolutionForwardAlgorithmEx(
                handle_, x_, problem.x_memory.data(), w_, problem.w_memory.data(), conv_, y_,
                problem.y_memory.data(), maximum, &count, list.data(), workspace.data(), workspace.size()),
            CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(count, 8);
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(list[i].status, CUDNN_STATUS_SUCCESS) << list[i].algo;
    EXPECT_GT(list[i].time, i > 0 ? list[i - 1].time * 0.999f : 0);
  }
  expect_close(problem, Algorithm::WinogradNonfused, problem.reference);  // it wrote the output
  ASSERT_EQ(cudnnFindConvolutionForwardAlgorithm(handle_, x_, w_, conv_, y_, 2, &count, list.data()),
            CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(count, 2);

  // Half runs number 1 on tensor cores, so that it is listed without them too.
  describe(make_problem({2, 16, 14, 14, 32, 3, 3, 1}, CUDNN_DATA_HALF));
  cudnnGetConvolutionForwardAlgorithm_v7(handle_, x_, w_, conv_, y_, maximum, &count, list.data());
  ASSERT_EQ(count, 9);
  EXPECT_EQ(list[0].mathType, CUDNN_TENSOR_OP_MATH);
}

TEST_F(StandinLegacy, BiasActivationAndAddTensor) {
  Problem problem = make_problem({2, 8, 10, 10, 6, 3, 3, 1});
  describe(problem);
  const Tensor bias = make_tensor('b', CUDNN_DATA_FLOAT, {1, 6, 1, 1}, Layout::Nchw);
  describe(bias_, bias);
  auto bias_memory = random_memory(bias, 5), z_memory = random_memory(problem.y, 6);
  const auto bias_values = unpack(bias, bias_memory), z_values = unpack(problem.y, z_memory);
  const float one = 1, half = 0.5f;
  for (const bool relu : {true, false}) {
    cudnnSetActivationDescriptor(activation_, relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY,
                                 CUDNN_NOT_PROPAGATE_NAN, 0);
    std::size_t size = 0;
    ASSERT_EQ(workspace_size(1, size), CUDNN_STATUS_SUCCESS);
    std::vector<std::byte> workspace(size + 1);
    const auto call = [&](int algorithm) {
      return cudnnConvolutionBiasActivationForward(
          handle_, &one, x_, problem.x_memory.data(), w_, problem.w_memory.data(), conv_,
          algorithm_number(algorithm), workspace.data(), size, &half, y_, z_memory.data(), bias_,
          bias_memory.data(), activation_, y_, problem.y_memory.data());
    };
    EXPECT_EQ(call(0), relu ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED);
    ASSERT_EQ(call(1), CUDNN_STATUS_SUCCESS);
    std::vector<double> expected;
    for (std::size_t i = 0; i < problem.reference.size(); ++i) {
      const double value = problem.reference[i] + 0.5 * z_values[i] + bias_values[i / 100 % 6];
      expected.push_back(relu ? std::max(0.0, value) : value);
    }
    expect_close(problem, Algorithm::ImplicitGemm, expected);
  }
  auto before = unpack(problem.y, problem.y_memory);
  ASSERT_EQ(cudnnAddTensor(handle_, &half, bias_, bias_memory.data(), &one, y_, problem.y_memory.data()),
            CUDNN_STATUS_SUCCESS);
  for (std::size_t i = 0; i < before.size(); ++i) before[i] += 0.5 * bias_values[i / 100 % 6];
  expect_close(problem, Algorithm::Direct, before);
}

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
