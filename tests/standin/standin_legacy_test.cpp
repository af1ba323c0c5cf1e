// The stand-in's legacy API, as an ordinary program uses it: the same for each operation.
// Fails when an algorithm computes a wrong convolution, when two algorithms turn out to be the same one,
// or when a shape that an algorithm can't do is accepted.
#include <set>

#include "tests/standin/legacy_calls.hpp"
#include "tests/standin/standin.h"

namespace standin {
namespace {

// By operation and algorithm; those without an engine run nothing.
const std::vector<Algorithm> runs_as[operation_count] = {
    {Algorithm::ImplicitGemm, Algorithm::ImplicitGemm, Algorithm::Im2colGemm, Algorithm::Direct,
     Algorithm::Fft, Algorithm::FftTiling, Algorithm::Winograd, Algorithm::WinogradNonfused},
    {Algorithm::Scatter, Algorithm::ImplicitGemm, Algorithm::Fft, Algorithm::FftTiling, Algorithm::Winograd,
     Algorithm::WinogradNonfused},
    {Algorithm::Scatter, Algorithm::ImplicitGemm, Algorithm::Fft, Algorithm::Scatter, Algorithm::Winograd,
     Algorithm::WinogradNonfused, Algorithm::FftTiling}};
const std::vector<Algorithm>& algorithms(Operation operation) {
  return runs_as[static_cast<std::size_t>(operation)];
}

class StandinLegacy : public LegacyCalls, public ::testing::WithParamInterface<Operation> {};

INSTANTIATE_TEST_SUITE_P(Operations, StandinLegacy,
                         ::testing::Values(Operation::Forward, Operation::BackwardData,
                                           Operation::BackwardFilter),
                         [](const auto& parameter) { return std::string(name_of(parameter.param)); });

TEST_P(StandinLegacy, EveryAlgorithmAgreesWithTheDefinition) {
  const Shape shapes[] = {{2, 16, 14, 14, 32, 3, 3, 1},     {1, 8, 9, 11, 5, 3, 3, 0, 2},
                          {1, 8, 12, 12, 8, 5, 5, 2},       {2, 8, 10, 10, 12, 3, 3, 1, 1, 1, 4},
                          {1, 6, 12, 10, 8, 3, 3, 2, 1, 2}, {1, 4, 8, 7, 8, 3, 3, 1, 1, 1, 1, 6, 3}};
  const auto& known = algorithms(GetParam());
  std::set<int> ran;
  for (Shape shape : shapes) {
    shape.operation = GetParam();
    for (const cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_DOUBLE}) {
      for (const Layout layout : {Layout::Nchw, Layout::Nhwc}) {
        for (int i = 0; i < static_cast<int>(known.size()); ++i) {
          Problem problem = make_problem(shape, type, layout);
          describe(problem);
          SCOPED_TRACE(::testing::Message() << "algorithm " << i << " type " << type << " r " << shape.r);
          const cudnnStatus_t status = run(problem, i);
          if (status / 1000 == 3) continue;
          ASSERT_EQ(status, CUDNN_STATUS_SUCCESS);
          expect_close(problem, known[static_cast<std::size_t>(i)], problem.reference);
          ran.insert(i);
        }
      }
    }
  }
  const std::set<int> expected[operation_count] = {{0, 1, 2, 3, 4, 5, 7}, {0, 1, 2, 3, 5}, {0, 1, 2, 3, 5}};
  EXPECT_EQ(ran, expected[static_cast<std::size_t>(GetParam())])
      << "WINOGRAD doesn't exist on sm_90, nor backward_filter's 4 and 6 at all";
}

TEST_P(StandinLegacy, AlgorithmsMultiplyDifferently) {
  // padding, and outputs that don't fill the tiles: nothing coincides by chance
  Shape shape{1, 6, 40, 37, 7, 3, 3, 1};
  shape.operation = GetParam();
  Problem problem = make_problem(shape);
  describe(problem);
  const std::vector<int> distinct[operation_count] = {{0, 2, 3, 4, 5, 7}, {0, 1, 2, 3, 5}, {0, 1, 2, 5}};
  std::set<unsigned long long> counts;
  for (const int i : distinct[static_cast<std::size_t>(GetParam())]) {
    const std::string name =
        std::string(name_of(GetParam())) + "/" + name_of(algorithms(GetParam())[static_cast<std::size_t>(i)]);
    const auto runs = cudnnStandinRuns(name.c_str());
    const auto before = cudnnStandinMultiplies();
    ASSERT_EQ(run(problem, i), CUDNN_STATUS_SUCCESS) << i;
    EXPECT_EQ(cudnnStandinRuns(name.c_str()), runs + 1);
    EXPECT_TRUE(counts.insert(cudnnStandinMultiplies() - before).second) << i;
  }
  const auto products = 1ull * 7 * 6 * 9 * 40 * 37;
  EXPECT_EQ(counts.count(products), GetParam() == Operation::BackwardData ? 0u : 1u)
      << "a plain matrix product multiplies exactly K*C*R*S*P*Q times";
}

TEST_P(StandinLegacy, RefusesWhatCudnnRefuses) {
  const auto& known = algorithms(GetParam());
  const auto status = [&](Algorithm algorithm) {
    const auto found = std::find(known.begin(), known.end(), algorithm);
    std::size_t size = 0;
    return workspace_size(GetParam(), static_cast<int>(found - known.begin()), size);
  };
  describe(make_problem({1, 8, 12, 12, 8, 5, 5, 2}));
  EXPECT_EQ(status(Algorithm::WinogradNonfused), CUDNN_STATUS_NOT_SUPPORTED) << "of 5x5";
  EXPECT_EQ(status(Algorithm::Fft), CUDNN_STATUS_SUCCESS);
  describe(make_problem({1, 8, 12, 12, 8, 3, 3, 1, 2}));
  for (const Algorithm algorithm :
       {Algorithm::Fft, Algorithm::FftTiling, Algorithm::Winograd, Algorithm::WinogradNonfused})
    EXPECT_EQ(status(algorithm), CUDNN_STATUS_NOT_SUPPORTED) << "stride 2: " << name_of(algorithm);
  describe(make_problem({1, 8, 12, 12, 8, 3, 3, 1}, CUDNN_DATA_FLOAT, Layout::Nhwc));
  EXPECT_EQ(status(Algorithm::Fft), CUDNN_STATUS_NOT_SUPPORTED) << "FFT in NHWC";
  std::size_t size = 0;
  EXPECT_EQ(workspace_size(GetParam(), static_cast<int>(known.size()), size), CUDNN_STATUS_BAD_PARAM);
}

TEST_P(StandinLegacy, AlphaBetaAndASmallWorkspace) {
  Shape shape{2, 16, 14, 14, 32, 3, 3, 1};
  shape.operation = GetParam();
  Problem problem = make_problem(shape);
  describe(problem);
  const auto before = unpack(problem.result(), problem.result_memory());
  std::vector<double> expected = problem.reference;
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = -2 * expected[i] + 0.25 * before[i];
  const int algorithm = 2;
  ASSERT_EQ(run(problem, algorithm, -2, 0.25), CUDNN_STATUS_SUCCESS);
  expect_close(problem, algorithms(GetParam())[algorithm], expected);
  EXPECT_EQ(run(problem, algorithm, 1, 0, std::vector<std::byte>(16)), CUDNN_STATUS_BAD_PARAM);
}

TEST_P(StandinLegacy, GetAndFind) {
  Shape shape{2, 16, 14, 14, 32, 3, 3, 1};
  shape.operation = GetParam();
  Problem problem = make_problem(shape);
  describe(problem);
  int maximum = 0;
  const auto max_count = GetParam() == Operation::Forward ? cudnnGetConvolutionForwardAlgorithmMaxCount
                         : GetParam() == Operation::BackwardData
                             ? cudnnGetConvolutionBackwardDataAlgorithmMaxCount
                             : cudnnGetConvolutionBackwardFilterAlgorithmMaxCount;
  ASSERT_EQ(max_count(handle_, &maximum), CUDNN_STATUS_SUCCESS);
  const auto& known = algorithms(GetParam());
  ASSERT_EQ(maximum, static_cast<int>(known.size()) + 2);
  const auto supported = [&](const std::vector<Listed>& list) {
    std::set<int> numbers;
    for (const Listed& row : list)
      if (row.status == CUDNN_STATUS_SUCCESS) numbers.insert(row.algo);
    return numbers;
  };
  const std::set<int> expected[operation_count] = {{0, 1, 2, 3, 4, 5, 7}, {0, 1, 2, 3, 5}, {0, 1, 2, 3, 5}};
  const std::set<int>& numbers = expected[static_cast<std::size_t>(GetParam())];
  auto list = get(GetParam(), maximum);
  ASSERT_GE(list.size(), known.size());
  EXPECT_EQ(supported(list), numbers);
  EXPECT_EQ(list.back().status, CUDNN_STATUS_NOT_SUPPORTED) << "what can't run comes last";
  for (const Listed& row : list) {
    if (row.status != CUDNN_STATUS_SUCCESS) continue;
    const bool scatters = known[static_cast<std::size_t>(row.algo)] == Algorithm::Scatter;
    EXPECT_EQ(row.determinism, scatters ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC) << row.algo;
  }

  list = find(problem, maximum, std::vector<std::byte>(64 << 20));
  EXPECT_EQ(supported(list), numbers);
  for (std::size_t i = 0; i < list.size() && list[i].status == CUDNN_STATUS_SUCCESS; ++i)
    EXPECT_GT(list[i].time, i > 0 ? list[i - 1].time * 0.999f : 0);
  expect_close(problem, Algorithm::WinogradNonfused, problem.reference);  // it wrote the result
  EXPECT_EQ(find(GetParam(), 2).size(), 2u);

  // Half runs number 1 on tensor cores, so that it is listed without them too.
  describe(make_problem(shape, CUDNN_DATA_HALF));
  list = get(GetParam(), maximum);
  std::set<int> maths;
  for (const Listed& row : list)
    if (row.algo == 1) maths.insert(row.math_type);
  EXPECT_EQ(maths, (std::set<int>{CUDNN_TENSOR_OP_MATH, CUDNN_FMA_MATH}));
}

using StandinLegacyFused = LegacyCalls;

TEST_F(StandinLegacyFused, BiasActivationAndAddTensor) {
  cudnnTensorDescriptor_t bias_descriptor = nullptr;
  cudnnActivationDescriptor_t activation = nullptr;
  cudnnCreateTensorDescriptor(&bias_descriptor);
  cudnnCreateActivationDescriptor(&activation);
  Problem problem = make_problem({2, 8, 10, 10, 6, 3, 3, 1});
  describe(problem);
  const Tensor bias = make_tensor('b', CUDNN_DATA_FLOAT, {1, 6, 1, 1}, Layout::Nchw);
  describe(bias_descriptor, bias);
  auto bias_memory = random_memory(bias, 5), z_memory = random_memory(problem.y, 6);
  const auto bias_values = unpack(bias, bias_memory), z_values = unpack(problem.y, z_memory);
  const float one = 1, half = 0.5f;
  for (const bool relu : {true, false}) {
    cudnnSetActivationDescriptor(activation, relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY,
                                 CUDNN_NOT_PROPAGATE_NAN, 0);
    std::size_t size = 0;
    ASSERT_EQ(workspace_size(Operation::Forward, 1, size), CUDNN_STATUS_SUCCESS);
    std::vector<std::byte> workspace(size + 1);
    const auto call = [&](int algorithm) {
      return cudnnConvolutionBiasActivationForward(
          handle_, &one, x_, problem.x_memory.data(), w_, problem.w_memory.data(), conv_,
          static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), workspace.data(), size, &half, y_,
          z_memory.data(), bias_descriptor, bias_memory.data(), activation, y_, problem.y_memory.data());
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
  ASSERT_EQ(
      cudnnAddTensor(handle_, &half, bias_descriptor, bias_memory.data(), &one, y_, problem.y_memory.data()),
      CUDNN_STATUS_SUCCESS);
  for (std::size_t i = 0; i < before.size(); ++i) before[i] += 0.5 * bias_values[i / 100 % 6];
  expect_close(problem, Algorithm::Direct, before);
  cudnnDestroyTensorDescriptor(bias_descriptor);
  cudnnDestroyActivationDescriptor(activation);
}

}  // namespace
}  // namespace standin
