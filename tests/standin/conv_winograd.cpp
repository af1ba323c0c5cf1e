// Winograd's minimal filtering (Lavin and Gray, arXiv:1509.09308): F(m x m, 3x3) computes m x m outputs
// from (m+2) x (m+2) inputs with (m+2)^2 multiplications per filter, as one matrix product per position
// of the transformed tile.
#include <algorithm>

#include "tests/standin/conv.hpp"
#include "tests/standin/gemm.hpp"

namespace standin {
namespace {

// A small matrix of constants. Products with 0, 1 and -1 are not counted as multiplications.
struct Matrix {
  int rows, columns;
  const double* values;

  double at(int i, int j) const { return values[i * columns + j]; }
  std::uint64_t multiplies() const {
    return static_cast<std::uint64_t>(
        std::count_if(values, values + rows * columns, [](double v) { return v != 0 && v != 1 && v != -1; }));
  }
};

constexpr double input2[] = {1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1};
constexpr double filter2[] = {1, 0, 0, .5, .5, .5, .5, -.5, .5, 0, 0, 1};
constexpr double output2[] = {1, 1, 1, 0, 0, 1, -1, -1};

constexpr double input4[] = {4, 0,  -5, 0, 1, 0, 0, -4, -4, 1,  1, 0, 0, 4, -4, -1, 1, 0,
                             0, -2, -1, 2, 1, 0, 0, 2,  -1, -2, 1, 0, 0, 4, 0,  -5, 0, 1};
constexpr double filter4[] = {1. / 4,  0,       0,      -1. / 6, -1. / 6,  -1. / 6, -1. / 6, 1. / 6, -1. / 6,
                              1. / 24, 1. / 12, 1. / 6, 1. / 24, -1. / 12, 1. / 6,  0,       0,      1};
constexpr double output4[] = {1, 1, 1, 1, 1, 0, 0, 1, -1, 2, -2, 0, 0, 1, 1, 4, 4, 0, 0, 1, -1, 8, -8, 1};

struct Transforms {
  Matrix input, filter, output;
};
constexpr Transforms transforms2{{4, 4, input2}, {4, 3, filter2}, {2, 4, output2}};
constexpr Transforms transforms4{{6, 6, input4}, {6, 3, filter4}, {4, 6, output4}};

constexpr int largest = 6;

// out = m * in * transposed(m); `in` is square with m.columns, `out` with m.rows.
template <typename T>
std::uint64_t sandwich(const Matrix& m, const T* in, T* out) {
  T half[largest * largest];
  for (int i = 0; i < m.rows; ++i) {
    for (int j = 0; j < m.columns; ++j) {
      T sum{0};
      for (int l = 0; l < m.columns; ++l) sum += static_cast<T>(m.at(i, l)) * in[l * m.columns + j];
      half[i * m.columns + j] = sum;
    }
  }
  for (int i = 0; i < m.rows; ++i) {
    for (int j = 0; j < m.rows; ++j) {
      T sum{0};
      for (int l = 0; l < m.columns; ++l) sum += half[i * m.columns + l] * static_cast<T>(m.at(j, l));
      out[i * m.rows + j] = sum;
    }
  }
  return m.multiplies() * static_cast<std::uint64_t>(m.columns + m.rows);
}

struct Tiles {
  std::int64_t down, across;
  std::int64_t count() const { return down * across; }
};

Tiles tiles(const Convolution& conv, int outputs) {
  return {(conv.p + outputs - 1) / outputs, (conv.q + outputs - 1) / outputs};
}

}  // namespace

std::size_t winograd_bytes(const Convolution& conv, int outputs, std::size_t element_size) {
  const std::int64_t points = (outputs + 2) * (outputs + 2), inputs = conv.group_inputs();
  const std::int64_t per_image = (inputs + conv.group_outputs()) * tiles(conv, outputs).count();
  return static_cast<std::size_t>(points * (conv.k * inputs + per_image)) * element_size + 64;
}

template <typename T>
std::uint64_t convolve_winograd(const Convolution& conv, const T* x, const T* w, T* y, int m,
                                Scratch& scratch) {
  const Transforms& transforms = m == 2 ? transforms2 : transforms4;
  const int side = m + 2;
  const std::int64_t points = side * side, inputs = conv.group_inputs(), outputs = conv.group_outputs();
  const auto [down, across] = tiles(conv, m);
  const std::int64_t count = down * across;
  // [point][output][input], [point][input][tile], [point][output][tile]
  const auto filters = scratch.take<T>(static_cast<std::size_t>(points * conv.k * inputs));
  const auto images = scratch.take<T>(static_cast<std::size_t>(points * inputs * count));
  const auto sums = scratch.take<T>(static_cast<std::size_t>(points * outputs * count));
  std::uint64_t multiplies = 0;
  T tile[largest * largest], transformed[largest * largest];
  for (std::int64_t kc = 0; kc < conv.k * inputs; ++kc) {
    multiplies += sandwich(transforms.filter, w + kc * 9, transformed);
    for (std::int64_t i = 0; i < points; ++i)
      filters[static_cast<std::size_t>(i * conv.k * inputs + kc)] = transformed[i];
  }
  for (std::int64_t ng = 0; ng < conv.n * conv.groups; ++ng) {
    for (std::int64_t c = 0; c < inputs; ++c) {
      const T* plane = x + (ng * inputs + c) * conv.h * conv.w;
      for (std::int64_t t = 0; t < count; ++t) {
        const std::int64_t top = t / across * m - conv.pad_h, left = t % across * m - conv.pad_w;
        for (int i = 0; i < side; ++i) {
          for (int j = 0; j < side; ++j) {
            const std::int64_t row = top + i, column = left + j;
            const bool inside = row >= 0 && row < conv.h && column >= 0 && column < conv.w;
            tile[i * side + j] = inside ? plane[row * conv.w + column] : T{0};
          }
        }
        multiplies += sandwich(transforms.input, tile, transformed);
        for (std::int64_t i = 0; i < points; ++i) {
          images[static_cast<std::size_t>((i * inputs + c) * count + t)] = transformed[i];
        }
      }
    }
    std::fill(sums.begin(), sums.end(), T{0});
    const std::int64_t first_output = ng % conv.groups * outputs;
    for (std::int64_t i = 0; i < points; ++i) {
      multiplies +=
          gemm(outputs, count, inputs, filters.data() + (i * conv.k + first_output) * inputs, inputs,
               images.data() + i * inputs * count, count, sums.data() + i * outputs * count, count);
    }
    for (std::int64_t k = 0; k < outputs; ++k) {
      T* out = y + (ng * outputs + k) * conv.p * conv.q;
      for (std::int64_t t = 0; t < count; ++t) {
        for (std::int64_t i = 0; i < points; ++i) {
          tile[i] = sums[static_cast<std::size_t>((i * outputs + k) * count + t)];
        }
        multiplies += sandwich(transforms.output, tile, transformed);
        for (int i = 0; i < m; ++i) {
          for (int j = 0; j < m; ++j) {
            const std::int64_t p = t / across * m + i, q = t % across * m + j;
            if (p < conv.p && q < conv.q) out[p * conv.q + q] = transformed[i * m + j];
          }
        }
      }
    }
  }
  return multiplies;
}

template std::uint64_t convolve_winograd(const Convolution&, const float*, const float*, float*, int,
                                         Scratch&);
template std::uint64_t convolve_winograd(const Convolution&, const double*, const double*, double*, int,
                                         Scratch&);

}  // namespace standin
