// The stand-in's graph API, as an ordinary program uses it: linked, without a preload.
// Fails when an engine that runs on the stand-in computes a wrong convolution, when the real library's
// refusals don't reach the caller, or when the stand-in accepts a call that the real one would not.
#include <cstdlib>
#include <fstream>

#include "tests/standin/standin.h"
#include "tests/standin/test_graph.hpp"

// Under the address sanitizer: the real libraries keep what they allocate while there is no device, some of
// it from modules that they unload, which no suppression can name.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "detect_leaks=0";
}

namespace standin {
namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

class StandinGraph : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS); }
  void TearDown() override { cudnnDestroy(handle_); }

  cudnnHandle_t handle_ = nullptr;
};

const Shape shapes[] = {
    {2, 16, 14, 14, 32, 3, 3, 1},
    {1, 8, 9, 11, 5, 3, 3, 0, 2},
    {2, 6, 12, 10, 8, 3, 3, 2, 1, 2},
    {2, 8, 10, 10, 12, 5, 3, 1, 1, 1, 4},
    {1, 8, 8, 8, 8, 3, 3, 1, 1, 1, 8},
    {3, 4, 7, 7, 9, 1, 1},
    {1, 3, 20, 17, 7, 7, 7, 3, 2},
    {1, 16, 6, 6, 16, 5, 5, 4},
    {2, 4, 7, 6, 8, 3, 3, 1, 1, 1, 1, 5, 3},
};

// Of each operation, some that the real library lets finalize without a device.
const std::vector<int> engines[operation_count] = {
    {0, 1, 2, 22, 28, 38, 70}, {0, 1, 2, 22, 25, 28, 74}, {0, 1, 9, 20, 40, 67}};

class StandinGraphOperation : public StandinGraph, public ::testing::WithParamInterface<Operation> {
 protected:
  static Problem problem_of(Shape shape, cudnnDataType_t type = CUDNN_DATA_FLOAT,
                            Layout layout = Layout::Nchw) {
    shape.operation = GetParam();
    return make_problem(shape, type, layout);
  }
};
INSTANTIATE_TEST_SUITE_P(Operations, StandinGraphOperation,
                         ::testing::Values(Operation::Forward, Operation::BackwardData,
                                           Operation::BackwardFilter),
                         [](const auto& parameter) { return std::string(name_of(parameter.param)); });

// Every engine that has a plan here, every type and layout.
TEST_P(StandinGraphOperation, EveryEngineAgreesWithTheDefinition) {
  int executed = 0;
  for (const Shape& shape : shapes) {
    for (const cudnnDataType_t type :
         {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16, CUDNN_DATA_DOUBLE}) {
      for (const Layout layout : {Layout::Nchw, Layout::Nhwc, Layout::Strided}) {
        Problem problem = problem_of(shape, type, layout);
        GraphBuilder builder(handle_);
        auto* graph = builder.graph({builder.convolution(problem)});
        for (const int engine : engines[static_cast<std::size_t>(GetParam())]) {
          auto* config = builder.config(graph, engine);
          auto* plan = config != nullptr ? builder.plan(config) : nullptr;
          if (plan == nullptr) continue;
          SCOPED_TRACE(::testing::Message() << "engine " << engine << " type " << type << " c " << shape.c
                                            << " r " << shape.r << " layout " << static_cast<int>(layout));
          ASSERT_EQ(builder.execute(plan, problem), CUDNN_STATUS_SUCCESS);
          expect_close(problem, algorithm_of_engine(pattern_of(GetParam()), engine), problem.reference);
          ++executed;
        }
      }
    }
  }
  EXPECT_GT(executed, 200);
}

TEST_P(StandinGraphOperation, HeuristicsFirstPickRuns) {
  Problem problem = problem_of(shapes[0]);
  GraphBuilder builder(handle_);
  const auto configs = builder.heuristics(builder.graph({builder.convolution(problem)}));
  ASSERT_GT(configs.size(), 10u);
  auto* plan = builder.plan(configs[0]);
  ASSERT_NE(plan, nullptr);
  const auto before = cudnnStandinRuns(nullptr);
  ASSERT_EQ(builder.execute(plan, problem), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnStandinRuns(nullptr), before + 1);
  expect_close(problem, Algorithm::ImplicitGemm, problem.reference);
}

TEST_P(StandinGraphOperation, AlphaAndBeta) {
  Problem problem = problem_of(shapes[0]);
  const auto before = unpack(problem.result(), problem.result_memory());
  std::vector<double> expected = problem.reference;
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = 0.5 * expected[i] + 2 * before[i];
  GraphBuilder builder(handle_);
  auto* graph = builder.graph({builder.convolution(problem, 0.5, 2)});
  auto* plan = builder.plan(builder.config(graph, 0));
  ASSERT_NE(plan, nullptr);
  ASSERT_EQ(builder.execute(plan, problem), CUDNN_STATUS_SUCCESS);
  expect_close(problem, Algorithm::Direct, expected);
}

TEST_F(StandinGraph, TurnedFilter) {
  Problem problem = make_problem(shapes[3], CUDNN_DATA_FLOAT, Layout::Nchw, true);
  GraphBuilder builder(handle_);
  auto* graph = builder.graph({builder.convolution(problem)});
  auto* config = builder.config(graph, 28);
  if (config == nullptr) GTEST_SKIP() << "engine 28 refuses CUDNN_CONVOLUTION";
  ASSERT_EQ(builder.execute(builder.plan(config), problem), CUDNN_STATUS_SUCCESS);
  expect_close(problem, Algorithm::ImplicitGemm, problem.reference);
}

// conv, add, bias, relu: as torch.cudnn_convolution_add_relu builds it
TEST_F(StandinGraph, FusedAddBiasRelu) {
  Problem problem = make_problem({2, 16, 14, 14, 32, 3, 3, 1}, CUDNN_DATA_HALF, Layout::Nhwc);
  const auto virtual_like_y = [&](std::int64_t uid) {
    Tensor t = make_tensor(uid, CUDNN_DATA_FLOAT, {2, 32, 14, 14}, Layout::Nhwc);
    t.is_virtual = true;
    return t;
  };
  const Tensor product = virtual_like_y(100), sum = virtual_like_y(101), biased = virtual_like_y(102);
  const Tensor z = make_tensor('z', CUDNN_DATA_HALF, {2, 32, 14, 14}, Layout::Nhwc);
  const Tensor bias = make_tensor('b', CUDNN_DATA_HALF, {1, 32, 1, 1}, Layout::Nhwc);
  auto z_memory = random_memory(z, 4), bias_memory = random_memory(bias, 5);
  GraphBuilder builder(handle_);
  auto* graph = builder.graph({builder.convolution(problem, product, 1, 0),
                               builder.pointwise(CUDNN_POINTWISE_ADD, product, &z, sum, 1, 0.5f),
                               builder.pointwise(CUDNN_POINTWISE_ADD, sum, &bias, biased),
                               builder.pointwise(CUDNN_POINTWISE_RELU_FWD, biased, nullptr, problem.y)});
  auto* plan = builder.plan(builder.heuristics(graph).at(0));
  ASSERT_NE(plan, nullptr);
  ASSERT_EQ(builder.execute(plan, {'x', 'w', 'y', 'z', 'b'},
                            {problem.x_memory.data(), problem.w_memory.data(), problem.y_memory.data(),
                             z_memory.data(), bias_memory.data()}),
            CUDNN_STATUS_SUCCESS);
  const auto z_values = unpack(z, z_memory), bias_values = unpack(bias, bias_memory);
  std::vector<double> expected;
  for (std::size_t i = 0; i < problem.reference.size(); ++i) {
    expected.push_back(
        std::max(0.0, problem.reference[i] + 0.5 * z_values[i] + bias_values[i / (14 * 14) % 32]));
  }
  expect_close(problem, Algorithm::ImplicitGemm, expected);
}

TEST_F(StandinGraph, RefusesWhatCudnnRefuses) {
  const Problem problem = make_problem(shapes[7]);  // 5x5
  GraphBuilder builder(handle_);
  auto* graph = builder.graph({builder.convolution(problem)});
  for (const int engine : {3, 4, 5, 6, 12, 71}) {  // need a device, cuBLAS, another generation or a compiler
    EXPECT_EQ(builder.config(graph, engine), nullptr) << engine;
  }
}

TEST_F(StandinGraph, ChecksItsArguments) {
  Problem problem = make_problem(shapes[0]);
  GraphBuilder builder(handle_);
  auto* graph = builder.graph({builder.convolution(problem)});
  auto* plan = builder.plan(builder.config(graph, 2));
  ASSERT_GT(GraphBuilder::workspace_size(plan), 0);
  const std::vector<void*> pointers{problem.x_memory.data(), problem.w_memory.data(),
                                    problem.y_memory.data()};
  EXPECT_NE(builder.execute(plan, {'x', 'w', 'y'}, pointers, nullptr), CUDNN_STATUS_SUCCESS)
      << "no workspace";
  EXPECT_NE(builder.execute(plan, {'x', 'w', 'q'}, pointers), CUDNN_STATUS_SUCCESS) << "no data for y";
  char message[256] = "";
  cudnnGetLastErrorString(message, sizeof message);
  EXPECT_NE(std::string(message).find("no data pointer for tensor 121"), std::string::npos) << message;
  EXPECT_NE(cudnnBackendExecute(nullptr, plan, plan), CUDNN_STATUS_SUCCESS);
  EXPECT_NE(cudnnBackendExecute(handle_, plan, plan), CUDNN_STATUS_SUCCESS);
}

TEST_P(StandinGraphOperation, PlanFromItsJson) {
  Problem problem = problem_of(shapes[0]);
  GraphBuilder builder(handle_);
  auto* graph = builder.graph({builder.convolution(problem)});
  auto* plan = builder.plan(builder.config(graph, 0));
  std::int64_t size = 0;
  cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, &size,
                           nullptr);
  std::vector<char> text(static_cast<std::size_t>(size));
  cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, size, &size,
                           text.data());
  auto* restored = builder.make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  GraphBuilder::set(restored, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, text.data(),
                    size);
  GraphBuilder::finalize(restored);
  ASSERT_EQ(builder.execute(restored, problem), CUDNN_STATUS_SUCCESS);
  expect_close(problem, Algorithm::Direct, problem.reference);
}

TEST_F(StandinGraph, FaultsAndTrace) {
  Problem problem = make_problem(shapes[0]);
  GraphBuilder builder(handle_);
  auto* graph = builder.graph({builder.convolution(problem)});
  auto* config = builder.config(graph, 28);
  const std::string path = ::testing::TempDir() + "standin_trace";
  std::remove(path.c_str());
  setenv("STANDIN_TRACE", path.c_str(), 1);
  setenv("STANDIN_FAIL_PLAN", "eng38,eng28", 1);
  EXPECT_EQ(builder.plan(config), nullptr);
  unsetenv("STANDIN_FAIL_PLAN");
  auto* plan = builder.plan(config);
  ASSERT_NE(plan, nullptr);
  setenv("STANDIN_FAIL_EXECUTE", "eng28", 1);
  EXPECT_EQ(builder.execute(plan, problem), CUDNN_STATUS_EXECUTION_FAILED);
  unsetenv("STANDIN_FAIL_EXECUTE");
  EXPECT_EQ(builder.execute(plan, problem), CUDNN_STATUS_SUCCESS);
  unsetenv("STANDIN_TRACE");
  EXPECT_EQ(lines_of(path), std::vector<std::string>{"graph eng28 implicit_gemm"});
}

// An engine's number means another engine in each operation.
TEST_F(StandinGraph, FaultsAndTraceOfOneOperation) {
  const std::string path = ::testing::TempDir() + "standin_trace_operations";
  std::remove(path.c_str());
  setenv("STANDIN_TRACE", path.c_str(), 1);
  for (const Operation operation : {Operation::Forward, Operation::BackwardData, Operation::BackwardFilter}) {
    SCOPED_TRACE(name_of(operation));
    Shape shape = shapes[0];
    shape.operation = operation;
    Problem problem = make_problem(shape);
    GraphBuilder builder(handle_);
    auto* config = builder.config(builder.graph({builder.convolution(problem)}), 1);
    const bool meant = operation == Operation::BackwardData;
    setenv("STANDIN_FAIL_PLAN", "eng38,backward_data/eng1", 1);
    EXPECT_EQ(builder.plan(config) == nullptr, meant);
    unsetenv("STANDIN_FAIL_PLAN");
    auto* plan = builder.plan(config);
    ASSERT_NE(plan, nullptr);
    setenv("STANDIN_FAIL_EXECUTE", "backward_data/eng1", 1);
    EXPECT_EQ(builder.execute(plan, problem), meant ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS);
    unsetenv("STANDIN_FAIL_EXECUTE");
    if (meant) {
      EXPECT_EQ(builder.execute(plan, problem), CUDNN_STATUS_SUCCESS);
    }
  }
  unsetenv("STANDIN_TRACE");
  EXPECT_EQ(lines_of(path),
            (std::vector<std::string>{"graph eng1 implicit_gemm", "graph/backward_data eng1 implicit_gemm",
                                      "graph/backward_filter eng1 implicit_gemm"}));
}

// With the properties of a GPU that has it (sm_80), Winograd's engine is offered, and runs.
TEST_F(StandinGraph, WinogradOnAnotherGeneration) {
  const char* device = std::getenv("STANDIN_DEVICE_JSON");
  if (device == nullptr || std::string(device).find("sm80") == std::string::npos) {
    GTEST_SKIP() << "needs STANDIN_DEVICE_JSON=.../sm80-deviceprop.json";
  }
  const std::pair<Operation, int> winograd[] = {{Operation::Forward, 12}, {Operation::BackwardData, 19}};
  for (const auto& [operation, engine] : winograd) {
    for (const cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF}) {
      Shape shape{2, 16, 15, 14, 32, 3, 3, 1};
      shape.operation = operation;
      Problem problem = make_problem(shape, type);
      GraphBuilder builder(handle_);
      auto* config = builder.config(builder.graph({builder.convolution(problem)}), engine);
      ASSERT_NE(config, nullptr);
      const auto before = cudnnStandinRuns("winograd");
      ASSERT_EQ(builder.execute(builder.plan(config), problem), CUDNN_STATUS_SUCCESS);
      EXPECT_EQ(cudnnStandinRuns("winograd"), before + 1);
      expect_close(problem, Algorithm::Winograd, problem.reference);
    }
  }
}

}  // namespace
}  // namespace standin
