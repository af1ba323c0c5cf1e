// A convolution through the legacy API, in the order in which PyTorch goes about it with its graph API off
// (TORCH_CUDNN_V8_API_DISABLED=1).

#include <algorithm>
#include <array>
#include <memory>

#include "tools/convclient/run.hpp"
#include "tools/convclient/status.hpp"

namespace convclient {

using convpin::DataType;
using convpin::Layout;
using convpin::Parsed;
using convpin::Problem;
using convpin::Tensor;

namespace {

template <auto destroy>
struct Destroy {
  template <typename T>
  void operator()(T* descriptor) const {
    destroy(descriptor);
  }
};
template <typename T, auto destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, Destroy<destroy>>;

using Algorithm = cudnnConvolutionFwdAlgo_t;
using Performance = cudnnConvolutionFwdAlgoPerf_t;

std::array<int, convpin::kMaxDims> narrow(const std::array<std::int64_t, convpin::kMaxDims>& wide) {
  std::array<int, convpin::kMaxDims> out{};
  std::transform(wide.begin(), wide.end(), out.begin(), [](std::int64_t v) { return static_cast<int>(v); });
  return out;
}

// The problem as the legacy API's descriptors. The first call that fails is kept in `error`.
struct Descriptors {
  Owned<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor> x, y, bias;
  Owned<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor> w;
  Owned<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor> convolution;
  Owned<cudnnActivationDescriptor_t, cudnnDestroyActivationDescriptor> relu;
  std::string error;

  explicit Descriptors(const Problem& p, int math) {
    make_tensor(x, p.x);
    make_tensor(y, p.y);
    make_filter(p.w);
    make_convolution(p, math);
    if (p.fused_count > 0) make_bias_and_relu(p);
  }

  bool good(const char* call, cudnnStatus_t status) {
    if (status == CUDNN_STATUS_SUCCESS) return true;
    error = failure(call, status);
    return false;
  }

 private:
  template <typename T, auto destroy>
  void create(Owned<T, destroy>& into, const char* call, cudnnStatus_t (*make)(T*)) {
    T raw = nullptr;
    if (error.empty() && good(call, make(&raw))) into.reset(raw);
  }

  // Dims in the order N, C, [D,] H, W, whatever the layout: the strides say that.
  void make_tensor(Owned<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>& into, const Tensor& t) {
    create(into, "cudnnCreateTensorDescriptor", cudnnCreateTensorDescriptor);
    if (into)
      good("cudnnSetTensorNdDescriptor",
           cudnnSetTensorNdDescriptor(into.get(), static_cast<cudnnDataType_t>(t.type), t.rank,
                                      narrow(t.dims).data(), narrow(t.strides).data()));
  }

  // A filter has no strides but a format. Its dims are K, C/groups, [D,] R, S in both formats.
  void make_filter(const Tensor& t) {
    create(w, "cudnnCreateFilterDescriptor", cudnnCreateFilterDescriptor);
    const auto format = convpin::layout_of(t) == Layout::ChannelsLast ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    if (w)
      good("cudnnSetFilterNdDescriptor",
           cudnnSetFilterNdDescriptor(w.get(), static_cast<cudnnDataType_t>(t.type), format, t.rank,
                                      narrow(t.dims).data()));
  }

  // Here, other than in the graph API, the number of groups is an attribute.
  void make_convolution(const Problem& p, int math) {
    create(convolution, "cudnnCreateConvolutionDescriptor", cudnnCreateConvolutionDescriptor);
    if (!convolution) return;
    good("cudnnSetConvolutionNdDescriptor",
         cudnnSetConvolutionNdDescriptor(convolution.get(), p.spatial_dims(), narrow(p.pad).data(),
                                         narrow(p.stride).data(), narrow(p.dilation).data(),
                                         p.flipped ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION,
                                         static_cast<cudnnDataType_t>(p.compute))) &&
        good("cudnnSetConvolutionGroupCount", cudnnSetConvolutionGroupCount(convolution.get(), p.groups)) &&
        good("cudnnSetConvolutionMathType",
             cudnnSetConvolutionMathType(convolution.get(), static_cast<cudnnMathType_t>(math)));
  }

  void make_bias_and_relu(const Problem& p) {
    Tensor one_per_channel = p.y;
    for (int d = 0; d < p.y.rank; ++d) one_per_channel.dims[d] = d == 1 ? p.y.dims[1] : 1;
    convpin::set_packed_strides(one_per_channel, Layout::ChannelsFirst);
    make_tensor(bias, one_per_channel);
    create(relu, "cudnnCreateActivationDescriptor", cudnnCreateActivationDescriptor);
    if (relu)
      good("cudnnSetActivationDescriptor",
           cudnnSetActivationDescriptor(relu.get(), CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
  }
};

std::string cannot_be_described(const Problem& p) {
  if (p.pad != p.post_pad) return "the legacy API has one padding for both sides";
  if (convpin::layout_of(p.w) == Layout::Strided) return "the legacy API has no strides for the filter";
  return {};
}

std::size_t workspace_size(const Descriptors& d, cudnnHandle_t handle, int algorithm, cudnnStatus_t& status) {
  std::size_t size = 0;
  status = cudnnGetConvolutionForwardWorkspaceSize(handle, d.x.get(), d.w.get(), d.convolution.get(),
                                                   d.y.get(), static_cast<Algorithm>(algorithm), &size);
  return size;
}

// What cuDNN recommends by its heuristics, best first.
std::vector<Performance> ask(Descriptors& d, cudnnHandle_t handle) {
  std::vector<Performance> results(CUDNN_CONVOLUTION_FWD_ALGO_COUNT *
                                   2);  // an algorithm may come with two math types
  int count = 0;
  d.good("cudnnGetConvolutionForwardAlgorithm_v7",
         cudnnGetConvolutionForwardAlgorithm_v7(handle, d.x.get(), d.w.get(), d.convolution.get(), d.y.get(),
                                                static_cast<int>(results.size()), &count, results.data()));
  results.resize(static_cast<std::size_t>(count));
  return results;
}

// What cuDNN measures, fastest first, on the caller's tensors and in the largest workspace that is allowed.
std::vector<Performance> measure(Descriptors& d, const Workload& load, const Options& options,
                                 cudnnHandle_t handle) {
  std::size_t largest = 0;
  for (int algorithm = 0; algorithm < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; ++algorithm) {
    cudnnStatus_t status;
    const std::size_t size = workspace_size(d, handle, algorithm, status);
    if (status != CUDNN_STATUS_SUCCESS) continue;
    if (!options.max_workspace || size <= static_cast<std::size_t>(*options.max_workspace))
      largest = std::max(largest, size);
  }
  auto workspace = load.device().allocate(largest);
  if (!workspace) {
    d.error = workspace.error;
    return {};
  }
  std::vector<Performance> results(CUDNN_CONVOLUTION_FWD_ALGO_COUNT * 2);
  int count = 0;
  d.good("cudnnFindConvolutionForwardAlgorithmEx",
         cudnnFindConvolutionForwardAlgorithmEx(
             handle, d.x.get(), load.x(), d.w.get(), load.w(), d.convolution.get(), d.y.get(), load.y(),
             static_cast<int>(results.size()), &count, results.data(), workspace->data(), largest));
  results.resize(static_cast<std::size_t>(count));
  return results;
}

Parsed<Outcome> run_algorithm(const Descriptors& d, const Workload& load, const Options& options,
                              cudnnHandle_t handle, int algorithm, std::size_t size) {
  auto workspace = load.device().allocate(size);
  if (!workspace) return Parsed<Outcome>::fail(workspace.error);
  const auto algo = static_cast<Algorithm>(algorithm);
  // alpha and beta are doubles for double data and floats for all other, also for half.
  const bool in_double = load.problem().y.type == DataType::Double;
  const double one_d = 1, zero_d = 0;
  const float one_f = 1, zero_f = 0, beta_f = static_cast<float>(options.beta);
  const void* one = in_double ? static_cast<const void*>(&one_d) : &one_f;
  const void* zero = in_double ? static_cast<const void*>(&zero_d) : &zero_f;
  const void* beta = in_double ? static_cast<const void*>(&options.beta) : &beta_f;

  Outcome outcome;
  std::string error;
  if (d.relu)  // relu(1 * conv(x, w) + 0 * z + bias); z must be given all the same, and may be y
    error = load.run(
        "cudnnConvolutionBiasActivationForward",
        [&] {
          return cudnnConvolutionBiasActivationForward(handle, one, d.x.get(), load.x(), d.w.get(), load.w(),
                                                       d.convolution.get(), algo, workspace->data(), size,
                                                       zero, d.y.get(), load.y(), d.bias.get(), load.bias(),
                                                       d.relu.get(), d.y.get(), load.y());
        },
        options, outcome);
  else
    error = load.run(
        "cudnnConvolutionForward",
        [&] {
          return cudnnConvolutionForward(handle, one, d.x.get(), load.x(), d.w.get(), load.w(),
                                         d.convolution.get(), algo, workspace->data(), size, beta, d.y.get(),
                                         load.y());
        },
        options, outcome);
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

}  // namespace

Parsed<Outcome> run_legacy(const Workload& load, const Options& options, cudnnHandle_t handle) {
  if (std::string why = cannot_be_described(load.problem()); !why.empty()) return Parsed<Outcome>::fail(why);
  Descriptors d(load.problem(), options.math);
  if (!d.error.empty()) return Parsed<Outcome>::fail(d.error);

  if (options.fixed) {
    cudnnStatus_t status;
    const std::size_t size = workspace_size(d, handle, *options.fixed, status);
    if (!d.good("cudnnGetConvolutionForwardWorkspaceSize", status))
      return Parsed<Outcome>::fail("algorithm " + std::to_string(*options.fixed) + ": " + d.error);
    return run_algorithm(d, load, options, handle, *options.fixed, size);
  }

  const auto results = options.benchmark ? measure(d, load, options, handle) : ask(d, handle);
  if (!d.error.empty()) return Parsed<Outcome>::fail(d.error);
  const bool deterministic = std::count(options.denied_notes.begin(), options.denied_notes.end(),
                                        CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) > 0;
  std::string error = "none is offered that is allowed";
  for (const Performance& result : results) {
    if (result.status != CUDNN_STATUS_SUCCESS) continue;
    if (deterministic && result.determinism != CUDNN_DETERMINISTIC) continue;
    if (options.max_workspace && result.memory > static_cast<std::size_t>(*options.max_workspace)) continue;
    // The algorithm was offered, and its workspace counted, for this math type.
    if (!d.good("cudnnSetConvolutionMathType",
                cudnnSetConvolutionMathType(d.convolution.get(), result.mathType)))
      return Parsed<Outcome>::fail(d.error);
    auto outcome = run_algorithm(d, load, options, handle, result.algo, result.memory);
    if (outcome) return outcome;
    error = outcome.error;
  }
  return Parsed<Outcome>::fail("no algorithm runs this: " + error);
}

}  // namespace convclient
