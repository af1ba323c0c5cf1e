// Plans in CUDA graphs: cudnnBackendPopulateCudaGraph and UpdateCudaGraph on the driver table's graphs. Fails
// when a call runs the plan itself, when a launch does not, or when an update keeps the old pointers.
#include <cuda.h>

#include "tests/standin/standin.h"
#include "tests/standin/test_graph.hpp"

namespace standin {
namespace {

template <typename Function>
Function driver(const char* name) {
  return reinterpret_cast<Function>(const_cast<void*>(cudnnStandinDriver(name)));
}

struct StandinCudaGraph : ::testing::Test {
  void SetUp() override { ASSERT_EQ(cudnnCreate(&handle), CUDNN_STATUS_SUCCESS); }
  void TearDown() override { cudnnDestroy(handle); }

  CUresult launch(CUgraph graph) {
    CUgraphExec executable = nullptr;
    const CUresult made =
        driver<decltype(&cuGraphInstantiate)>("cuGraphInstantiateWithFlags")(&executable, graph, 0);
    if (made != CUDA_SUCCESS) return made;
    const CUresult result = driver<decltype(&cuGraphLaunch)>("cuGraphLaunch")(executable, nullptr);
    EXPECT_EQ(driver<decltype(&cuGraphExecDestroy)>("cuGraphExecDestroy")(executable), CUDA_SUCCESS);
    return result;
  }

  cudnnHandle_t handle = nullptr;
};

TEST_F(StandinCudaGraph, RunsAtItsLaunch) {
  for (const Operation operation : {Operation::Forward, Operation::BackwardData, Operation::BackwardFilter}) {
    SCOPED_TRACE(name_of(operation));
    Shape shape{2, 8, 9, 11, 5, 3, 3, 1};
    shape.operation = operation;
    Problem first = make_problem(shape), second = make_problem(shape);
    const auto before = second.result_memory();
    GraphBuilder builder(handle);
    auto* plan = builder.plan(builder.config(builder.graph({builder.convolution(first)}), 0));
    ASSERT_NE(plan, nullptr);
    CUgraph graph = nullptr;
    ASSERT_EQ(driver<decltype(&cuGraphCreate)>("cuGraphCreate")(&graph, 0), CUDA_SUCCESS);

    auto* pack = builder.pack(first);
    const auto runs = cudnnStandinRuns(nullptr);
    ASSERT_EQ(cudnnBackendPopulateCudaGraph(handle, plan, pack, graph), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(cudnnStandinRuns(nullptr), runs);
    EXPECT_EQ(launch(graph), CUDA_SUCCESS);
    EXPECT_EQ(cudnnStandinRuns(nullptr), runs + 1);
    expect_close(first, Algorithm::Direct, first.reference);
    EXPECT_EQ(second.result_memory(), before);

    ASSERT_EQ(cudnnBackendUpdateCudaGraph(handle, plan, builder.pack(second), graph), CUDNN_STATUS_SUCCESS);
    EXPECT_EQ(launch(graph), CUDA_SUCCESS);
    EXPECT_EQ(cudnnStandinRuns(nullptr), runs + 2);
    expect_close(second, Algorithm::Direct, second.reference);

    EXPECT_EQ(driver<decltype(&cuGraphDestroy)>("cuGraphDestroy")(graph), CUDA_SUCCESS);
    EXPECT_NE(launch(graph), CUDA_SUCCESS) << "destroyed";
  }
}

TEST_F(StandinCudaGraph, CapturesTheStreamOfAHandle) {
  Problem problem = make_problem({2, 8, 9, 11, 5, 3, 3, 1});
  GraphBuilder builder(handle);
  auto* plan = builder.plan(builder.config(builder.graph({builder.convolution(problem)}), 0));
  auto* pack = builder.pack(problem);
  const auto begin = driver<decltype(&cuStreamBeginCapture)>("cuStreamBeginCapture_v2");
  const auto end = driver<decltype(&cuStreamEndCapture)>("cuStreamEndCapture");
  CUgraph graph = nullptr;
  EXPECT_NE(end(nullptr, &graph), CUDA_SUCCESS) << "nothing was begun";
  ASSERT_EQ(begin(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_NE(begin(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS) << "begun already";
  const auto runs = cudnnStandinRuns(nullptr);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cudnnBackendExecute(handle, plan, pack), CUDNN_STATUS_SUCCESS);
  ::setenv("STANDIN_FAIL_CAPTURE", "eng0", 1);
  EXPECT_NE(cudnnBackendExecute(handle, plan, pack), CUDNN_STATUS_SUCCESS);
  ::unsetenv("STANDIN_FAIL_CAPTURE");
  ASSERT_EQ(end(nullptr, &graph), CUDA_SUCCESS);
  EXPECT_EQ(cudnnStandinRuns(nullptr), runs);
  EXPECT_EQ(launch(graph), CUDA_SUCCESS);
  EXPECT_EQ(cudnnStandinRuns(nullptr), runs + 3);
  expect_close(problem, Algorithm::Direct, problem.reference);
  EXPECT_EQ(cudnnBackendExecute(handle, plan, pack), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnStandinRuns(nullptr), runs + 4) << "at once again";
  driver<decltype(&cuGraphDestroy)>("cuGraphDestroy")(graph);
}

TEST_F(StandinCudaGraph, ChecksItsArguments) {
  Problem problem = make_problem({2, 8, 9, 11, 5, 3, 3, 1});
  GraphBuilder builder(handle);
  auto* plan = builder.plan(builder.config(builder.graph({builder.convolution(problem)}), 0));
  auto* pack = builder.pack(problem);
  int any = 0;
  auto* opaque = reinterpret_cast<cudaGraph_t>(&any);
  EXPECT_EQ(cudnnBackendPopulateCudaGraph(handle, plan, pack, opaque), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnBackendPopulateCudaGraph(handle, plan, pack, nullptr), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  EXPECT_EQ(cudnnBackendPopulateCudaGraph(handle, pack, plan, opaque), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  EXPECT_EQ(cudnnBackendUpdateCudaGraph(nullptr, plan, pack, opaque), CUDNN_STATUS_BAD_PARAM);
}

}  // namespace
}  // namespace standin
