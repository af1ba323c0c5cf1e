#include "tests/standin/conv.hpp"

#include <algorithm>
#include <array>
#include <atomic>

namespace standin {
namespace {

constexpr std::array<const char*, algorithm_count> names{
    "direct", "implicit_gemm", "im2col_gemm", "fft", "fft_tiling", "winograd", "winograd_nonfused"};

std::array<std::atomic<std::uint64_t>, algorithm_count> runs;
std::atomic<std::uint64_t> all_multiplies;

constexpr std::size_t largest_transform = std::size_t{1} << 30;

}  // namespace

const char* name_of(Algorithm algorithm) { return names[static_cast<std::size_t>(algorithm)]; }

bool documented_as_supported(Algorithm algorithm, const Convolution& conv) {
  if (algorithm < Algorithm::Fft) return true;
  const bool plain = conv.stride_h == 1 && conv.stride_w == 1 && conv.dilation_h == 1 && conv.dilation_w == 1;
  if (!plain) return false;
  switch (algorithm) {
    case Algorithm::Fft:  // "feature map height + 2 * zero-padding height must equal 256 or less"
      if (conv.h + 2 * conv.pad_h > 256 || conv.w + 2 * conv.pad_w > 256) return false;
      break;
    case Algorithm::FftTiling:  // "when neither of the filter dimensions is 1, [they] must not be larger than
                                // 32"
      if (conv.r > 32 || conv.s > 32) return false;
      break;
    default:
      return conv.r == 3 && conv.s == 3;
  }
  // "filter height must be greater than zero-padding height"
  return conv.r > conv.pad_h && conv.s > conv.pad_w && conv.r <= conv.h + 2 * conv.pad_h &&
         conv.s <= conv.w + 2 * conv.pad_w &&
         transform_bytes(algorithm, conv, sizeof(float)) <= largest_transform;
}

std::size_t transform_bytes(Algorithm algorithm, const Convolution& conv, std::size_t element_size) {
  switch (algorithm) {
    case Algorithm::Fft:
    case Algorithm::FftTiling:
      return fft_bytes(conv, fft_tile(algorithm, conv), element_size);
    case Algorithm::Winograd:
      return winograd_bytes(conv, 2, element_size);
    case Algorithm::WinogradNonfused:
      return winograd_bytes(conv, 4, element_size);
    default:
      return 0;
  }
}

std::uint64_t runs_of(Algorithm algorithm) { return runs.at(static_cast<std::size_t>(algorithm)).load(); }

std::uint64_t multiplies_so_far() { return all_multiplies.load(); }

template <typename T>
void convolve(Algorithm algorithm, const Convolution& conv, const T* x, const T* w, T* y, Scratch& scratch) {
  std::vector<T> turned;
  if (conv.flipped) {
    const std::int64_t taps = conv.r * conv.s;
    turned.assign(w, w + conv.k * conv.group_inputs() * taps);
    for (auto filter = turned.begin(); filter != turned.end(); filter += taps)
      std::reverse(filter, filter + taps);
    w = turned.data();
  }
  std::uint64_t multiplies = 0;
  switch (algorithm) {
    case Algorithm::Direct:
      multiplies = convolve_direct(conv, x, w, y);
      break;
    case Algorithm::ImplicitGemm:
      multiplies = convolve_implicit_gemm(conv, x, w, y);
      break;
    case Algorithm::Im2colGemm:
      multiplies = convolve_im2col_gemm(conv, x, w, y, scratch);
      break;
    case Algorithm::Fft:
    case Algorithm::FftTiling:
      multiplies = convolve_fft(conv, x, w, y, fft_tile(algorithm, conv), scratch);
      break;
    case Algorithm::Winograd:
      multiplies = convolve_winograd(conv, x, w, y, 2, scratch);
      break;
    case Algorithm::WinogradNonfused:
      multiplies = convolve_winograd(conv, x, w, y, 4, scratch);
      break;
  }
  runs.at(static_cast<std::size_t>(algorithm)).fetch_add(1, std::memory_order_relaxed);
  all_multiplies.fetch_add(multiplies, std::memory_order_relaxed);
}

template void convolve(Algorithm, const Convolution&, const float*, const float*, float*, Scratch&);
template void convolve(Algorithm, const Convolution&, const double*, const double*, double*, Scratch&);

}  // namespace standin
