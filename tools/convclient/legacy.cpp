// A convolution through the legacy API, in the order in which PyTorch goes about it with its graph API off
// (TORCH_CUDNN_V8_API_DISABLED=1).

#include <algorithm>

#include "tools/convclient/legacy_descriptors.hpp"
#include "tools/convclient/run.hpp"
#include "tools/convclient/status.hpp"

namespace convclient {

using convpin::DataType;
using convpin::Layout;
using convpin::Operation;
using convpin::Parsed;
using convpin::Problem;

namespace {

std::string cannot_be_described(const Problem& p) {
  if (p.pad != p.post_pad) return "the legacy API has one padding for both sides";
  if (convpin::layout_of(p.w) == Layout::Strided) return "the legacy API has no strides for the filter";
  return {};
}

// The three operations have functions of their own, which take the same arguments in the same places: two
// inputs and an output, each a descriptor and (where something runs) a pointer. What these are is all that
// differs.
struct Forward {
  using Algorithm = cudnnConvolutionFwdAlgo_t;
  using Performance = cudnnConvolutionFwdAlgoPerf_t;
  static constexpr int kAlgorithms = CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
  static constexpr const char* kName = "Forward";
  static auto first(const Descriptors& d) { return d.x.get(); }
  static auto second(const Descriptors& d) { return d.w.get(); }
  static auto output(const Descriptors& d) { return d.y.get(); }
  static void* first(const Workload& load) { return load.x(); }
  static void* second(const Workload& load) { return load.w(); }
  static void* output(const Workload& load) { return load.y(); }
  static auto workspace(auto... a) { return cudnnGetConvolutionForwardWorkspaceSize(a...); }
  static auto get(auto... a) { return cudnnGetConvolutionForwardAlgorithm_v7(a...); }
  static auto find(auto... a) { return cudnnFindConvolutionForwardAlgorithmEx(a...); }
  static auto run(auto... a) { return cudnnConvolutionForward(a...); }
};

struct BackwardData {
  using Algorithm = cudnnConvolutionBwdDataAlgo_t;
  using Performance = cudnnConvolutionBwdDataAlgoPerf_t;
  static constexpr int kAlgorithms = CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
  static constexpr const char* kName = "BackwardData";
  static auto first(const Descriptors& d) { return d.w.get(); }
  static auto second(const Descriptors& d) { return d.y.get(); }
  static auto output(const Descriptors& d) { return d.x.get(); }
  static void* first(const Workload& load) { return load.w(); }
  static void* second(const Workload& load) { return load.y(); }
  static void* output(const Workload& load) { return load.x(); }
  static auto workspace(auto... a) { return cudnnGetConvolutionBackwardDataWorkspaceSize(a...); }
  static auto get(auto... a) { return cudnnGetConvolutionBackwardDataAlgorithm_v7(a...); }
  static auto find(auto... a) { return cudnnFindConvolutionBackwardDataAlgorithmEx(a...); }
  static auto run(auto... a) { return cudnnConvolutionBackwardData(a...); }
};

struct BackwardFilter {
  using Algorithm = cudnnConvolutionBwdFilterAlgo_t;
  using Performance = cudnnConvolutionBwdFilterAlgoPerf_t;
  static constexpr int kAlgorithms = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
  static constexpr const char* kName = "BackwardFilter";
  static auto first(const Descriptors& d) { return d.x.get(); }
  static auto second(const Descriptors& d) { return d.y.get(); }
  static auto output(const Descriptors& d) { return d.w.get(); }
  static void* first(const Workload& load) { return load.x(); }
  static void* second(const Workload& load) { return load.y(); }
  static void* output(const Workload& load) { return load.w(); }
  static auto workspace(auto... a) { return cudnnGetConvolutionBackwardFilterWorkspaceSize(a...); }
  static auto get(auto... a) { return cudnnGetConvolutionBackwardFilterAlgorithm_v7(a...); }
  static auto find(auto... a) { return cudnnFindConvolutionBackwardFilterAlgorithmEx(a...); }
  static auto run(auto... a) { return cudnnConvolutionBackwardFilter(a...); }
};

template <typename Kind>
std::string call_name(const char* before, const char* after) {
  return before + std::string("Convolution") + Kind::kName + after;
}

template <typename Kind>
std::size_t workspace_size(const Descriptors& d, cudnnHandle_t handle, int algorithm, cudnnStatus_t& status) {
  std::size_t size = 0;
  status = Kind::workspace(handle, Kind::first(d), Kind::second(d), d.convolution.get(), Kind::output(d),
                           static_cast<typename Kind::Algorithm>(algorithm), &size);
  return size;
}

// What cuDNN recommends by its heuristics, best first.
template <typename Kind>
std::vector<typename Kind::Performance> ask(Descriptors& d, cudnnHandle_t handle) {
  // an algorithm may come with two math types
  std::vector<typename Kind::Performance> results(Kind::kAlgorithms * 2);
  int count = 0;
  d.good(call_name<Kind>("cudnnGet", "Algorithm_v7"),
         Kind::get(handle, Kind::first(d), Kind::second(d), d.convolution.get(), Kind::output(d),
                   static_cast<int>(results.size()), &count, results.data()));
  results.resize(static_cast<std::size_t>(count));
  return results;
}

// What cuDNN measures, fastest first, on the caller's tensors and in the largest workspace that is allowed.
template <typename Kind>
std::vector<typename Kind::Performance> measure(Descriptors& d, const Workload& load, const Options& options,
                                                cudnnHandle_t handle) {
  std::size_t largest = 0;
  for (int algorithm = 0; algorithm < Kind::kAlgorithms; ++algorithm) {
    cudnnStatus_t status;
    const std::size_t size = workspace_size<Kind>(d, handle, algorithm, status);
    if (status != CUDNN_STATUS_SUCCESS) continue;
    if (!options.max_workspace || size <= static_cast<std::size_t>(*options.max_workspace))
      largest = std::max(largest, size);
  }
  auto workspace = load.device().allocate(largest);
  if (!workspace) {
    d.error = workspace.error;
    return {};
  }
  std::vector<typename Kind::Performance> results(Kind::kAlgorithms * 2);
  int count = 0;
  d.good(call_name<Kind>("cudnnFind", "AlgorithmEx"),
         Kind::find(handle, Kind::first(d), Kind::first(load), Kind::second(d), Kind::second(load),
                    d.convolution.get(), Kind::output(d), Kind::output(load),
                    static_cast<int>(results.size()), &count, results.data(), workspace->data(), largest));
  results.resize(static_cast<std::size_t>(count));
  return results;
}

template <typename Kind>
Parsed<Outcome> run_algorithm(const Descriptors& d, const Workload& load, const Options& options,
                              cudnnHandle_t handle, int algorithm, std::size_t size) {
  auto workspace = load.device().allocate(size);
  if (!workspace) return Parsed<Outcome>::fail(workspace.error);
  // alpha and beta are doubles for double data and floats for all other, also for half.
  const bool in_double = load.problem().y.type == DataType::Double;
  const double one_d = 1, zero_d = 0;
  const float one_f = 1, zero_f = 0, beta_f = static_cast<float>(options.beta);
  const void* one = in_double ? static_cast<const void*>(&one_d) : &one_f;
  const void* zero = in_double ? static_cast<const void*>(&zero_d) : &zero_f;
  const void* beta = in_double ? static_cast<const void*>(&options.beta) : &beta_f;

  // relu(1 * conv(x, w) + (0 or 1) * z + bias); z must be given all the same, and may be y
  void* const z = load.z() ? load.z() : load.y();
  const auto fused = [&] {
    return cudnnConvolutionBiasActivationForward(
        handle, one, d.x.get(), load.x(), d.w.get(), load.w(), d.convolution.get(), static_cast<cudnnConvolutionFwdAlgo_t>(algorithm),
        workspace->data(), size, load.z() ? one : zero, d.y.get(), z, d.bias.get(), load.bias(), d.relu.get(), d.y.get(), load.y());
  };
  const auto plain = [&] {
    return Kind::run(handle, one, Kind::first(d), Kind::first(load), Kind::second(d), Kind::second(load),
                     d.convolution.get(), static_cast<typename Kind::Algorithm>(algorithm), workspace->data(),
                     size, beta, Kind::output(d), Kind::output(load));
  };
  Outcome outcome;
  const std::string error = d.relu
                                ? load.run("cudnnConvolutionBiasActivationForward", fused, options, outcome)
                                : load.run(call_name<Kind>("cudnn", ""), plain, options, outcome);
  if (!error.empty()) return Parsed<Outcome>::fail("algorithm " + std::to_string(algorithm) + ": " + error);

  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  cudnnGetConvolutionMathType(d.convolution.get(), &math);
  static constexpr const char* names[] = {"default_math", "tensor_op_math", "tensor_op_math_allow_conversion",
                                          "fma_math"};
  outcome.ran = "algo" + std::to_string(algorithm);
  outcome.workspace = static_cast<std::int64_t>(size);
  outcome.notes.push_back(names[static_cast<std::size_t>(math) % 4]);
  return Parsed<Outcome>::ok(std::move(outcome));
}

template <typename Kind>
Parsed<Outcome> run_as(const Workload& load, const Options& options, cudnnHandle_t handle) {
  Descriptors d(convpin::in_memory(load.problem()), options.math);
  if (!d.error.empty()) return Parsed<Outcome>::fail(d.error);

  if (options.fixed) {
    cudnnStatus_t status;
    const std::size_t size = workspace_size<Kind>(d, handle, *options.fixed, status);
    if (!d.good(call_name<Kind>("cudnnGet", "WorkspaceSize"), status))
      return Parsed<Outcome>::fail("algorithm " + std::to_string(*options.fixed) + ": " + d.error);
    return run_algorithm<Kind>(d, load, options, handle, *options.fixed, size);
  }

  const auto results = options.benchmark ? measure<Kind>(d, load, options, handle) : ask<Kind>(d, handle);
  if (!d.error.empty()) return Parsed<Outcome>::fail(d.error);
  const bool deterministic = std::count(options.denied_notes.begin(), options.denied_notes.end(),
                                        CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) > 0;
  std::string error = "none is offered that is allowed";
  for (const auto& result : results) {
    if (result.status != CUDNN_STATUS_SUCCESS) continue;
    if (deterministic && result.determinism != CUDNN_DETERMINISTIC) continue;
    if (options.max_workspace && result.memory > static_cast<std::size_t>(*options.max_workspace)) continue;
    // The algorithm was offered, and its workspace counted, for this math type.
    if (!d.good("cudnnSetConvolutionMathType",
                cudnnSetConvolutionMathType(d.convolution.get(), result.mathType)))
      return Parsed<Outcome>::fail(d.error);
    auto outcome = run_algorithm<Kind>(d, load, options, handle, result.algo, result.memory);
    if (outcome) return outcome;
    error = outcome.error;
  }
  return Parsed<Outcome>::fail("no algorithm runs this: " + error);
}

}  // namespace

Parsed<Outcome> run_legacy(const Workload& load, const Options& options, cudnnHandle_t handle) {
  if (std::string why = cannot_be_described(load.problem()); !why.empty()) return Parsed<Outcome>::fail(why);
  switch (load.problem().operation) {
    case Operation::BackwardData:
      return run_as<BackwardData>(load, options, handle);
    case Operation::BackwardFilter:
      return run_as<BackwardFilter>(load, options, handle);
    default:
      return run_as<Forward>(load, options, handle);
  }
}

}  // namespace convclient
