// A convolution problem with its data, for the stand-in's tests: memory in any type and layout, a naive
// reference in double, and the same problem as a backend graph.
#pragma once

#include <cudnn.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "tests/standin/graph.hpp"

namespace standin {

enum class Layout { Nchw, Nhwc, Strided };

inline Tensor make_tensor(std::int64_t uid, cudnnDataType_t type, std::array<std::int64_t, 4> dim,
                          Layout layout) {
  Tensor t;
  t.uid = uid, t.type = type, t.dim = dim;
  const auto [n, c, h, w] = dim;
  (void)n;
  if (layout == Layout::Nhwc)
    t.stride = {c * h * w, 1, w * c, c};
  else if (layout == Layout::Nchw)
    t.stride = {c * h * w, h * w, w, 1};
  else
    t.stride = {c * h * (w + 3) + 5, h * (w + 3), w + 3, 1};  // rows and images apart
  return t;
}

struct Problem {
  Tensor x, w, y;
  Convolution conv;
  cudnnDataType_t compute;
  std::vector<std::byte> x_memory, w_memory, y_memory;
  std::vector<double> reference;  // packed NCHW

  std::int64_t terms() const { return conv.group_inputs() * conv.r * conv.s; }
};

struct Shape {
  std::int64_t n, c, h, w, k, r, s;
  std::int64_t pad = 0, stride = 1, dilation = 1, groups = 1;
};

inline std::vector<std::byte> memory_for(const Tensor& t) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < 4; ++i) last += (t.dim[i] - 1) * t.stride[i];
  return std::vector<std::byte>(static_cast<std::size_t>(last + 1) * size_of(t.type));
}

inline std::vector<double> unpack(const Tensor& t, const std::vector<std::byte>& memory) {
  std::vector<double> values(static_cast<std::size_t>(t.count()));
  load(t, memory.data(), values.data());
  return values;
}

// Uniform in [-1, 1], rounded to the type.
inline std::vector<std::byte> random_memory(const Tensor& t, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> values(static_cast<std::size_t>(t.count()));
  for (double& v : values) v = uniform(generator);
  auto memory = memory_for(t);
  store(t, values.data(), memory.data());
  return memory;
}

// The definition, in double: nothing shared with the algorithms under test.
inline std::vector<double> naive(const Problem& problem) {
  const Convolution& c = problem.conv;
  const auto x = unpack(problem.x, problem.x_memory), w = unpack(problem.w, problem.w_memory);
  std::vector<double> y;
  for (std::int64_t n = 0; n < c.n; ++n)
    for (std::int64_t k = 0; k < c.k; ++k)
      for (std::int64_t p = 0; p < c.p; ++p)
        for (std::int64_t q = 0; q < c.q; ++q) {
          double sum = 0;
          for (std::int64_t i = 0; i < c.group_inputs(); ++i)
            for (std::int64_t r = 0; r < c.r; ++r)
              for (std::int64_t s = 0; s < c.s; ++s) {
                const std::int64_t row = p * c.stride_h - c.pad_h + r * c.dilation_h;
                const std::int64_t column = q * c.stride_w - c.pad_w + s * c.dilation_w;
                if (row < 0 || row >= c.h || column < 0 || column >= c.w) continue;
                const std::int64_t channel = k / c.group_outputs() * c.group_inputs() + i;
                const std::int64_t tap = c.flipped ? (c.r - 1 - r) * c.s + c.s - 1 - s : r * c.s + s;
                sum += x[static_cast<std::size_t>(((n * c.c + channel) * c.h + row) * c.w + column)] *
                       w[static_cast<std::size_t>((k * c.group_inputs() + i) * c.r * c.s + tap)];
              }
          y.push_back(sum);
        }
  return y;
}

inline Problem make_problem(const Shape& s, cudnnDataType_t type = CUDNN_DATA_FLOAT,
                            Layout layout = Layout::Nchw, bool flipped = false) {
  Problem problem;
  const auto output = [&](std::int64_t in, std::int64_t filter) {
    return (in + 2 * s.pad - s.dilation * (filter - 1) - 1) / s.stride + 1;
  };
  problem.x = make_tensor('x', type, {s.n, s.c, s.h, s.w}, layout);
  problem.w =
      make_tensor('w', type, {s.k, s.c / s.groups, s.r, s.s}, layout == Layout::Nhwc ? layout : Layout::Nchw);
  problem.y = make_tensor('y', type, {s.n, s.k, output(s.h, s.r), output(s.w, s.s)}, layout);
  problem.conv = shape_of(problem.x, problem.w, problem.y);
  problem.conv.pad_h = problem.conv.pad_w = s.pad;
  problem.conv.stride_h = problem.conv.stride_w = s.stride;
  problem.conv.dilation_h = problem.conv.dilation_w = s.dilation;
  problem.conv.flipped = flipped;
  problem.compute = type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  problem.x_memory = random_memory(problem.x, 1);
  problem.w_memory = random_memory(problem.w, 2);
  problem.y_memory = random_memory(problem.y, 3);
  problem.reference = naive(problem);
  return problem;
}

// The largest error allowed for one output. Inputs lie in [-1, 1], so a sum of n = C*R*S products is a
// random walk of size sqrt(n)/3; summing it in a type of unit roundoff u accumulates another random walk
// of n steps of at most u * sqrt(n): u * n in all, and `growth` for the constant. Transforms add their
// own: an FFT a factor of its depth, Winograd the norms of its matrices (F(4x4) has entries up to 8).
// Storing the result rounds it once more, to the unit roundoff of its type.
inline double error_bound(cudnnDataType_t type, Algorithm algorithm, std::int64_t n, double value) {
  const double unit = type == CUDNN_DATA_DOUBLE ? 0x1p-53 : 0x1p-24;
  const double stored = type == CUDNN_DATA_HALF ? 0x1p-11 : type == CUDNN_DATA_BFLOAT16 ? 0x1p-8 : unit;
  const double growth = algorithm == Algorithm::WinogradNonfused ? 64 : algorithm >= Algorithm::Fft ? 16 : 4;
  // below half's normal range the spacing is constant
  const double smallest = type == CUDNN_DATA_HALF ? 0x1p-25 : 0;
  return growth * unit * static_cast<double>(n) + stored * std::fabs(value) + smallest;
}

inline void expect_close(const Problem& problem, Algorithm algorithm, const std::vector<double>& expected) {
  const auto actual = unpack(problem.y, problem.y_memory);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], error_bound(problem.y.type, algorithm, problem.terms(), expected[i]))
        << name_of(algorithm) << " at " << i;
  }
}

// Descriptors that are destroyed with their owner; a failing call fails the test.
class GraphBuilder {
 public:
  explicit GraphBuilder(cudnnHandle_t handle) : handle_(handle) {}
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;
  ~GraphBuilder() {
    for (auto* descriptor : all_) cudnnBackendDestroyDescriptor(descriptor);
  }

  cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t d = nullptr;
    EXPECT_EQ(cudnnBackendCreateDescriptor(type, &d), CUDNN_STATUS_SUCCESS);
    all_.push_back(d);
    return d;
  }
  template <typename T>
  static void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, const T* values, std::int64_t count = 1) {
    EXPECT_EQ(cudnnBackendSetAttribute(d, name, type, count, values), CUDNN_STATUS_SUCCESS) << name;
  }
  static void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                  cudnnBackendDescriptor_t value) {
    set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &value);
  }
  static void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, std::int64_t value) {
    set(d, name, CUDNN_TYPE_INT64, &value);
  }
  static void finalize(cudnnBackendDescriptor_t d) {
    EXPECT_EQ(cudnnBackendFinalize(d), CUDNN_STATUS_SUCCESS);
  }

  cudnnBackendDescriptor_t tensor(const Tensor& t) {
    auto* d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, t.uid);
    set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, &t.type);
    set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, t.dim.data(), 4);
    set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, t.stride.data(), 4);
    set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
    set(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, &t.is_virtual);
    finalize(d);
    return d;
  }

  cudnnBackendDescriptor_t convolution(const Problem& p, const Tensor& y, double alpha, double beta) {
    const Convolution& c = p.conv;
    auto* conv = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    const std::int64_t pad[] = {c.pad_h, c.pad_w}, stride[] = {c.stride_h, c.stride_w};
    const std::int64_t dilation[] = {c.dilation_h, c.dilation_w};
    const cudnnConvolutionMode_t mode = c.flipped ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION;
    set(conv, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
    set(conv, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &p.compute);
    set(conv, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, &mode);
    set(conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, pad, 2);
    set(conv, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, pad, 2);
    set(conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, stride, 2);
    set(conv, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, dilation, 2);
    finalize(conv);
    auto* op = make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, tensor(p.x));
    set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, tensor(p.w));
    set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, tensor(y));
    set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, conv);
    scalar(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, p.compute, alpha);
    scalar(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, p.compute, beta);
    finalize(op);
    return op;
  }

  cudnnBackendDescriptor_t pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor* b,
                                     const Tensor& y, float alpha1 = 1, float alpha2 = 1) {
    auto* pointwise = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    const cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    set(pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, &mode);
    set(pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, &precision);
    finalize(pointwise);
    auto* op = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise);
    set(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensor(x));
    if (b != nullptr) {
      set(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensor(*b));
      set(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT, &alpha1);
      set(op, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, CUDNN_TYPE_FLOAT, &alpha2);
    }
    set(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensor(y));
    finalize(op);
    return op;
  }

  cudnnBackendDescriptor_t graph(const std::vector<cudnnBackendDescriptor_t>& operations) {
    auto* g = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(g, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations.data(),
        static_cast<std::int64_t>(operations.size()));
    set(g, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, &handle_);
    finalize(g);
    return g;
  }

  std::vector<cudnnBackendDescriptor_t> heuristics(cudnnBackendDescriptor_t g) {
    auto* h = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_INSTANT;
    set(h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, g);
    set(h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, &mode);
    finalize(h);
    std::int64_t count = 0;
    cudnnBackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                             nullptr);
    std::vector<cudnnBackendDescriptor_t> configs;
    for (std::int64_t i = 0; i < count; ++i) configs.push_back(make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    cudnnBackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count,
                             configs.data());
    configs.resize(static_cast<std::size_t>(count));
    return configs;
  }

  // The engine's default configuration; null where the engine or the configuration is refused.
  cudnnBackendDescriptor_t config(cudnnBackendDescriptor_t g, std::int64_t engine) {
    auto* e = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    set(e, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, g);
    set(e, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, engine);
    if (cudnnBackendFinalize(e) != CUDNN_STATUS_SUCCESS) return nullptr;
    auto* c = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    set(c, CUDNN_ATTR_ENGINECFG_ENGINE, e);
    return cudnnBackendFinalize(c) == CUDNN_STATUS_SUCCESS ? c : nullptr;
  }

  // Null where it is refused.
  cudnnBackendDescriptor_t plan(cudnnBackendDescriptor_t engine_config) {
    auto* p = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(p, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, &handle_);
    set(p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine_config);
    return cudnnBackendFinalize(p) == CUDNN_STATUS_SUCCESS ? p : nullptr;
  }

  static std::int64_t workspace_size(cudnnBackendDescriptor_t plan) {
    std::int64_t size = -1, count = 0;
    cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                             &size);
    return size;
  }

  cudnnStatus_t execute(cudnnBackendDescriptor_t plan, const std::vector<std::int64_t>& ids,
                        const std::vector<void*>& pointers) {
    std::vector<std::byte> workspace(static_cast<std::size_t>(workspace_size(plan)));
    return execute(plan, ids, pointers, workspace.empty() ? nullptr : workspace.data());
  }
  cudnnStatus_t execute(cudnnBackendDescriptor_t plan, const std::vector<std::int64_t>& ids,
                        const std::vector<void*>& pointers, void* workspace) {
    auto* pack = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    const auto count = static_cast<std::int64_t>(ids.size());
    set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids.data(), count);
    set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers.data(), count);
    set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, &workspace);
    finalize(pack);
    return cudnnBackendExecute(handle_, plan, pack);
  }
  cudnnStatus_t execute(cudnnBackendDescriptor_t plan, Problem& p) {
    return execute(plan, {'x', 'w', 'y'}, {p.x_memory.data(), p.w_memory.data(), p.y_memory.data()});
  }

 private:
  static void scalar(cudnnBackendDescriptor_t op, cudnnBackendAttributeName_t name, cudnnDataType_t type,
                     double value) {
    const auto narrow = static_cast<float>(value);
    if (type == CUDNN_DATA_DOUBLE)
      set(op, name, CUDNN_TYPE_DOUBLE, &value);
    else
      set(op, name, CUDNN_TYPE_FLOAT, &narrow);
  }

  cudnnHandle_t handle_;
  std::vector<cudnnBackendDescriptor_t> all_;
};

}  // namespace standin
