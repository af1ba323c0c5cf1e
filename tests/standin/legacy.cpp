// The legacy API's forward convolution.
#include "tests/standin/legacy.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "tests/standin/faults.hpp"
#include "tests/standin/handle.hpp"
#include "tests/standin/real.hpp"

namespace standin {
namespace {

constexpr std::int64_t x_id = 0, w_id = 1, y_id = 2, z_id = 3, bias_id = 4, product_id = 5, sum_id = 6,
                       biased_id = 7;

double scalar(const void* value, bool in_double) {
  return in_double ? *static_cast<const double*>(value)
                   : static_cast<double>(*static_cast<const float*>(value));
}

struct Run {
  cudnnConvolutionFwdAlgo_t algorithm;
  void* workspace;
  std::size_t workspace_size;
};

// Checks what every legacy execution needs, and runs the graph.
cudnnStatus_t run(const LegacyProblem& problem, const Run& how, const Graph& graph,
                  const std::array<void*, 5>& memory) {
  if (how.algorithm < 0 || how.algorithm >= legacy_algorithm_count) return CUDNN_STATUS_BAD_PARAM;
  const LegacyAlgorithm& known = (*legacy_algorithms(problem))[how.algorithm];
  if (known.status != CUDNN_STATUS_SUCCESS) return known.status;
  if (known.workspace > how.workspace_size || (known.workspace > 0 && how.workspace == nullptr)) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "the workspace is too small");
  }
  const std::string number = std::to_string(how.algorithm);
  if (const cudnnStatus_t fault = injected_fault("algo" + number); fault != CUDNN_STATUS_SUCCESS)
    return fault;
  const auto find = [&](std::int64_t id) { return memory.at(static_cast<std::size_t>(id)); };
  const cudnnStatus_t status =
      evaluate(graph, known.runs, find, {static_cast<std::byte*>(how.workspace), known.workspace});
  if (status == CUDNN_STATUS_SUCCESS) trace("legacy", number, known.runs);
  return status;
}

Graph plain_graph(const LegacyProblem& problem, double alpha, double beta) {
  Node node;
  node.x = 0, node.b = 1, node.y = 2;
  node.conv = problem.conv;
  node.alpha = alpha;
  node.beta = beta;
  return {{problem.x, problem.w, problem.y}, {node}, problem.in_double()};
}

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

// All algorithms, the best first; algorithm 1 without tensor cores too, where it differs.
std::vector<cudnnConvolutionFwdAlgoPerf_t> list_algorithms(LegacyProblem problem) {
  const auto algorithms = legacy_algorithms(problem);
  std::vector<std::pair<int, cudnnConvolutionFwdAlgoPerf_t>> ranked;
  const auto add = [&](int number, const LegacyAlgorithm& algorithm) {
    cudnnConvolutionFwdAlgoPerf_t result{};
    result.algo = static_cast<cudnnConvolutionFwdAlgo_t>(number);
    result.status = algorithm.status;
    result.time = -1;
    result.memory = algorithm.workspace;
    result.determinism = CUDNN_DETERMINISTIC;
    result.mathType = algorithm.math_type;
    ranked.emplace_back(algorithm.status == CUDNN_STATUS_SUCCESS ? algorithm.rank : 2000, result);
  };
  for (int i = 0; i < legacy_algorithm_count; ++i) add(i, (*algorithms)[static_cast<std::size_t>(i)]);
  if ((*algorithms)[1].math_type == CUDNN_TENSOR_OP_MATH) {
    problem.math_type = CUDNN_FMA_MATH;
    const LegacyAlgorithm& plain = (*legacy_algorithms(problem))[1];
    if (plain.status == CUDNN_STATUS_SUCCESS) add(1, plain);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<cudnnConvolutionFwdAlgoPerf_t> results;
  for (const auto& entry : ranked) results.push_back(entry.second);
  return results;
}

cudnnStatus_t give(const std::vector<cudnnConvolutionFwdAlgoPerf_t>& results, int requested, int* returned,
                   cudnnConvolutionFwdAlgoPerf_t* to) {
  *returned = std::min(requested, static_cast<int>(results.size()));
  std::copy_n(results.begin(), *returned, to);
  return CUDNN_STATUS_SUCCESS;
}

// Runs every algorithm once, as the real one does, and sorts by the time.
cudnnStatus_t find(const LegacyProblem& problem, const std::array<void*, 5>& memory,
                   std::span<std::byte> workspace, int requested, int* returned,
                   cudnnConvolutionFwdAlgoPerf_t* to) {
  auto results = list_algorithms(problem);
  for (auto& result : results) {
    if (result.status != CUDNN_STATUS_SUCCESS) continue;
    if (result.memory > workspace.size()) {
      result.status = CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
      continue;
    }
    LegacyProblem with_math = problem;
    with_math.math_type = result.mathType == CUDNN_FMA_MATH ? CUDNN_FMA_MATH : problem.math_type;
    const auto start = std::chrono::steady_clock::now();
    result.status =
        run(with_math, {result.algo, workspace.data(), workspace.size()}, plain_graph(problem, 1, 0), memory);
    const std::chrono::duration<float, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    if (result.status == CUDNN_STATUS_SUCCESS) result.time = elapsed.count();
  }
  const auto order = [](const auto& r) { return r.status == CUDNN_STATUS_SUCCESS ? r.time : 1e30f; };
  std::stable_sort(results.begin(), results.end(),
                   [&](const auto& a, const auto& b) { return order(a) < order(b); });
  return give(results, requested, returned, to);
}

bool valid_query(cudnnHandle_t handle, int requested, const int* returned, const void* results) {
  return is_handle(handle) && requested >= 1 && returned != nullptr && results != nullptr;
}

}  // namespace

cudnnStatus_t read_tensor(cudnnTensorDescriptor_t descriptor, Tensor& tensor) {
  int count = 0;
  int dim[8] = {}, stride[8] = {};
  const cudnnStatus_t status =
      real::cudnnGetTensorNdDescriptor(descriptor, 8, &tensor.type, &count, dim, stride);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (count != 4) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "computes with tensors of four dimensions only");
  std::copy_n(dim, 4, tensor.dim.begin());
  std::copy_n(stride, 4, tensor.stride.begin());
  return status;
}

cudnnStatus_t read_problem(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                           cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y,
                           LegacyProblem& problem) {
  if (x == nullptr || w == nullptr || conv == nullptr || y == nullptr)
    return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  problem.x.uid = x_id, problem.w.uid = w_id, problem.y.uid = y_id;
  if (const cudnnStatus_t status = read_tensor(x, problem.x); status != CUDNN_STATUS_SUCCESS) return status;
  if (const cudnnStatus_t status = read_tensor(y, problem.y); status != CUDNN_STATUS_SUCCESS) return status;
  int count = 0, pad[4] = {}, stride[4] = {}, dilation[4] = {}, dim[8] = {}, groups = 1;
  cudnnTensorFormat_t format{};
  cudnnStatus_t status = real::cudnnGetFilterNdDescriptor(w, 8, &problem.w.type, &format, &count, dim);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (count != 4 || format == CUDNN_TENSOR_NCHW_VECT_C)
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "4-d filters only");
  std::copy_n(dim, 4, problem.w.dim.begin());
  const auto& d = problem.w.dim;
  problem.w.stride = format == CUDNN_TENSOR_NHWC
                         ? std::array{d[1] * d[2] * d[3], std::int64_t{1}, d[1] * d[3], d[1]}
                         : std::array{d[1] * d[2] * d[3], d[2] * d[3], d[3], std::int64_t{1}};
  cudnnConvolutionMode_t mode{};
  status = real::cudnnGetConvolutionNdDescriptor(conv, 2, &count, pad, stride, dilation, &mode,
                                                 &problem.compute_type);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  real::cudnnGetConvolutionGroupCount(conv, &groups);
  real::cudnnGetConvolutionMathType(conv, &problem.math_type);
  problem.conv = shape_of(problem.x, problem.w, problem.y);
  if (problem.conv.groups != groups)
    return refuse(CUDNN_STATUS_BAD_PARAM, "group count and channels don't agree");
  problem.conv.pad_h = pad[0], problem.conv.pad_w = pad[1];
  problem.conv.stride_h = stride[0], problem.conv.stride_w = stride[1];
  problem.conv.dilation_h = dilation[0], problem.conv.dilation_w = dilation[1];
  problem.conv.flipped = mode == CUDNN_CONVOLUTION;
  return status;
}

}  // namespace standin

using namespace standin;

STANDIN_EXPORT cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  if (!is_handle(handle) || count == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *count = legacy_algorithm_count + 2;  // the real library's answer
  return CUDNN_STATUS_SUCCESS;
}

STANDIN_EXPORT cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t y, const int requested,
    int* returned, cudnnConvolutionFwdAlgoPerf_t* results) {
  if (!valid_query(handle, requested, returned, results)) return CUDNN_STATUS_BAD_PARAM;
  LegacyProblem problem;
  if (const cudnnStatus_t status = read_problem(x, w, conv, y, problem); status != CUDNN_STATUS_SUCCESS)
    return status;
  return give(list_algorithms(problem), requested, returned, results);
}

STANDIN_EXPORT cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t y,
    cudnnConvolutionFwdAlgo_t algorithm, size_t* size) {
  if (!is_handle(handle) || size == nullptr || algorithm < 0 || algorithm >= legacy_algorithm_count) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  LegacyProblem problem;
  if (const cudnnStatus_t status = read_problem(x, w, conv, y, problem); status != CUDNN_STATUS_SUCCESS)
    return status;
  const LegacyAlgorithm& known = (*legacy_algorithms(problem))[algorithm];
  if (known.status == CUDNN_STATUS_SUCCESS) *size = known.workspace;
  return known.status;
}

STANDIN_EXPORT cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x_descriptor, const void* x,
    const cudnnFilterDescriptor_t w_descriptor, const void* w, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t y_descriptor, void* y, const int requested, int* returned,
    cudnnConvolutionFwdAlgoPerf_t* results, void* workspace, size_t workspace_size) {
  if (!valid_query(handle, requested, returned, results)) return CUDNN_STATUS_BAD_PARAM;
  LegacyProblem problem;
  const cudnnStatus_t status = read_problem(x_descriptor, w_descriptor, conv, y_descriptor, problem);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  const std::span<std::byte> memory(static_cast<std::byte*>(workspace),
                                    workspace != nullptr ? workspace_size : 0);
  return find(problem, {const_cast<void*>(x), const_cast<void*>(w), y}, memory, requested, returned, results);
}

STANDIN_EXPORT cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t y, const int requested,
    int* returned, cudnnConvolutionFwdAlgoPerf_t* results) {
  if (!valid_query(handle, requested, returned, results)) return CUDNN_STATUS_BAD_PARAM;
  LegacyProblem problem;
  if (const cudnnStatus_t status = read_problem(x, w, conv, y, problem); status != CUDNN_STATUS_SUCCESS)
    return status;
  const auto memory_of = [](const Tensor& tensor) {  // up to the last element that the strides reach
    std::int64_t last = 0;
    for (std::size_t i = 0; i < 4; ++i) last += (tensor.dim[i] - 1) * tensor.stride[i];
    return std::vector<std::byte>(static_cast<std::size_t>(last + 1) *
                                  std::max<std::size_t>(size_of(tensor.type), 1));
  };
  auto x_memory = memory_of(problem.x), w_memory = memory_of(problem.w), y_memory = memory_of(problem.y);
  std::size_t size = 0;
  for (const LegacyAlgorithm& algorithm : *legacy_algorithms(problem))
    size = std::max(size, algorithm.workspace);
  std::vector<std::byte> workspace(size);
  return find(problem, {x_memory.data(), w_memory.data(), y_memory.data()}, workspace, requested, returned,
              results);
}

STANDIN_EXPORT cudnnStatus_t cudnnConvolutionForward(
    cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t x_descriptor, const void* x,
    const cudnnFilterDescriptor_t w_descriptor, const void* w, const cudnnConvolutionDescriptor_t conv,
    cudnnConvolutionFwdAlgo_t algorithm, void* workspace, size_t workspace_size, const void* beta,
    const cudnnTensorDescriptor_t y_descriptor, void* y) {
  if (!is_handle(handle) || alpha == nullptr || beta == nullptr) return CUDNN_STATUS_BAD_PARAM;
  LegacyProblem problem;
  const cudnnStatus_t status = read_problem(x_descriptor, w_descriptor, conv, y_descriptor, problem);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  const bool wide = problem.x.type == CUDNN_DATA_DOUBLE;
  return run(problem, {algorithm, workspace, workspace_size},
             plain_graph(problem, scalar(alpha, wide), scalar(beta, wide)),
             {const_cast<void*>(x), const_cast<void*>(w), y});
}

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
  cudnnStatus_t status = read_problem(x_descriptor, w_descriptor, conv, y_descriptor, problem);
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
