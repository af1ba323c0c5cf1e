// The legacy API's algorithms. The real library answers its queries only with a device; the graph
// engines that stand for the algorithms answer them without.
#pragma once

#include <array>
#include <memory>

#include "tests/standin/graph.hpp"

namespace standin {

// A legacy call's problem, from its descriptors.
struct LegacyProblem {
  Tensor x, w, y;  // unique ids 0, 1, 2
  Convolution conv;
  cudnnDataType_t compute_type = CUDNN_DATA_FLOAT;
  cudnnMathType_t math_type = CUDNN_DEFAULT_MATH;

  std::string key() const;
  bool in_double() const { return compute_type == CUDNN_DATA_DOUBLE; }
};
cudnnStatus_t read_problem(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                           cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y, LegacyProblem&);
cudnnStatus_t read_tensor(cudnnTensorDescriptor_t, Tensor&);

inline constexpr int legacy_algorithm_count = CUDNN_CONVOLUTION_FWD_ALGO_COUNT;

// What one algorithm is for one problem.
struct LegacyAlgorithm {
  cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
  Algorithm runs = Algorithm::ImplicitGemm;
  std::size_t workspace = 0;
  cudnnMathType_t math_type = CUDNN_DEFAULT_MATH;
  int rank = 1000;  // in the heuristics' order
};
using LegacyAlgorithms = std::array<LegacyAlgorithm, legacy_algorithm_count>;

// Asked of the real library once per problem.
std::shared_ptr<const LegacyAlgorithms> legacy_algorithms(const LegacyProblem&);

}  // namespace standin
