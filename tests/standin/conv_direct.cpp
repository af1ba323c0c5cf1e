// The plain loop. Taps that fall into the padding are skipped, so that it multiplies least of all
// algorithms that don't transform.
#include <algorithm>

#include "tests/standin/conv.hpp"

namespace standin {

template <typename T>
std::uint64_t convolve_direct(const Convolution& conv, const T* x, const T* w, T* y) {
  std::uint64_t multiplies = 0;
  std::fill(y, y + conv.n * conv.k * conv.p * conv.q, T{0});
  const std::int64_t inputs = conv.group_inputs();
  for (std::int64_t nk = 0; nk < conv.n * conv.k; ++nk) {
    const std::int64_t n = nk / conv.k, k = nk % conv.k;
    const std::int64_t first_input = k / conv.group_outputs() * inputs;
    T* out = y + nk * conv.p * conv.q;
    for (std::int64_t c = 0; c < inputs; ++c) {
      const T* image = x + (n * conv.c + first_input + c) * conv.h * conv.w;
      const T* filter = w + (k * inputs + c) * conv.r * conv.s;
      for (std::int64_t rs = 0; rs < conv.r * conv.s; ++rs) {
        const std::int64_t row_offset = rs / conv.s * conv.dilation_h - conv.pad_h;
        const std::int64_t column_offset = rs % conv.s * conv.dilation_w - conv.pad_w;
        // the columns q with 0 <= q * stride + offset < w
        const std::int64_t first =
            column_offset >= 0 ? 0 : (-column_offset + conv.stride_w - 1) / conv.stride_w;
        const std::int64_t last =
            column_offset >= conv.w ? 0 : (conv.w - 1 - column_offset) / conv.stride_w + 1;
        const std::int64_t end = std::min(conv.q, last);
        if (end <= first) continue;
        for (std::int64_t p = 0; p < conv.p; ++p) {
          const std::int64_t row = p * conv.stride_h + row_offset;
          if (row < 0 || row >= conv.h) continue;
          const T* in = image + row * conv.w + column_offset;
          T* to = out + p * conv.q;
          for (std::int64_t q = first; q < end; ++q) to[q] += filter[rs] * in[q * conv.stride_w];
          multiplies += static_cast<std::uint64_t>(end - first);
        }
      }
    }
  }
  return multiplies;
}

template std::uint64_t convolve_direct(const Convolution&, const float*, const float*, float*);
template std::uint64_t convolve_direct(const Convolution&, const double*, const double*, double*);

}  // namespace standin
