// What the entry points of the legacy API (legacy.cpp) do: reading descriptors, running, listing and timing.
#include <algorithm>
#include <chrono>
#include <sstream>

#include "tests/standin/faults.hpp"
#include "tests/standin/legacy.hpp"
#include "tests/standin/real.hpp"

namespace standin {
namespace {

Spatial widened(int count, const int* pad, const int* stride, const int* dilation) {
  return {{pad, pad + count}, {stride, stride + count}, {dilation, dilation + count}};
}

// Up to the last element that the strides reach.
std::vector<std::byte> memory_of(const Tensor& tensor) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < tensor.rank; ++i) last += (tensor.dim[i] - 1) * tensor.stride[i];
  return std::vector<std::byte>(static_cast<std::size_t>(last + 1) *
                                std::max<std::size_t>(size_of(tensor.type), 1));
}

}  // namespace

std::string LegacyProblem::key() const {
  std::ostringstream text;
  text << name_of(operation);
  for (const Tensor* tensor : {&x, &w, &y}) {
    text << ' ' << tensor->type << ' ';
    for (std::size_t i = 0; i < tensor->rank; ++i) text << tensor->dim[i] << ',' << tensor->stride[i] << ' ';
  }
  for (const auto* values : {&spatial.pad, &spatial.stride, &spatial.dilation}) {
    for (const std::int64_t value : *values) text << value << ' ';
  }
  text << conv.groups << ' ' << conv.flipped << ' ' << compute_type << ' ' << math_type;
  return text.str();
}

cudnnStatus_t read_tensor(cudnnTensorDescriptor_t descriptor, Tensor& tensor) {
  int count = 0;
  int dim[CUDNN_DIM_MAX] = {}, stride[CUDNN_DIM_MAX] = {};
  const cudnnStatus_t status =
      real::cudnnGetTensorNdDescriptor(descriptor, CUDNN_DIM_MAX, &tensor.type, &count, dim, stride);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (count < 3 || count > static_cast<int>(max_rank))
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "computes with tensors of three to five dimensions only");
  tensor.rank = static_cast<std::size_t>(count);
  std::copy_n(dim, count, tensor.dim.begin());
  std::copy_n(stride, count, tensor.stride.begin());
  return status;
}

namespace {

cudnnStatus_t read_filter(cudnnFilterDescriptor_t descriptor, Tensor& tensor) {
  int count = 0, dim[CUDNN_DIM_MAX] = {};
  cudnnTensorFormat_t format{};
  const cudnnStatus_t status =
      real::cudnnGetFilterNdDescriptor(descriptor, CUDNN_DIM_MAX, &tensor.type, &format, &count, dim);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (count < 3 || count > static_cast<int>(max_rank) || format == CUDNN_TENSOR_NCHW_VECT_C)
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "unvectorized filters of three to five dimensions only");
  tensor.rank = static_cast<std::size_t>(count);
  std::copy_n(dim, count, tensor.dim.begin());
  const bool channels_last = format == CUDNN_TENSOR_NHWC;
  std::int64_t step = channels_last ? tensor.dim[1] : 1;
  for (std::size_t i = tensor.rank; i-- > 2; step *= tensor.dim[i]) tensor.stride[i] = step;
  tensor.stride[1] = channels_last ? 1 : step;
  tensor.stride[0] = channels_last ? step : step * tensor.dim[1];
  return status;
}

}  // namespace

cudnnStatus_t read_problem(Operation operation, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                           cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y,
                           LegacyProblem& problem) {
  if (x == nullptr || w == nullptr || conv == nullptr || y == nullptr)
    return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  problem.operation = operation;
  problem.x.uid = 0, problem.w.uid = 1, problem.y.uid = 2;
  if (const cudnnStatus_t status = read_tensor(x, problem.x); status != CUDNN_STATUS_SUCCESS) return status;
  if (const cudnnStatus_t status = read_tensor(y, problem.y); status != CUDNN_STATUS_SUCCESS) return status;
  if (const cudnnStatus_t status = read_filter(w, problem.w); status != CUDNN_STATUS_SUCCESS) return status;
  const auto wanted = static_cast<int>(problem.x.rank) - 2;
  int count = 0, pad[3] = {}, stride[3] = {}, dilation[3] = {}, groups = 1;
  cudnnConvolutionMode_t mode{};
  const cudnnStatus_t status = real::cudnnGetConvolutionNdDescriptor(conv, wanted, &count, pad, stride,
                                                                     dilation, &mode, &problem.compute_type);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (count != wanted || problem.w.rank != problem.x.rank || problem.y.rank != problem.x.rank)
    return refuse(CUDNN_STATUS_BAD_PARAM, "the descriptors' dimensions don't agree");
  real::cudnnGetConvolutionGroupCount(conv, &groups);
  real::cudnnGetConvolutionMathType(conv, &problem.math_type);
  problem.conv = shape_of(problem.x, problem.w, problem.y);
  if (problem.conv.groups != groups)
    return refuse(CUDNN_STATUS_BAD_PARAM, "group count and channels don't agree");
  problem.spatial = widened(count, pad, stride, dilation);
  set_spatial(problem.conv, problem.spatial);
  problem.conv.flipped = mode == CUDNN_CONVOLUTION;
  return status;
}

double scalar(const void* value, bool in_double) {
  return in_double ? *static_cast<const double*>(value)
                   : static_cast<double>(*static_cast<const float*>(value));
}

Graph plain_graph(const LegacyProblem& problem, double alpha, double beta) {
  Node node;
  node.operation = problem.operation;
  node.x = first_of(node.operation), node.b = second_of(node.operation), node.y = result_of(node.operation);
  node.conv = problem.conv;
  node.alpha = alpha;
  node.beta = beta;
  return {{problem.x, problem.w, problem.y}, {node}, problem.in_double()};
}

cudnnStatus_t run(const LegacyProblem& problem, const LegacyRun& how, const Graph& graph,
                  const LegacyMemory& memory) {
  const auto algorithms = legacy_algorithms(problem);
  if (how.algorithm < 0 || how.algorithm >= static_cast<int>(algorithms->size()))
    return CUDNN_STATUS_BAD_PARAM;
  const LegacyAlgorithm& known = (*algorithms)[static_cast<std::size_t>(how.algorithm)];
  if (known.status != CUDNN_STATUS_SUCCESS) return known.status;
  if (known.workspace > how.workspace_size || (known.workspace > 0 && how.workspace == nullptr)) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "the workspace is too small");
  }
  const std::string number = std::to_string(how.algorithm);
  if (const cudnnStatus_t fault = injected_fault(problem.operation, "algo" + number);
      fault != CUDNN_STATUS_SUCCESS)
    return fault;
  const auto find = [&](std::int64_t id) { return memory.at(static_cast<std::size_t>(id)); };
  const cudnnStatus_t status =
      evaluate(graph, known.runs, find, {static_cast<std::byte*>(how.workspace), known.workspace});
  if (status == CUDNN_STATUS_SUCCESS) trace("legacy", problem.operation, number, name_of(known.runs));
  return status;
}

std::vector<LegacyResult> list_algorithms(LegacyProblem problem) {
  const auto algorithms = legacy_algorithms(problem);
  std::vector<std::pair<int, LegacyResult>> ranked;
  const auto add = [&](std::size_t number, const LegacyAlgorithm& a) {
    ranked.emplace_back(
        a.status == CUDNN_STATUS_SUCCESS ? a.rank : 2000,
        LegacyResult{static_cast<int>(number), a.status, -1, a.workspace, a.determinism, a.math_type});
  };
  for (std::size_t i = 0; i < algorithms->size(); ++i) add(i, (*algorithms)[i]);
  if ((*algorithms)[1].math_type == CUDNN_TENSOR_OP_MATH) {
    problem.math_type = CUDNN_FMA_MATH;
    const LegacyAlgorithm& plain = (*legacy_algorithms(problem))[1];
    if (plain.status == CUDNN_STATUS_SUCCESS) add(1, plain);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<LegacyResult> results;
  for (const auto& entry : ranked) results.push_back(entry.second);
  return results;
}

std::vector<LegacyResult> find_algorithms(const LegacyProblem& problem, const LegacyMemory& memory,
                                          std::span<std::byte> workspace) {
  auto results = list_algorithms(problem);
  for (LegacyResult& result : results) {
    if (result.status != CUDNN_STATUS_SUCCESS) continue;
    if (result.memory > workspace.size()) {
      result.status = CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
      continue;
    }
    LegacyProblem with_math = problem;
    with_math.math_type = result.math_type == CUDNN_FMA_MATH ? CUDNN_FMA_MATH : problem.math_type;
    const auto start = std::chrono::steady_clock::now();
    result.status = run(with_math, {result.algorithm, workspace.data(), workspace.size()},
                        plain_graph(problem, 1, 0), memory);
    const std::chrono::duration<float, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    if (result.status == CUDNN_STATUS_SUCCESS) result.time = elapsed.count();
  }
  const auto order = [](const auto& r) { return r.status == CUDNN_STATUS_SUCCESS ? r.time : 1e30f; };
  std::stable_sort(results.begin(), results.end(),
                   [&](const auto& a, const auto& b) { return order(a) < order(b); });
  return results;
}

std::vector<LegacyResult> find_algorithms(const LegacyProblem& problem) {
  auto x = memory_of(problem.x), w = memory_of(problem.w), y = memory_of(problem.y);
  std::size_t size = 0;
  for (const LegacyAlgorithm& algorithm : *legacy_algorithms(problem))
    size = std::max(size, algorithm.workspace);
  std::vector<std::byte> workspace(size);
  return find_algorithms(problem, {x.data(), w.data(), y.data()}, workspace);
}

}  // namespace standin
