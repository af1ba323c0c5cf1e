// The backward operations. Both are forward convolutions of rearranged tensors, so that the forward
// algorithms compute them too; and one algorithm of their own.
//
// dx is dy, with stride - 1 zeros between its elements, convolved with the filter turned by 180 degrees and
// its inputs and outputs exchanged. dw is x with images and channels exchanged, convolved with dy as the
// filter: stride and dilation change places.
#include <algorithm>

#include "tests/standin/conv.hpp"

namespace standin {
namespace {

// to[b][a] = from[a][b] for blocks of `size`.
template <typename T>
std::vector<T> exchanged(const T* from, std::int64_t a, std::int64_t b, std::int64_t size) {
  std::vector<T> to(static_cast<std::size_t>(a * b * size));
  for (std::int64_t i = 0; i < a; ++i) {
    for (std::int64_t j = 0; j < b; ++j)
      std::copy_n(from + (i * b + j) * size, size, to.begin() + (j * a + i) * size);
  }
  return to;
}

// [n][g][c] -> [c][g][n]: images and channels change places within each group.
template <typename T>
std::vector<T> images_as_channels(const T* from, std::int64_t images, std::int64_t groups,
                                  std::int64_t channels, std::int64_t size) {
  const std::vector<T> grouped = exchanged(from, images, groups * channels, size);  // [g][c][n]
  return exchanged(grouped.data(), groups, channels, images * size);                // [c][g][n]
}

template <typename T>
void turn(std::vector<T>& filters, std::int64_t taps) {
  for (auto filter = filters.begin(); filter != filters.end(); filter += taps)
    std::reverse(filter, filter + taps);
}

template <typename T>
std::uint64_t data(Algorithm algorithm, const Convolution& conv, const T* w, const T* dy, T* dx,
                   Scratch& scratch) {
  const Convolution forward = as_forward(Operation::BackwardData, conv);
  std::vector<T> spread(static_cast<std::size_t>(forward.n * forward.c * forward.h * forward.w));
  for (std::int64_t nk = 0; nk < conv.n * conv.k; ++nk) {
    for (std::int64_t p = 0; p < conv.p; ++p) {
      T* row = spread.data() + (nk * forward.h + p * conv.stride_h) * forward.w;
      for (std::int64_t q = 0; q < conv.q; ++q) row[q * conv.stride_w] = dy[(nk * conv.p + p) * conv.q + q];
    }
  }
  const std::int64_t taps = conv.r * conv.s;
  std::vector<T> filter;  // per group, [k][c] -> [c][k]
  for (std::int64_t group = 0; group < conv.groups; ++group) {
    const std::int64_t outputs = conv.group_outputs(), inputs = conv.group_inputs();
    const auto part = exchanged(w + group * outputs * inputs * taps, outputs, inputs, taps);
    filter.insert(filter.end(), part.begin(), part.end());
  }
  if (!conv.flipped) turn(filter, taps);
  return convolve_forward(algorithm, forward, spread.data(), filter.data(), dx, scratch);
}

template <typename T>
std::uint64_t filter(Algorithm algorithm, const Convolution& conv, const T* x, const T* dy, T* dw,
                     Scratch& scratch) {
  const Convolution forward = as_forward(Operation::BackwardFilter, conv);
  const std::int64_t taps = conv.r * conv.s;
  const std::vector<T> image =
      images_as_channels(x, conv.n, conv.groups, conv.group_inputs(), conv.h * conv.w);
  const std::vector<T> grad = exchanged(dy, conv.n, conv.k, conv.p * conv.q);
  std::vector<T> result(static_cast<std::size_t>(conv.k * conv.group_inputs() * taps));
  const std::uint64_t multiplies =
      convolve_forward(algorithm, forward, image.data(), grad.data(), result.data(), scratch);
  result = exchanged(result.data(), conv.group_inputs(), conv.k, taps);
  if (conv.flipped) turn(result, taps);
  std::copy(result.begin(), result.end(), dw);
  return multiplies;
}

// The definition of the forward operation, each product w * dy or x * dy put where the other factor stands.
template <typename T>
std::uint64_t scatter(Operation operation, const Convolution& conv, const T* first, const T* dy, T* result) {
  const bool to_data = operation == Operation::BackwardData;
  const std::int64_t inputs = conv.group_inputs(), taps = conv.r * conv.s;
  std::fill_n(result, to_data ? conv.n * conv.c * conv.h * conv.w : conv.k * inputs * taps, T{0});
  std::uint64_t multiplies = 0;
  for (std::int64_t nk = 0; nk < conv.n * conv.k; ++nk) {
    const std::int64_t n = nk / conv.k, k = nk % conv.k;
    for (std::int64_t c = 0; c < inputs; ++c) {
      const std::int64_t plane = (n * conv.c + k / conv.group_outputs() * inputs + c) * conv.h * conv.w;
      for (std::int64_t rs = 0; rs < taps; ++rs) {
        const std::int64_t tap = (k * inputs + c) * taps + (conv.flipped ? taps - 1 - rs : rs);
        for (std::int64_t pq = 0; pq < conv.p * conv.q; ++pq) {
          const std::int64_t row = pq / conv.q * conv.stride_h - conv.pad_h + rs / conv.s * conv.dilation_h;
          const std::int64_t column =
              pq % conv.q * conv.stride_w - conv.pad_w + rs % conv.s * conv.dilation_w;
          if (row < 0 || row >= conv.h || column < 0 || column >= conv.w) continue;
          const std::int64_t pixel = plane + row * conv.w + column;
          result[to_data ? pixel : tap] += first[to_data ? tap : pixel] * dy[nk * conv.p * conv.q + pq];
          ++multiplies;
        }
      }
    }
  }
  return multiplies;
}

}  // namespace

Convolution as_forward(Operation operation, const Convolution& conv) {
  Convolution forward = conv;
  if (operation == Operation::Forward) return forward;
  forward.flipped = false;
  if (operation == Operation::BackwardData) {
    forward.c = conv.k, forward.k = conv.c;
    forward.h = (conv.p - 1) * conv.stride_h + 1, forward.w = (conv.q - 1) * conv.stride_w + 1;
    forward.p = conv.h, forward.q = conv.w;
    forward.pad_h = conv.dilation_h * (conv.r - 1) - conv.pad_h;
    forward.pad_w = conv.dilation_w * (conv.s - 1) - conv.pad_w;
    forward.stride_h = forward.stride_w = 1;
    return forward;
  }
  forward.n = conv.group_inputs(), forward.c = conv.groups * conv.n;
  forward.r = conv.p, forward.s = conv.q;
  forward.p = conv.r, forward.q = conv.s;
  std::swap(forward.stride_h, forward.dilation_h);
  std::swap(forward.stride_w, forward.dilation_w);
  return forward;
}

// Winograd's tiles are made for filters of 3x3, and here dy is the filter: that algorithm is a matrix
// product.
Algorithm forward_algorithm(Operation operation, Algorithm algorithm) {
  const bool winograd = operation == Operation::BackwardFilter && algorithm == Algorithm::WinogradNonfused;
  return winograd ? Algorithm::Im2colGemm : algorithm;
}

template <typename T>
std::uint64_t convolve_backward(Operation operation, Algorithm algorithm, const Convolution& conv,
                                const T* first, const T* second, T* result, Scratch& scratch) {
  if (algorithm == Algorithm::Scatter) return scatter(operation, conv, first, second, result);
  const Algorithm by = forward_algorithm(operation, algorithm);
  if (operation == Operation::BackwardData) return data(by, conv, first, second, result, scratch);
  return filter(by, conv, first, second, result, scratch);
}

template std::uint64_t convolve_backward(Operation, Algorithm, const Convolution&, const float*, const float*,
                                         float*, Scratch&);
template std::uint64_t convolve_backward(Operation, Algorithm, const Convolution&, const double*,
                                         const double*, double*, Scratch&);

}  // namespace standin
