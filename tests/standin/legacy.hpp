// The legacy API's algorithms. The real library answers its queries only with a device; the graph
// engines that stand for the algorithms answer them without.
#pragma once

#include <array>
#include <memory>

#include "tests/standin/graph.hpp"

namespace standin {

// A legacy call's problem, from its descriptors.
struct LegacyProblem {
  Operation operation = Operation::Forward;
  Tensor x, w, y;  // unique ids 0, 1, 2
  Spatial spatial;
  Convolution conv{};
  cudnnDataType_t compute_type = CUDNN_DATA_FLOAT;
  cudnnMathType_t math_type = CUDNN_DEFAULT_MATH;

  std::string key() const;
  bool in_double() const { return compute_type == CUDNN_DATA_DOUBLE; }
};
cudnnStatus_t read_problem(Operation, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                           cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y, LegacyProblem&);
cudnnStatus_t read_tensor(cudnnTensorDescriptor_t, Tensor&);

// What one algorithm is for one problem.
struct LegacyAlgorithm {
  cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
  Algorithm runs = Algorithm::ImplicitGemm;
  std::size_t workspace = 0;
  cudnnMathType_t math_type = CUDNN_DEFAULT_MATH;
  cudnnDeterminism_t determinism = CUDNN_DETERMINISTIC;
  int rank = 1000;  // in the heuristics' order
};
using LegacyAlgorithms = std::vector<LegacyAlgorithm>;  // by their number

// Asked of the real library once per problem.
std::shared_ptr<const LegacyAlgorithms> legacy_algorithms(const LegacyProblem&);

// An execution. Memory by the tensors' unique ids: x, w, y, and a fused graph's others.
struct LegacyRun {
  int algorithm;
  void* workspace;
  std::size_t workspace_size;
};
using LegacyMemory = std::array<void*, 5>;

// Checks what every legacy execution needs, and runs the graph.
cudnnStatus_t run(const LegacyProblem&, const LegacyRun&, const Graph&, const LegacyMemory&);
// The convolution alone.
Graph plain_graph(const LegacyProblem&, double alpha, double beta);
double scalar(const void* value, bool in_double);

// cudnnConvolutionFwdAlgoPerf_t and its like.
struct LegacyResult {
  int algorithm;
  cudnnStatus_t status;
  float time;  // in milliseconds; -1: not run
  std::size_t memory;
  cudnnDeterminism_t determinism;
  cudnnMathType_t math_type;
};
// All algorithms, the best first; the one without tensor cores too, where it differs.
std::vector<LegacyResult> list_algorithms(LegacyProblem);
// Runs every algorithm once, as the real one does, and sorts by the time.
std::vector<LegacyResult> find_algorithms(const LegacyProblem&, const LegacyMemory&,
                                          std::span<std::byte> workspace);
// The same with memory of its own.
std::vector<LegacyResult> find_algorithms(const LegacyProblem&);

}  // namespace standin
