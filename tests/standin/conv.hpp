// Forward convolution on the CPU by different algorithms. All take packed NCHW input, KCRS filter and
// NCHW output, in float or double; tensor.hpp converts the caller's types and layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace standin {

struct Convolution {
  std::int64_t n, c, h, w;  // input; c counts all groups
  std::int64_t k, r, s;     // filter: k outputs in all, c / groups inputs each
  std::int64_t p, q;        // output height and width
  std::int64_t groups = 1;
  std::int64_t pad_h = 0,
               pad_w = 0;  // before the first row and column; what follows the last comes from p and q
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t dilation_h = 1, dilation_w = 1;
  bool flipped = false;  // cuDNN's CUDNN_CONVOLUTION: the filter is turned by 180 degrees

  std::int64_t group_inputs() const { return c / groups; }
  std::int64_t group_outputs() const { return k / groups; }
};

enum class Algorithm : std::uint8_t {
  Direct,            // a loop over the taps that fall inside the image
  ImplicitGemm,      // a matrix product in whole tiles, its operand gathered on the way
  Im2colGemm,        // the operand written out first, then a plain matrix product
  Fft,               // one transform over the padded image
  FftTiling,         // the same on tiles of 32x32
  Winograd,          // F(2x2, 3x3)
  WinogradNonfused,  // F(4x4, 3x3)
};
inline constexpr int algorithm_count = 7;
const char* name_of(Algorithm);

// What cuDNN's reference documents for the algorithms that the real library can't be asked about without
// a device (FFT, FFT_TILING, WINOGRAD, WINOGRAD_NONFUSED). True for the others.
bool documented_as_supported(Algorithm, const Convolution&);

// The memory that the algorithm's transforms take, in bytes: for those that keep them in the workspace.
std::size_t transform_bytes(Algorithm, const Convolution&, std::size_t element_size);

// Memory to work in: the caller's workspace where it suffices, else the heap.
class Scratch {
 public:
  explicit Scratch(std::span<std::byte> workspace) : left_(workspace) {}

  std::size_t left() const { return left_.size(); }

  template <typename T>
  std::span<T> take(std::size_t count) {
    const std::size_t bytes = (count * sizeof(T) + 15) / 16 * 16;
    std::byte* memory = nullptr;
    if (bytes <= left_.size() && reinterpret_cast<std::uintptr_t>(left_.data()) % alignof(T) == 0) {
      memory = left_.data();
      left_ = left_.subspan(bytes);
    } else {
      memory = heap_.emplace_back(bytes).data();
    }
    return {reinterpret_cast<T*>(memory), count};
  }

 private:
  std::span<std::byte> left_;
  std::vector<std::vector<std::byte>> heap_;
};

// What this process has computed so far.
std::uint64_t runs_of(Algorithm);
std::uint64_t multiplies_so_far();

// y = conv(x, w). Counts the run and its multiplications.
template <typename T>
void convolve(Algorithm, const Convolution&, const T* x, const T* w, T* y, Scratch&);

// The algorithms themselves; each returns its number of multiplications. The filter is not flipped.
template <typename T>
std::uint64_t convolve_direct(const Convolution&, const T* x, const T* w, T* y);
template <typename T>
std::uint64_t convolve_implicit_gemm(const Convolution&, const T* x, const T* w, T* y);
template <typename T>
std::uint64_t convolve_im2col_gemm(const Convolution&, const T* x, const T* w, T* y, Scratch&);
template <typename T>
std::uint64_t convolve_fft(const Convolution&, const T* x, const T* w, T* y, std::int64_t tile, Scratch&);
template <typename T>
std::uint64_t convolve_winograd(const Convolution&, const T* x, const T* w, T* y, int outputs, Scratch&);

// The side of the square transform.
std::int64_t fft_tile(Algorithm, const Convolution&);
std::size_t fft_bytes(const Convolution&, std::int64_t tile, std::size_t element_size);
std::size_t winograd_bytes(const Convolution&, int outputs, std::size_t element_size);

}  // namespace standin
