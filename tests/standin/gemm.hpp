// c += a * b for row-major matrices, in register blocks of 4 x 16.
#pragma once

#include <algorithm>
#include <cstdint>

namespace standin {

inline constexpr std::int64_t gemm_rows = 4;
inline constexpr std::int64_t gemm_columns = 16;

// One block, `depth` products deep.
template <typename T>
inline void gemm_block(std::int64_t depth, const T* a, std::int64_t a_stride, const T* b,
                       std::int64_t b_stride, T (&sum)[gemm_rows][gemm_columns]) {
  for (std::int64_t d = 0; d < depth; ++d) {
    const T* row = b + d * b_stride;
    for (int i = 0; i < gemm_rows; ++i) {
      const T factor = a[i * a_stride + d];
      for (int j = 0; j < gemm_columns; ++j) sum[i][j] += factor * row[j];
    }
  }
}

// Returns the number of multiplications, rows * columns * depth.
template <typename T>
std::uint64_t gemm(std::int64_t rows, std::int64_t columns, std::int64_t depth, const T* a,
                   std::int64_t a_stride, const T* b, std::int64_t b_stride, T* c, std::int64_t c_stride) {
  for (std::int64_t j = 0; j < columns; j += gemm_columns) {
    const std::int64_t width = std::min(gemm_columns, columns - j);
    for (std::int64_t i = 0; i < rows; i += gemm_rows) {
      const std::int64_t height = std::min(gemm_rows, rows - i);
      if (width == gemm_columns && height == gemm_rows) {
        T sum[gemm_rows][gemm_columns] = {};
        gemm_block(depth, a + i * a_stride, a_stride, b + j, b_stride, sum);
        for (int ii = 0; ii < gemm_rows; ++ii) {
          for (int jj = 0; jj < gemm_columns; ++jj) c[(i + ii) * c_stride + j + jj] += sum[ii][jj];
        }
        continue;
      }
      for (std::int64_t ii = i; ii < i + height; ++ii) {
        T sum[gemm_columns] = {};
        for (std::int64_t d = 0; d < depth; ++d) {
          for (std::int64_t jj = 0; jj < width; ++jj)
            sum[jj] += a[ii * a_stride + d] * b[d * b_stride + j + jj];
        }
        for (std::int64_t jj = 0; jj < width; ++jj) c[ii * c_stride + j + jj] += sum[jj];
      }
    }
  }
  return static_cast<std::uint64_t>(rows * columns * depth);
}

}  // namespace standin
