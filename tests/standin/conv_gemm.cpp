// The two matrix products: y[k][p,q] = sum over (c,r,s) of w[k][c,r,s] * column[c,r,s][p,q], where a
// column holds what the filter sees at one output position.
#include <algorithm>

#include "tests/standin/conv.hpp"
#include "tests/standin/gemm.hpp"

namespace standin {
// As on a GPU: whole tiles only, so edges are multiplied too; the operand is never stored, but gathered a
// slice at a time. Offsets are precomputed per tile.
template <typename T>
std::uint64_t convolve_implicit_gemm(const Convolution& conv, const T* x, const T* w, T* y) {
  constexpr std::int64_t slice = 64;
  const std::int64_t depth = conv.group_inputs() * conv.r * conv.s;
  const std::int64_t outputs = conv.group_outputs(), positions = conv.p * conv.q;
  const std::int64_t rows = (outputs + gemm_rows - 1) / gemm_rows * gemm_rows;
  const std::int64_t taps = conv.r * conv.s;
  std::vector<T> filter(static_cast<std::size_t>(rows * depth));
  std::vector<T> sums(static_cast<std::size_t>(rows * gemm_columns));
  std::uint64_t multiplies = 0;
  for (std::int64_t group = 0; group < conv.groups; ++group) {
    std::copy_n(w + group * outputs * depth, outputs * depth, filter.begin());
    for (std::int64_t n = 0; n < conv.n; ++n) {
      const T* image = x + (n * conv.c + group * conv.group_inputs()) * conv.h * conv.w;
      T* out = y + (n * conv.k + group * outputs) * positions;
      for (std::int64_t pq = 0; pq < positions; pq += gemm_columns) {
        const std::int64_t width = std::min(gemm_columns, positions - pq);
        std::int64_t row[gemm_columns], column[gemm_columns];
        for (std::int64_t j = 0; j < gemm_columns; ++j) {
          // positions past the last one see nothing but padding
          row[j] = j < width ? (pq + j) / conv.q * conv.stride_h - conv.pad_h : conv.h;
          column[j] = (pq + j) % conv.q * conv.stride_w - conv.pad_w;
        }
        std::fill(sums.begin(), sums.end(), T{0});
        for (std::int64_t first = 0; first < depth; first += slice) {
          const std::int64_t height = std::min(slice, depth - first);
          T gathered[slice][gemm_columns];
          for (std::int64_t d = 0; d < height; ++d) {
            const std::int64_t crs = first + d;
            const std::int64_t down = crs % taps / conv.s * conv.dilation_h;
            const std::int64_t right = crs % conv.s * conv.dilation_w;
            const T* plane = image + crs / taps * conv.h * conv.w;
            for (std::int64_t j = 0; j < gemm_columns; ++j) {
              const std::int64_t r = row[j] + down, s = column[j] + right;
              const bool inside = r >= 0 && r < conv.h && s >= 0 && s < conv.w;
              gathered[d][j] = inside ? plane[r * conv.w + s] : T{0};
            }
          }
          for (std::int64_t k = 0; k < rows; k += gemm_rows) {
            T sum[gemm_rows][gemm_columns] = {};
            gemm_block(height, filter.data() + k * depth + first, depth, &gathered[0][0], gemm_columns, sum);
            for (int i = 0; i < gemm_rows; ++i) {
              for (int j = 0; j < gemm_columns; ++j)
                sums[static_cast<std::size_t>((k + i) * gemm_columns + j)] += sum[i][j];
            }
          }
        }
        for (std::int64_t k = 0; k < outputs; ++k) {
          std::copy_n(sums.begin() + k * gemm_columns, width, out + k * positions + pq);
        }
        multiplies += static_cast<std::uint64_t>(rows * gemm_columns * depth);
      }
    }
  }
  return multiplies;
}

// The operand goes into the workspace: as many columns at a time as fit there.
template <typename T>
std::uint64_t convolve_im2col_gemm(const Convolution& conv, const T* x, const T* w, T* y, Scratch& scratch) {
  const std::int64_t depth = conv.group_inputs() * conv.r * conv.s;
  const std::int64_t outputs = conv.group_outputs(), positions = conv.p * conv.q;
  const std::int64_t fits = static_cast<std::int64_t>(scratch.left() / sizeof(T)) / depth;
  const std::int64_t block = std::clamp<std::int64_t>(fits, std::min<std::int64_t>(16, positions), positions);
  const auto columns = scratch.take<T>(static_cast<std::size_t>(depth * block));
  std::uint64_t multiplies = 0;
  std::fill(y, y + conv.n * conv.k * positions, T{0});
  for (std::int64_t n = 0; n < conv.n; ++n) {
    for (std::int64_t group = 0; group < conv.groups; ++group) {
      const T* image = x + (n * conv.c + group * conv.group_inputs()) * conv.h * conv.w;
      for (std::int64_t pq = 0; pq < positions; pq += block) {
        const std::int64_t width = std::min(block, positions - pq);
        for (std::int64_t crs = 0; crs < depth; ++crs) {
          const std::int64_t down = crs / conv.s % conv.r * conv.dilation_h - conv.pad_h;
          const std::int64_t right = crs % conv.s * conv.dilation_w - conv.pad_w;
          const T* plane = image + crs / (conv.r * conv.s) * conv.h * conv.w;
          T* to = columns.data() + crs * width;
          std::int64_t p = pq / conv.q, q = pq % conv.q;
          for (std::int64_t j = 0; j < width; ++j) {
            const std::int64_t row = p * conv.stride_h + down, column = q * conv.stride_w + right;
            const bool inside = row >= 0 && row < conv.h && column >= 0 && column < conv.w;
            to[j] = inside ? plane[row * conv.w + column] : T{0};
            if (++q == conv.q) q = 0, ++p;
          }
        }
        multiplies += gemm(outputs, width, depth, w + group * outputs * depth, depth, columns.data(), width,
                           y + (n * conv.k + group * outputs) * positions + pq, positions);
      }
    }
  }
  return multiplies;
}

template std::uint64_t convolve_implicit_gemm(const Convolution&, const float*, const float*, float*);
template std::uint64_t convolve_implicit_gemm(const Convolution&, const double*, const double*, double*);
template std::uint64_t convolve_im2col_gemm(const Convolution&, const float*, const float*, float*, Scratch&);
template std::uint64_t convolve_im2col_gemm(const Convolution&, const double*, const double*, double*,
                                            Scratch&);

}  // namespace standin
