// The entry points of the legacy API's convolutions: the same for each operation, over what differs.
#include "tests/standin/legacy.hpp"

#include <algorithm>

#include "tests/standin/handle.hpp"
#include "tests/standin/real.hpp"

namespace standin {
namespace {

// The first and the second input's and the result's descriptors, in the order of the calls' parameters.
template <Operation>
struct Legacy;

template <>
struct Legacy<Operation::Forward> {
  using First = cudnnTensorDescriptor_t;
  using Second = cudnnFilterDescriptor_t;
  using Result = cudnnTensorDescriptor_t;
  using Algo = cudnnConvolutionFwdAlgo_t;
  using Perf = cudnnConvolutionFwdAlgoPerf_t;
  static constexpr int algorithms = CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
};

template <>
struct Legacy<Operation::BackwardData> {
  using First = cudnnFilterDescriptor_t;
  using Second = cudnnTensorDescriptor_t;
  using Result = cudnnTensorDescriptor_t;
  using Algo = cudnnConvolutionBwdDataAlgo_t;
  using Perf = cudnnConvolutionBwdDataAlgoPerf_t;
  static constexpr int algorithms = CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
};

template <>
struct Legacy<Operation::BackwardFilter> {
  using First = cudnnTensorDescriptor_t;
  using Second = cudnnTensorDescriptor_t;
  using Result = cudnnFilterDescriptor_t;
  using Algo = cudnnConvolutionBwdFilterAlgo_t;
  using Perf = cudnnConvolutionBwdFilterAlgoPerf_t;
  static constexpr int algorithms = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
};

// A call's descriptors, read.
template <Operation operation>
struct Call {
  using Kind = Legacy<operation>;

  Call(typename Kind::First first, typename Kind::Second second, cudnnConvolutionDescriptor_t conv,
       typename Kind::Result result) {
    if constexpr (operation == Operation::Forward)
      status = read_problem(operation, first, second, conv, result, problem);
    else if constexpr (operation == Operation::BackwardData)
      status = read_problem(operation, result, first, conv, second, problem);
    else
      status = read_problem(operation, first, result, conv, second, problem);
  }
  bool ok() const { return status == CUDNN_STATUS_SUCCESS; }

  static LegacyMemory memory(const void* first, const void* second, void* result) {
    LegacyMemory by_id{};
    by_id[first_of(operation)] = const_cast<void*>(first);
    by_id[second_of(operation)] = const_cast<void*>(second);
    by_id[result_of(operation)] = result;
    return by_id;
  }

  cudnnStatus_t execute(const LegacyMemory& memory, const LegacyRun& how, const void* alpha,
                        const void* beta) const {
    if (!ok()) return status;
    const bool wide = problem.x.type == CUDNN_DATA_DOUBLE;
    return run(problem, how, plain_graph(problem, scalar(alpha, wide), scalar(beta, wide)), memory);
  }

  cudnnStatus_t workspace_size(int algorithm, std::size_t* size) const {
    if (!ok()) return status;
    const LegacyAlgorithm known = legacy_algorithms(problem)->at(static_cast<std::size_t>(algorithm));
    if (known.status == CUDNN_STATUS_SUCCESS) *size = known.workspace;
    return known.status;
  }

  static cudnnStatus_t give(const std::vector<LegacyResult>& results, int requested, int* returned,
                            typename Kind::Perf* to) {
    *returned = std::min(requested, static_cast<int>(results.size()));
    for (int i = 0; i < *returned; ++i) {
      const LegacyResult& from = results[static_cast<std::size_t>(i)];
      to[i] = {static_cast<typename Kind::Algo>(from.algorithm),
               from.status,
               from.time,
               from.memory,
               from.determinism,
               from.math_type,
               {}};
    }
    return CUDNN_STATUS_SUCCESS;
  }

  cudnnStatus_t status;
  LegacyProblem problem;
};

bool valid_query(cudnnHandle_t handle, int requested, const int* returned, const void* results) {
  return is_handle(handle) && requested >= 1 && returned != nullptr && results != nullptr;
}

}  // namespace
}  // namespace standin

using namespace standin;

// The functions of one operation; `name` is how cuDNN's names say it.
#define STANDIN_LEGACY(operation, name)                                                                      \
  STANDIN_EXPORT cudnnStatus_t cudnnGetConvolution##name##AlgorithmMaxCount(cudnnHandle_t handle,            \
                                                                            int* count) {                    \
    if (!is_handle(handle) || count == nullptr) return CUDNN_STATUS_BAD_PARAM;                               \
    *count = Legacy<operation>::algorithms + 2; /* the real library's answer */                              \
    return CUDNN_STATUS_SUCCESS;                                                                             \
  }                                                                                                          \
                                                                                                             \
  STANDIN_EXPORT cudnnStatus_t cudnnGetConvolution##name##Algorithm_v7(                                      \
      cudnnHandle_t handle, const Legacy<operation>::First first, const Legacy<operation>::Second second,    \
      const cudnnConvolutionDescriptor_t conv, const Legacy<operation>::Result result, const int requested,  \
      int* returned, Legacy<operation>::Perf* results) {                                                     \
    if (!valid_query(handle, requested, returned, results)) return CUDNN_STATUS_BAD_PARAM;                   \
    const Call<operation> call(first, second, conv, result);                                                 \
    return call.ok() ? call.give(list_algorithms(call.problem), requested, returned, results) : call.status; \
  }                                                                                                          \
                                                                                                             \
  STANDIN_EXPORT cudnnStatus_t cudnnFindConvolution##name##Algorithm(                                        \
      cudnnHandle_t handle, const Legacy<operation>::First first, const Legacy<operation>::Second second,    \
      const cudnnConvolutionDescriptor_t conv, const Legacy<operation>::Result result, const int requested,  \
      int* returned, Legacy<operation>::Perf* results) {                                                     \
    if (!valid_query(handle, requested, returned, results)) return CUDNN_STATUS_BAD_PARAM;                   \
    const Call<operation> call(first, second, conv, result);                                                 \
    return call.ok() ? call.give(find_algorithms(call.problem), requested, returned, results) : call.status; \
  }                                                                                                          \
                                                                                                             \
  STANDIN_EXPORT cudnnStatus_t cudnnFindConvolution##name##AlgorithmEx(                                      \
      cudnnHandle_t handle, const Legacy<operation>::First first, const void* first_data,                    \
      const Legacy<operation>::Second second, const void* second_data,                                       \
      const cudnnConvolutionDescriptor_t conv, const Legacy<operation>::Result result, void* result_data,    \
      const int requested, int* returned, Legacy<operation>::Perf* results, void* workspace, size_t size) {  \
    if (!valid_query(handle, requested, returned, results)) return CUDNN_STATUS_BAD_PARAM;                   \
    const Call<operation> call(first, second, conv, result);                                                 \
    if (!call.ok()) return call.status;                                                                      \
    const std::span room(static_cast<std::byte*>(workspace), workspace != nullptr ? size : 0);               \
    const LegacyMemory memory = call.memory(first_data, second_data, result_data);                           \
    return call.give(find_algorithms(call.problem, memory, room), requested, returned, results);             \
  }                                                                                                          \
                                                                                                             \
  STANDIN_EXPORT cudnnStatus_t cudnnGetConvolution##name##WorkspaceSize(                                     \
      cudnnHandle_t handle, const Legacy<operation>::First first, const Legacy<operation>::Second second,    \
      const cudnnConvolutionDescriptor_t conv, const Legacy<operation>::Result result,                       \
      Legacy<operation>::Algo algorithm, size_t* size) {                                                     \
    if (!is_handle(handle) || size == nullptr || algorithm < 0 ||                                            \
        algorithm >= Legacy<operation>::algorithms)                                                          \
      return CUDNN_STATUS_BAD_PARAM;                                                                         \
    return Call<operation>(first, second, conv, result).workspace_size(algorithm, size);                     \
  }                                                                                                          \
                                                                                                             \
  STANDIN_EXPORT cudnnStatus_t cudnnConvolution##name(                                                       \
      cudnnHandle_t handle, const void* alpha, const Legacy<operation>::First first, const void* first_data, \
      const Legacy<operation>::Second second, const void* second_data,                                       \
      const cudnnConvolutionDescriptor_t conv, Legacy<operation>::Algo algorithm, void* workspace,           \
      size_t size, const void* beta, const Legacy<operation>::Result result, void* result_data) {            \
    if (!is_handle(handle) || alpha == nullptr || beta == nullptr) return CUDNN_STATUS_BAD_PARAM;            \
    const Call<operation> call(first, second, conv, result);                                                 \
    return call.execute(call.memory(first_data, second_data, result_data), {algorithm, workspace, size},     \
                        alpha, beta);                                                                        \
  }

STANDIN_LEGACY(Operation::Forward, Forward)
STANDIN_LEGACY(Operation::BackwardData, BackwardData)
STANDIN_LEGACY(Operation::BackwardFilter, BackwardFilter)
