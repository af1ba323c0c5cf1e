// Convolution on the CPU by different algorithms. All take packed tensors in the order NC[D]HW (the filter
// KC[T]RS), in float or double; tensor.cpp converts the caller's types and layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace standin {

enum class Operation : std::uint8_t { Forward, BackwardData, BackwardFilter };
inline constexpr int operation_count = 3;
const char* name_of(Operation);  // "forward", "backward_data", "backward_filter"

// The same x, w and y for all three operations; one of them (or its gradient) is the result. The two
// others are the first and the second input, in this order, as in cuDNN's legacy calls.
constexpr std::size_t result_of(Operation operation) {
  return operation == Operation::Forward ? 2 : operation == Operation::BackwardData ? 0 : 1;
}
constexpr std::size_t first_of(Operation operation) { return operation == Operation::BackwardData ? 1 : 0; }
constexpr std::size_t second_of(Operation operation) { return operation == Operation::Forward ? 1 : 2; }

struct Convolution {
  std::int64_t n, c, h, w;  // x; c counts all groups
  std::int64_t k, r, s;     // w: k outputs in all, c / groups inputs each
  std::int64_t p, q;        // y's height and width
  std::int64_t groups = 1;
  std::int64_t pad_h = 0,
               pad_w = 0;  // before the first row and column; what follows the last comes from p and q
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t dilation_h = 1, dilation_w = 1;
  bool flipped = false;              // cuDNN's CUDNN_CONVOLUTION: the filter is turned by 180 degrees
  std::int64_t d = 1, t = 1, z = 1;  // depth of x, w, y
  std::int64_t pad_d = 0, stride_d = 1, dilation_d = 1;

  std::int64_t group_inputs() const { return c / groups; }
  std::int64_t group_outputs() const { return k / groups; }
  bool is_volume() const { return d > 1 || t > 1 || z > 1; }
};

enum class Algorithm : std::uint8_t {
  Direct,            // a loop over the taps that fall inside the image
  ImplicitGemm,      // a matrix product in whole tiles, its operand gathered on the way
  Im2colGemm,        // the operand written out first, then a plain matrix product
  Scatter,           // backward: each product is added where it belongs, as some engines do with atomics
  Fft,               // one transform over the padded image
  FftTiling,         // the same on tiles of 32x32
  Winograd,          // F(2x2, 3x3)
  WinogradNonfused,  // F(4x4, 3x3)
};
inline constexpr int algorithm_count = 8;
const char* name_of(Algorithm);

// What cuDNN's reference documents for the algorithms that the real library can't be asked about without
// a device (FFT, FFT_TILING, WINOGRAD, WINOGRAD_NONFUSED). True for the others that exist.
bool documented_as_supported(Operation, Algorithm, const Convolution&);

// The memory that the algorithm's transforms take, in bytes: for those that keep them in the workspace.
std::size_t transform_bytes(Operation, Algorithm, const Convolution&, std::size_t element_size);

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
std::uint64_t runs_of(Operation, Algorithm);
std::uint64_t multiplies_so_far();

// Counts the run and its multiplications.
template <typename T>
void convolve(Operation, Algorithm, const Convolution&, const T* first, const T* second, T* result, Scratch&);

// Two dimensions. Each returns its number of multiplications.
template <typename T>
std::uint64_t convolve_forward(Algorithm, const Convolution&, const T* x, const T* w, T* y, Scratch&);
template <typename T>
std::uint64_t convolve_backward(Operation, Algorithm, const Convolution&, const T* first, const T* second,
                                T* result, Scratch&);

// The forward convolution as which a backward one is computed (conv_backward.cpp), and by which algorithm.
Convolution as_forward(Operation, const Convolution&);
Algorithm forward_algorithm(Operation, Algorithm);

// The algorithms themselves. The filter is not flipped.
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
