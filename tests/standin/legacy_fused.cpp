// The legacy API's fused convolution, and cudnnAddTensor.
#include <limits>

#include "tests/standin/faults.hpp"
#include "tests/standin/handle.hpp"
#include "tests/standin/legacy.hpp"
#include "tests/standin/real.hpp"

namespace standin {
namespace {

constexpr std::int64_t y_id = 2, z_id = 3, bias_id = 4, product_id = 5, sum_id = 6, biased_id = 7;

Tensor virtual_result(const LegacyProblem& problem, std::int64_t id) {
  Tensor tensor = problem.y;
  tensor.uid = id;
  tensor.type = problem.in_double() ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  tensor.is_virtual = true;
  return tensor;
}

// y = activation(alpha1 * conv + alpha2 * z + bias)
Graph fused_graph(const LegacyProblem& problem, const Tensor& z, const Tensor& bias, double alpha1,
                  double alpha2, bool relu) {
  Graph graph = plain_graph(problem, alpha1, 0);
  for (const Tensor& tensor : {z, bias, virtual_result(problem, product_id), virtual_result(problem, sum_id),
                               virtual_result(problem, biased_id)}) {
    graph.tensors.push_back(tensor);  // at the index that is its id
  }
  graph.nodes[0].y = product_id;
  Node add_z, add_bias, activation;
  add_z.kind = add_bias.kind = Node::Kind::Add;
  add_z.x = product_id, add_z.b = z_id, add_z.y = sum_id;
  add_z.beta = alpha2;
  add_bias.x = sum_id, add_bias.b = bias_id, add_bias.y = biased_id;
  add_bias.beta = 1;
  activation.kind = relu ? Node::Kind::Relu : Node::Kind::Identity;
  activation.x = biased_id, activation.y = y_id;
  activation.upper = std::numeric_limits<double>::infinity();
  graph.nodes.insert(graph.nodes.end(), {add_z, add_bias, activation});
  return graph;
}

}  // namespace
}  // namespace standin

using namespace standin;

STANDIN_EXPORT cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha1, const cudnnTensorDescriptor_t x_descriptor, const void* x,
    const cudnnFilterDescriptor_t w_descriptor, const void* w, const cudnnConvolutionDescriptor_t conv,
    cudnnConvolutionFwdAlgo_t algorithm, void* workspace, size_t workspace_size, const void* alpha2,
    const cudnnTensorDescriptor_t z_descriptor, const void* z, const cudnnTensorDescriptor_t bias_descriptor,
    const void* bias, const cudnnActivationDescriptor_t activation,
    const cudnnTensorDescriptor_t y_descriptor, void* y) {
  if (!is_handle(handle) || alpha1 == nullptr || alpha2 == nullptr) return CUDNN_STATUS_BAD_PARAM;
  LegacyProblem problem;
  Tensor z_tensor, bias_tensor;
  cudnnStatus_t status =
      read_problem(Operation::Forward, x_descriptor, w_descriptor, conv, y_descriptor, problem);
  if (status == CUDNN_STATUS_SUCCESS) status = read_tensor(z_descriptor, z_tensor);
  if (status == CUDNN_STATUS_SUCCESS) status = read_tensor(bias_descriptor, bias_tensor);
  cudnnActivationMode_t mode{};
  cudnnNanPropagation_t nan{};
  double ceiling = 0;
  if (status == CUDNN_STATUS_SUCCESS)
    status = real::cudnnGetActivationDescriptor(activation, &mode, &nan, &ceiling);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  z_tensor.uid = z_id, bias_tensor.uid = bias_id;
  const bool relu = mode == CUDNN_ACTIVATION_RELU;
  if (!relu && mode != CUDNN_ACTIVATION_IDENTITY)
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "RELU or IDENTITY only");
  if (!relu && algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "IDENTITY needs IMPLICIT_PRECOMP_GEMM");  // as cuDNN documents
  }
  const bool wide = problem.x.type == CUDNN_DATA_DOUBLE;
  const Graph graph =
      fused_graph(problem, z_tensor, bias_tensor, scalar(alpha1, wide), scalar(alpha2, wide), relu);
  return run(problem, {algorithm, workspace, workspace_size}, graph,
             {const_cast<void*>(x), const_cast<void*>(w), y, const_cast<void*>(z), const_cast<void*>(bias)});
}

// c = alpha * a + beta * c, with dimensions of 1 in a repeated.
STANDIN_EXPORT cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* alpha,
                                            const cudnnTensorDescriptor_t a_descriptor, const void* a,
                                            const void* beta, const cudnnTensorDescriptor_t c_descriptor,
                                            void* c) {
  if (!is_handle(handle) || alpha == nullptr || beta == nullptr) return CUDNN_STATUS_BAD_PARAM;
  Tensor from, to;
  cudnnStatus_t status = read_tensor(a_descriptor, from);
  if (status == CUDNN_STATUS_SUCCESS) status = read_tensor(c_descriptor, to);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  const bool wide = to.type == CUDNN_DATA_DOUBLE;
  Tensor before = to;
  from.uid = 0, before.uid = 1, to.uid = 2;
  Node node;
  node.kind = Node::Kind::Add;
  node.x = 0, node.b = 1, node.y = 2;
  node.alpha = scalar(alpha, wide), node.beta = scalar(beta, wide);
  const auto memory = [&](std::int64_t id) { return id == 0 ? const_cast<void*>(a) : c; };
  return evaluate({{from, before, to}, {node}, wide}, Algorithm::Direct, memory, {});
}
