// Legacy algorithm -> graph engines, judged by building the same graph on the real library: supported
// means that a plan finalizes, and the workspace is the plan's.
//
// FFT, FFT_TILING and WINOGRAD_NONFUSED can't be judged so: their engines are refused without a device
// whatever the shape, since cuBLAS can't be initialised. These follow the limits that cuDNN's reference
// documents (conv.cpp), and their workspace is what the stand-in needs.
#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "tests/standin/handle.hpp"
#include "tests/standin/legacy.hpp"
#include "tests/standin/real.hpp"

namespace standin {
namespace {

// By the algorithm's number. Of several engines the first in the heuristics' order is taken; none: the
// algorithm is not supported.
using Engines = std::vector<int>;
const std::vector<Engines>& engines_of(Operation operation) {
  static const std::vector<Engines> rows[operation_count] = {
      {{28}, {1, 22, 23, 27, 35, 38, 41, 45, 46, 47, 48, 57, 58, 62, 67, 70}, {2}, {0}, {3}, {4}, {12}, {6}},
      {{25},
       {1,  2,  22, 23, 24, 27, 28, 34, 40, 43, 46, 49, 53, 56,
        57, 58, 59, 60, 62, 63, 64, 65, 67, 71, 73, 74, 76},
       {4},
       {5, 50},
       {19},
       {7}},
      {{20},
       {1, 9, 10, 15, 22, 23, 25, 30, 33, 34, 37, 38, 39, 40, 45, 46, 48, 49, 50, 61, 62, 65, 67, 68},
       {18},
       {20},
       {},
       {17},
       {}},
  };
  return rows[static_cast<std::size_t>(operation)];
}

bool judged_by_rules(Algorithm algorithm) {
  return algorithm == Algorithm::Fft || algorithm == Algorithm::FftTiling ||
         algorithm == Algorithm::WinogradNonfused;
}

struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, conv, alpha, beta;
};
constexpr OperationNames operations[operation_count] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

// A real descriptor that is destroyed with its owner.
class Owned {
 public:
  explicit Owned(cudnnBackendDescriptorType_t type) {
    real::cudnnBackendCreateDescriptor(type, &descriptor_);
  }
  Owned(Owned&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Owned& operator=(Owned&&) = delete;
  ~Owned() {
    if (descriptor_ != nullptr) real::cudnnBackendDestroyDescriptor(descriptor_);
  }

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  template <typename T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T* values,
           std::int64_t count = 1) {
    real::cudnnBackendSetAttribute(descriptor_, name, type, count, values);
  }
  void set(cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &value);
  }
  void set(cudnnBackendAttributeName_t name, std::int64_t value) { set(name, CUDNN_TYPE_INT64, &value); }
  cudnnStatus_t finalize() { return real::cudnnBackendFinalize(descriptor_); }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

Owned make_tensor(const Tensor& tensor) {
  const auto rank = static_cast<std::int64_t>(tensor.rank);
  Owned made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, tensor.uid);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, &tensor.type);
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, tensor.dim.data(), rank);
  made.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, tensor.stride.data(), rank);
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
  made.finalize();
  return made;
}

// The problem as an operation graph, and what the real library says of its engines.
class Judge {
 public:
  explicit Judge(const LegacyProblem& problem)
      : problem_(problem), graph_(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
    const Owned x = make_tensor(problem.x), w = make_tensor(problem.w), y = make_tensor(problem.y);
    Owned conv(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    const Spatial& spatial = problem.spatial;
    const auto dims = static_cast<std::int64_t>(spatial.pad.size());
    const cudnnConvolutionMode_t mode = problem.conv.flipped ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION;
    conv.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, dims);
    conv.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &problem.compute_type);
    conv.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, &mode);
    conv.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, spatial.pad.data(), dims);
    conv.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, spatial.pad.data(), dims);
    conv.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, spatial.stride.data(), dims);
    conv.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, spatial.dilation.data(), dims);
    conv.finalize();
    const OperationNames& names = operations[static_cast<std::size_t>(problem.operation)];
    Owned operation(names.type);
    operation.set(names.x, x.get());
    operation.set(names.w, w.get());
    operation.set(names.y, y.get());
    operation.set(names.conv, conv.get());
    if (problem.in_double()) {
      const double alpha = 1, beta = 0;
      operation.set(names.alpha, CUDNN_TYPE_DOUBLE, &alpha);
      operation.set(names.beta, CUDNN_TYPE_DOUBLE, &beta);
    } else {
      const float alpha = 1, beta = 0;
      operation.set(names.alpha, CUDNN_TYPE_FLOAT, &alpha);
      operation.set(names.beta, CUDNN_TYPE_FLOAT, &beta);
    }
    operation.finalize();
    graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation.get());
    valid_ = graph_.finalize() == CUDNN_STATUS_SUCCESS;
    if (valid_) ask_heuristics();
  }

  LegacyAlgorithm judge(const Engines& engines) const {
    LegacyAlgorithm answer;
    if (!valid_ || engines.empty()) return answer;
    answer.runs = algorithm_of_engine(pattern_of(problem_.operation), engines.front());
    if (judged_by_rules(answer.runs)) return by_rules(answer);
    // the heuristics' configurations first, then the engines' default ones
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const std::int64_t engine = engine_of(results_[i].get());
      if (std::find(engines.begin(), engines.end(), engine) == engines.end()) continue;
      if (try_plan(results_[i].get(), answer)) {
        answer.rank = static_cast<int>(i);
        return answer;
      }
    }
    for (const int engine : engines) {
      Owned described(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
      described.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph_.get());
      described.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, engine);
      described.set(CUDNN_ATTR_ENGINE_DEVICEPROP, device_properties());
      if (described.finalize() != CUDNN_STATUS_SUCCESS) continue;
      Owned config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
      config.set(CUDNN_ATTR_ENGINECFG_ENGINE, described.get());
      if (config.finalize() == CUDNN_STATUS_SUCCESS && try_plan(config.get(), answer)) return answer;
    }
    return answer;
  }

 private:
  LegacyAlgorithm by_rules(LegacyAlgorithm answer) const {
    const bool type = problem_.x.type == CUDNN_DATA_FLOAT || problem_.x.type == CUDNN_DATA_HALF;
    const std::size_t last = problem_.x.rank - 1;
    const bool packed = problem_.x.stride[last] == 1 && problem_.y.stride[last] == 1;  // NCHW
    const Operation operation = problem_.operation;
    if (!type || !packed || !documented_as_supported(operation, answer.runs, problem_.conv)) return answer;
    answer.status = CUDNN_STATUS_SUCCESS;
    answer.workspace = transform_bytes(operation, answer.runs, problem_.conv, sizeof(float));
    return answer;
  }

  void ask_heuristics() {
    Owned heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_INSTANT;
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_.get());
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, &mode);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device_properties());
    if (heuristics.finalize() != CUDNN_STATUS_SUCCESS) return;
    std::int64_t count = 0;
    real::cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr);
    std::vector<cudnnBackendDescriptor_t> raw;
    for (std::int64_t i = 0; i < count; ++i) {
      raw.push_back(results_.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
    }
    real::cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw.data());
    while (results_.size() > static_cast<std::size_t>(count)) results_.pop_back();
  }

  // The math type decides which numerical notes are allowed, as in the legacy API: FMA_MATH no tensor
  // cores, and nothing but ALLOW_CONVERSION narrower inputs.
  bool try_plan(cudnnBackendDescriptor_t config, LegacyAlgorithm& answer) const {
    bool tensor_core = false, converts = false, varies = false;
    Owned engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t raw = engine.get();
    std::int64_t count = 0;
    real::cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                   &count, &raw);
    cudnnBackendNumericalNote_t notes[32];
    real::cudnnBackendGetAttribute(raw, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 32,
                                   &count, notes);
    for (std::int64_t i = 0; i < std::min<std::int64_t>(count, 32); ++i) {
      tensor_core |= notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
      converts |= notes[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
      varies |= notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    }
    if (tensor_core && problem_.math_type == CUDNN_FMA_MATH) return false;
    if (converts && problem_.math_type != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION) return false;
    Owned plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device_properties());
    if (plan.finalize() != CUDNN_STATUS_SUCCESS) return false;
    std::int64_t size = 0;
    real::cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                   &count, &size);
    answer.status = CUDNN_STATUS_SUCCESS;
    answer.workspace = static_cast<std::size_t>(size);
    answer.determinism = varies ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;
    answer.math_type = tensor_core ? CUDNN_TENSOR_OP_MATH : CUDNN_DEFAULT_MATH;
    if (problem_.math_type == CUDNN_FMA_MATH) answer.math_type = CUDNN_FMA_MATH;
    return true;
  }

  const LegacyProblem& problem_;
  Owned graph_;
  bool valid_ = false;
  std::vector<Owned> results_;  // the heuristics' configurations, in their order
};

}  // namespace

std::shared_ptr<const LegacyAlgorithms> legacy_algorithms(const LegacyProblem& problem) {
  static std::mutex mutex;
  static auto* const known = new std::map<std::string, std::shared_ptr<const LegacyAlgorithms>>;
  const std::lock_guard lock(mutex);
  auto& entry = (*known)[problem.key()];
  if (entry == nullptr) {
    const Judge judge(problem);
    auto algorithms = std::make_shared<LegacyAlgorithms>();
    for (const Engines& engines : engines_of(problem.operation)) algorithms->push_back(judge.judge(engines));
    entry = std::move(algorithms);
  }
  return entry;
}

}  // namespace standin
