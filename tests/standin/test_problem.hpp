// A convolution problem with its data, for the stand-in's tests: memory in any type and layout, and a naive
// reference in double.
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

// How a test's name says its parameter.
inline void PrintTo(Operation operation, std::ostream* out) { *out << name_of(operation); }

enum class Layout { Nchw, Nhwc, Strided };

using Dims = std::vector<std::int64_t>;

inline Tensor make_tensor(std::int64_t uid, cudnnDataType_t type, const Dims& dim, Layout layout) {
  Tensor t;
  t.uid = uid, t.type = type, t.rank = dim.size();
  std::copy(dim.begin(), dim.end(), t.dim.begin());
  std::int64_t step = layout == Layout::Nhwc ? dim[1] : 1;
  for (std::size_t i = t.rank; i-- > 2;
       step *= dim[i] + (i == t.rank - 1 && layout == Layout::Strided ? 3 : 0))
    t.stride[i] = step;
  t.stride[1] = layout == Layout::Nhwc ? 1 : step;
  t.stride[0] = layout == Layout::Nhwc ? step : step * dim[1];
  if (layout == Layout::Strided) t.stride[0] += 5;  // rows and images apart
  return t;
}

struct Problem {
  Operation operation = Operation::Forward;
  Tensor x, w, y;
  Spatial spatial;
  Convolution conv{};
  cudnnDataType_t compute;
  std::vector<std::byte> x_memory, w_memory, y_memory;
  std::vector<double> reference;  // the result, packed in the order of its dimensions

  const Tensor& result() const { return *std::array{&x, &w, &y}[result_of(operation)]; }
  std::vector<std::byte>& result_memory() {
    return *std::array{&x_memory, &w_memory, &y_memory}[result_of(operation)];
  }
  const std::vector<std::byte>& result_memory() const {
    return *std::array{&x_memory, &w_memory, &y_memory}[result_of(operation)];
  }
  // Products in one element of the result, at most.
  std::int64_t terms() const {
    const std::int64_t taps = conv.t * conv.r * conv.s;
    if (operation == Operation::BackwardFilter) return conv.n * conv.z * conv.p * conv.q;
    return taps * (operation == Operation::Forward ? conv.group_inputs() : conv.group_outputs());
  }
};

struct Shape {
  std::int64_t n, c, h, w, k, r, s;
  std::int64_t pad = 0, stride = 1, dilation = 1, groups = 1;
  std::int64_t depth = 0, t = 0;  // 0: two dimensions
  Operation operation = Operation::Forward;
};

inline std::vector<std::byte> memory_for(const Tensor& t) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < t.rank; ++i) last += (t.dim[i] - 1) * t.stride[i];
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

// The definition, in double, each product put where it belongs: nothing shared with the algorithms under
// test.
inline std::vector<double> naive(const Problem& problem) {
  const Convolution& c = problem.conv;
  const auto x = unpack(problem.x, problem.x_memory), w = unpack(problem.w, problem.w_memory);
  const auto y = unpack(problem.y, problem.y_memory);
  std::vector<double> result(static_cast<std::size_t>(problem.result().count()));
  for (std::int64_t nk = 0; nk < c.n * c.k; ++nk)
    for (std::int64_t zpq = 0; zpq < c.z * c.p * c.q; ++zpq)
      for (std::int64_t i = 0; i < c.group_inputs(); ++i)
        for (std::int64_t trs = 0; trs < c.t * c.r * c.s; ++trs) {
          const std::int64_t taps = c.t * c.r * c.s, n = nk / c.k, k = nk % c.k;
          const std::int64_t d = zpq / (c.p * c.q) * c.stride_d - c.pad_d + trs / (c.r * c.s) * c.dilation_d;
          const std::int64_t row = zpq / c.q % c.p * c.stride_h - c.pad_h + trs / c.s % c.r * c.dilation_h;
          const std::int64_t column = zpq % c.q * c.stride_w - c.pad_w + trs % c.s * c.dilation_w;
          if (d < 0 || d >= c.d || row < 0 || row >= c.h || column < 0 || column >= c.w) continue;
          const std::int64_t channel = k / c.group_outputs() * c.group_inputs() + i;
          const auto at_x =
              static_cast<std::size_t>((((n * c.c + channel) * c.d + d) * c.h + row) * c.w + column);
          const auto at_w = static_cast<std::size_t>((k * c.group_inputs() + i) * taps +
                                                     (c.flipped ? taps - 1 - trs : trs));
          const auto at_y = static_cast<std::size_t>(nk * c.z * c.p * c.q + zpq);
          if (problem.operation == Operation::Forward) result[at_y] += x[at_x] * w[at_w];
          if (problem.operation == Operation::BackwardData) result[at_x] += w[at_w] * y[at_y];
          if (problem.operation == Operation::BackwardFilter) result[at_w] += x[at_x] * y[at_y];
        }
  return result;
}

inline Problem make_problem(const Shape& s, cudnnDataType_t type = CUDNN_DATA_FLOAT,
                            Layout layout = Layout::Nchw, bool flipped = false) {
  Problem problem;
  problem.operation = s.operation;
  const auto output = [&](std::int64_t in, std::int64_t filter) {
    return (in + 2 * s.pad - s.dilation * (filter - 1) - 1) / s.stride + 1;
  };
  Dims x{s.n, s.c, s.h, s.w}, w{s.k, s.c / s.groups, s.r, s.s};
  Dims y{s.n, s.k, output(s.h, s.r), output(s.w, s.s)};
  if (s.depth > 0) {
    x.insert(x.begin() + 2, s.depth);
    w.insert(w.begin() + 2, s.t);
    y.insert(y.begin() + 2, output(s.depth, s.t));
  }
  problem.x = make_tensor('x', type, x, layout);
  problem.w = make_tensor('w', type, w, layout == Layout::Nhwc ? layout : Layout::Nchw);
  problem.y = make_tensor('y', type, y, layout);
  problem.spatial = {Dims(x.size() - 2, s.pad), Dims(x.size() - 2, s.stride), Dims(x.size() - 2, s.dilation)};
  problem.conv = shape_of(problem.x, problem.w, problem.y);
  set_spatial(problem.conv, problem.spatial);
  problem.conv.flipped = flipped;
  problem.compute = type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  problem.x_memory = random_memory(problem.x, 1);
  problem.w_memory = random_memory(problem.w, 2);
  problem.y_memory = random_memory(problem.y, 3);
  problem.reference = naive(problem);
  return problem;
}

// The largest error allowed for one output. Inputs lie in [-1, 1], so a sum of n products (Problem::terms) is
// a random walk of size sqrt(n)/3; summing it in a type of unit roundoff u accumulates another random walk of
// n steps of at most u * sqrt(n): u * n in all, and `growth` for the constant. Transforms add their own: an
// FFT a factor of its depth, Winograd the norms of its matrices (F(4x4) has entries up to 8). Storing the
// result rounds it once more, to the unit roundoff of its type.
inline double error_bound(cudnnDataType_t type, Algorithm algorithm, std::int64_t n, double value) {
  const double unit = type == CUDNN_DATA_DOUBLE ? 0x1p-53 : 0x1p-24;
  const double stored = type == CUDNN_DATA_HALF ? 0x1p-11 : type == CUDNN_DATA_BFLOAT16 ? 0x1p-8 : unit;
  const double growth = algorithm == Algorithm::WinogradNonfused ? 64 : algorithm >= Algorithm::Fft ? 16 : 4;
  // below half's normal range the spacing is constant
  const double smallest = type == CUDNN_DATA_HALF ? 0x1p-25 : 0;
  return growth * unit * static_cast<double>(n) + stored * std::fabs(value) + smallest;
}

inline void expect_close(const Problem& problem, Algorithm algorithm, const std::vector<double>& expected) {
  const auto actual = unpack(problem.result(), problem.result_memory());
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i],
                error_bound(problem.result().type, algorithm, problem.terms(), expected[i]))
        << name_of(algorithm) << " at " << i;
  }
}

}  // namespace standin
