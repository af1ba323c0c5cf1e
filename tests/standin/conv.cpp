#include "tests/standin/conv.hpp"

#include <algorithm>
#include <array>
#include <atomic>

namespace standin {
namespace {

constexpr std::array<const char*, operation_count> operation_names{"forward", "backward_data",
                                                                   "backward_filter"};
constexpr std::array<const char*, algorithm_count> names{
    "direct", "implicit_gemm", "im2col_gemm", "scatter",
    "fft",    "fft_tiling",    "winograd",    "winograd_nonfused"};

std::array<std::array<std::atomic<std::uint64_t>, algorithm_count>, operation_count> runs;
std::atomic<std::uint64_t> all_multiplies;

constexpr std::size_t largest_transform = std::size_t{1} << 30;

std::size_t bytes_of_transforms(Algorithm algorithm, const Convolution& conv, std::size_t element_size) {
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

template <typename T>
std::uint64_t convolve_plane(Operation operation, Algorithm algorithm, const Convolution& conv,
                             const T* first, const T* second, T* result, Scratch& scratch) {
  if (operation == Operation::Forward)
    return convolve_forward(algorithm, conv, first, second, result, scratch);
  return convolve_backward(operation, algorithm, conv, first, second, result, scratch);
}

// A packed tensor as its planes: [outer][depth][size].
struct Planes {
  std::int64_t outer, depth, size;

  template <typename From, typename Visit>
  void visit(From* volume, std::int64_t index, Visit visit_plane) const {
    for (std::int64_t i = 0; i < outer; ++i) visit_plane(volume + (i * depth + index) * size, i * size);
  }
};

// Three dimensions are sums over two: each pair of a plane of y and a plane of the filter meets one plane of
// x.
template <typename T>
std::uint64_t convolve_volume(Operation operation, Algorithm algorithm, const Convolution& conv,
                              const T* first, const T* second, T* result, Scratch& scratch) {
  const std::array<Planes, 3> planes{{{conv.n * conv.c, conv.d, conv.h * conv.w},
                                      {conv.k * conv.group_inputs(), conv.t, conv.r * conv.s},
                                      {conv.n * conv.k, conv.z, conv.p * conv.q}}};
  std::array<std::vector<T>, 3> plane;  // of x, w, y
  for (std::size_t i = 0; i < 3; ++i)
    plane[i].resize(static_cast<std::size_t>(planes[i].outer * planes[i].size));
  const std::size_t a = first_of(operation), b = second_of(operation), c = result_of(operation);
  std::fill_n(result, planes[c].outer * planes[c].depth * planes[c].size, T{0});
  Convolution flat = conv;
  flat.d = flat.t = flat.z = 1;
  std::uint64_t multiplies = 0;
  for (std::int64_t z = 0; z < conv.z; ++z) {
    for (std::int64_t t = 0; t < conv.t; ++t) {
      const std::int64_t d = z * conv.stride_d - conv.pad_d + t * conv.dilation_d;
      if (d < 0 || d >= conv.d) continue;
      const std::int64_t at[] = {d, conv.flipped ? conv.t - 1 - t : t, z};
      planes[a].visit(first, at[a], [&](const T* from, std::int64_t to) {
        std::copy_n(from, planes[a].size, plane[a].begin() + to);
      });
      planes[b].visit(second, at[b], [&](const T* from, std::int64_t to) {
        std::copy_n(from, planes[b].size, plane[b].begin() + to);
      });
      Scratch again = scratch;
      multiplies += convolve_plane(operation, algorithm, flat, plane[a].data(), plane[b].data(),
                                   plane[c].data(), again);
      planes[c].visit(result, at[c], [&](T* to, std::int64_t from) {
        for (std::int64_t i = 0; i < planes[c].size; ++i)
          to[i] += plane[c][static_cast<std::size_t>(from + i)];
      });
    }
  }
  return multiplies;
}

}  // namespace

const char* name_of(Operation operation) { return operation_names[static_cast<std::size_t>(operation)]; }
const char* name_of(Algorithm algorithm) { return names[static_cast<std::size_t>(algorithm)]; }

bool documented_as_supported(Operation operation, Algorithm algorithm, const Convolution& conv) {
  if (algorithm == Algorithm::Scatter) return operation != Operation::Forward;
  // no engine is known for these
  if (operation == Operation::BackwardFilter &&
      (algorithm == Algorithm::FftTiling || algorithm == Algorithm::Winograd))
    return false;
  if (algorithm < Algorithm::Fft) return true;
  const bool plain = conv.stride_h == 1 && conv.stride_w == 1 && conv.dilation_h == 1 && conv.dilation_w == 1;
  if (!plain || conv.is_volume()) return false;
  switch (algorithm) {
    case Algorithm::Fft:  // "feature map height + 2 * zero-padding height must equal 256 or less"
      if (conv.h + 2 * conv.pad_h > 256 || conv.w + 2 * conv.pad_w > 256) return false;
      break;
    case Algorithm::FftTiling:  // "when neither of the filter dimensions is 1, [they] must not be larger than
                                // 32"
      if (conv.r > 32 || conv.s > 32) return false;
      break;
    default:
      if (conv.r != 3 || conv.s != 3) return false;
      // turned round, its padding is what the filter is larger by
      return operation == Operation::Forward || (conv.pad_h < conv.r && conv.pad_w < conv.s);
  }
  // "filter height must be greater than zero-padding height"
  return conv.r > conv.pad_h && conv.s > conv.pad_w && conv.r <= conv.h + 2 * conv.pad_h &&
         conv.s <= conv.w + 2 * conv.pad_w &&
         transform_bytes(operation, algorithm, conv, sizeof(float)) <= largest_transform;
}

std::size_t transform_bytes(Operation operation, Algorithm algorithm, const Convolution& conv,
                            std::size_t element_size) {
  return bytes_of_transforms(forward_algorithm(operation, algorithm), as_forward(operation, conv),
                             element_size);
}

std::uint64_t runs_of(Operation operation, Algorithm algorithm) {
  return runs.at(static_cast<std::size_t>(operation)).at(static_cast<std::size_t>(algorithm)).load();
}

std::uint64_t multiplies_so_far() { return all_multiplies.load(); }

template <typename T>
std::uint64_t convolve_forward(Algorithm algorithm, const Convolution& conv, const T* x, const T* w, T* y,
                               Scratch& scratch) {
  std::vector<T> turned;
  if (conv.flipped) {
    const std::int64_t taps = conv.r * conv.s;
    turned.assign(w, w + conv.k * conv.group_inputs() * taps);
    for (auto filter = turned.begin(); filter != turned.end(); filter += taps)
      std::reverse(filter, filter + taps);
    w = turned.data();
  }
  switch (algorithm) {
    case Algorithm::ImplicitGemm:
      return convolve_implicit_gemm(conv, x, w, y);
    case Algorithm::Im2colGemm:
      return convolve_im2col_gemm(conv, x, w, y, scratch);
    case Algorithm::Fft:
    case Algorithm::FftTiling:
      return convolve_fft(conv, x, w, y, fft_tile(algorithm, conv), scratch);
    case Algorithm::Winograd:
      return convolve_winograd(conv, x, w, y, 2, scratch);
    case Algorithm::WinogradNonfused:
      return convolve_winograd(conv, x, w, y, 4, scratch);
    default:
      return convolve_direct(conv, x, w, y);
  }
}

template <typename T>
void convolve(Operation operation, Algorithm algorithm, const Convolution& conv, const T* first,
              const T* second, T* result, Scratch& scratch) {
  const std::uint64_t multiplies =
      conv.is_volume() ? convolve_volume(operation, algorithm, conv, first, second, result, scratch)
                       : convolve_plane(operation, algorithm, conv, first, second, result, scratch);
  runs.at(static_cast<std::size_t>(operation))
      .at(static_cast<std::size_t>(algorithm))
      .fetch_add(1, std::memory_order_relaxed);
  all_multiplies.fetch_add(multiplies, std::memory_order_relaxed);
}

template std::uint64_t convolve_forward(Algorithm, const Convolution&, const float*, const float*, float*,
                                        Scratch&);
template std::uint64_t convolve_forward(Algorithm, const Convolution&, const double*, const double*, double*,
                                        Scratch&);
template void convolve(Operation, Algorithm, const Convolution&, const float*, const float*, float*,
                       Scratch&);
template void convolve(Operation, Algorithm, const Convolution&, const double*, const double*, double*,
                       Scratch&);

}  // namespace standin
