// A problem as an operation graph of cuDNN's, from its text form alone.
#pragma once

#include <string>
#include <vector>

#include "shim/graph/backend.hpp"
#include "shim/model/problem.hpp"

namespace convpin::cli {

// The unique ids of the tensors in the graph.
inline constexpr std::int64_t kX = 'x', kW = 'w', kY = 'y', kFirstOperand = 'A', kFirstBetween = 1000;

struct OperationGraph {
  std::vector<graph::Descriptor> parts;          // tensors and operations, kept as long as the graph
  graph::Descriptor graph;
  std::vector<Tensor> operands;                  // second arguments of fused operations: ids kFirstOperand and on
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  std::string reason;                            // where it can't be built
};

// How many tensors a fused operation reads (cudnnPointwiseMode_t's documentation): 1 or 2; 0 for those not built here.
int arguments_of(std::int32_t mode);
// The second argument of the fused operation `at`. The text does not say its shape or type: what stands beside the values in
// the last `add` is a bias [1,K,1,1], any other a tensor like the result, and all have the result's type.
Tensor operand_of(const Problem&, std::size_t at);

// With a handle where the device has one. Fused operations of one or two arguments are built in their order; what is between
// them is virtual and has the type of the convolution's own output.
OperationGraph build_graph(const Library&, const Problem&, const graph::Target&);

}  // namespace convpin::cli
