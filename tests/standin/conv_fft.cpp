// Convolution as a product of spectra (overlap-save): each input tile of T x T gives (T-R+1) x (T-S+1)
// outputs. One tile for the whole padded image is cuDNN's FFT, tiles of 32 are its FFT_TILING.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "tests/standin/conv.hpp"

namespace standin {
namespace {

// Transforms of T x T real planes. A spectrum is T rows of T/2+1 values (the others are their conjugates),
// all real parts first, then all imaginary parts.
template <typename T>
class PlaneFft {
 public:
  explicit PlaneFft(std::int64_t side)
      : side_(side),
        half_(side / 2 + 1),
        cosine_(size(side)),
        sine_(size(side)),
        re_(size(side)),
        im_(size(side)) {
    for (std::int64_t i = 0; i < side; ++i) {
      const double angle = -2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(side);
      cosine_[size(i)] = static_cast<T>(std::cos(angle));
      sine_[size(i)] = static_cast<T>(std::sin(angle));
    }
  }

  std::int64_t spectrum_size() const { return side_ * half_; }
  std::uint64_t multiplies() const { return multiplies_; }

  void forward(const T* plane, T* spectrum) {
    T* re = spectrum;
    T* im = spectrum + spectrum_size();
    for (std::int64_t row = 0; row < side_; row += 2) {  // two real rows make one complex row
      std::copy_n(plane + row * side_, side_, re_.begin());
      std::copy_n(plane + (row + 1) * side_, side_, im_.begin());
      transform(false);
      for (std::int64_t f = 0; f < half_; ++f) {
        const std::size_t a = size(f), b = size((side_ - f) % side_);
        re[row * half_ + f] = (re_[a] + re_[b]) / 2;
        im[row * half_ + f] = (im_[a] - im_[b]) / 2;
        re[(row + 1) * half_ + f] = (im_[a] + im_[b]) / 2;
        im[(row + 1) * half_ + f] = (re_[b] - re_[a]) / 2;
      }
    }
    columns(re, im, false);
  }

  // Destroys the spectrum.
  void inverse(T* spectrum, T* plane) {
    T* re = spectrum;
    T* im = spectrum + spectrum_size();
    columns(re, im, true);
    const T scale = T{1} / static_cast<T>(side_ * side_);
    for (std::int64_t row = 0; row < side_; row += 2) {
      for (std::int64_t f = 0; f < side_; ++f) {
        const std::int64_t mirrored = f < half_ ? f : side_ - f;
        const T sign = f < half_ ? T{1} : T{-1};
        const std::int64_t a = row * half_ + mirrored, b = a + half_;
        re_[size(f)] = re[a] - sign * im[b];
        im_[size(f)] = sign * im[a] + re[b];
      }
      transform(true);
      for (std::int64_t i = 0; i < side_; ++i) {
        plane[row * side_ + i] = re_[size(i)] * scale;
        plane[(row + 1) * side_ + i] = im_[size(i)] * scale;
      }
    }
  }

 private:
  static std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

  void columns(T* re, T* im, bool inverted) {
    for (std::int64_t column = 0; column < half_; ++column) {
      for (std::int64_t i = 0; i < side_; ++i) {
        re_[size(i)] = re[i * half_ + column];
        im_[size(i)] = im[i * half_ + column];
      }
      transform(inverted);
      for (std::int64_t i = 0; i < side_; ++i) {
        re[i * half_ + column] = re_[size(i)];
        im[i * half_ + column] = im_[size(i)];
      }
    }
  }

  // Radix 2, in place, on re_ and im_.
  void transform(bool inverted) {
    for (std::int64_t i = 1, j = 0; i < side_; ++i) {
      std::int64_t bit = side_ / 2;
      for (; (j & bit) != 0; bit /= 2) j ^= bit;
      j ^= bit;
      if (i < j) {
        std::swap(re_[size(i)], re_[size(j)]);
        std::swap(im_[size(i)], im_[size(j)]);
      }
    }
    for (std::int64_t length = 2; length <= side_; length *= 2) {
      const std::int64_t step = side_ / length;
      for (std::int64_t start = 0; start < side_; start += length) {
        for (std::int64_t i = 0; i < length / 2; ++i) {
          const std::size_t a = size(start + i), b = size(start + i + length / 2);
          const T c = cosine_[size(i * step)], s = inverted ? -sine_[size(i * step)] : sine_[size(i * step)];
          const T re = re_[b] * c - im_[b] * s, im = re_[b] * s + im_[b] * c;
          re_[b] = re_[a] - re;
          im_[b] = im_[a] - im;
          re_[a] += re;
          im_[a] += im;
        }
      }
      multiplies_ += static_cast<std::uint64_t>(side_ / 2) * 4;
    }
  }

  std::int64_t side_, half_;
  std::vector<T> cosine_, sine_, re_, im_;
  std::uint64_t multiplies_ = 0;
};

// Copies the part of a plane that a tile covers, with zeros around.
template <typename T>
void cut(const T* plane, std::int64_t height, std::int64_t width, std::int64_t top, std::int64_t left,
         std::int64_t side, T* tile) {
  std::fill(tile, tile + side * side, T{0});
  const std::int64_t first = std::max<std::int64_t>(0, -left), end = std::min(side, width - left);
  for (std::int64_t i = std::max<std::int64_t>(0, -top); i < std::min(side, height - top); ++i) {
    if (end > first)
      std::copy_n(plane + (top + i) * width + left + first, end - first, tile + i * side + first);
  }
}

}  // namespace

std::int64_t fft_tile(Algorithm algorithm, const Convolution& conv) {
  const std::int64_t whole = std::max(conv.p + conv.r - 1, conv.q + conv.s - 1);
  const std::int64_t side = algorithm == Algorithm::FftTiling ? 32 : std::max<std::int64_t>(whole, 2);
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(side)));
}

// The filter's spectra, one image's input spectra of one group, and one sum.
std::size_t fft_bytes(const Convolution& conv, std::int64_t tile, std::size_t element_size) {
  const std::int64_t spectra = conv.k * conv.group_inputs() + conv.group_inputs() + 1;
  return static_cast<std::size_t>(spectra * tile * (tile / 2 + 1) * 2) * element_size + 64;
}

template <typename T>
std::uint64_t convolve_fft(const Convolution& conv, const T* x, const T* w, T* y, std::int64_t tile,
                           Scratch& scratch) {
  PlaneFft<T> fft(tile);
  const std::int64_t values = fft.spectrum_size(), inputs = conv.group_inputs(),
                     outputs = conv.group_outputs();
  const auto filters = scratch.take<T>(static_cast<std::size_t>(conv.k * inputs * values * 2));
  const auto images = scratch.take<T>(static_cast<std::size_t>(inputs * values * 2));
  const auto sum = scratch.take<T>(static_cast<std::size_t>(values * 2));
  std::vector<T> plane(static_cast<std::size_t>(tile * tile));
  std::uint64_t products = 0;
  for (std::int64_t kc = 0; kc < conv.k * inputs; ++kc) {
    cut(w + kc * conv.r * conv.s, conv.r, conv.s, 0, 0, tile, plane.data());
    fft.forward(plane.data(), filters.data() + kc * values * 2);
  }
  const std::int64_t step_h = tile - conv.r + 1, step_w = tile - conv.s + 1;
  for (std::int64_t ng = 0; ng < conv.n * conv.groups; ++ng) {
    const std::int64_t first_output = ng % conv.groups * outputs;
    for (std::int64_t top = 0; top < conv.p; top += step_h) {
      for (std::int64_t left = 0; left < conv.q; left += step_w) {
        for (std::int64_t c = 0; c < inputs; ++c) {
          cut(x + (ng * inputs + c) * conv.h * conv.w, conv.h, conv.w, top - conv.pad_h, left - conv.pad_w,
              tile, plane.data());
          fft.forward(plane.data(), images.data() + c * values * 2);
        }
        for (std::int64_t k = 0; k < outputs; ++k) {
          std::fill(sum.begin(), sum.end(), T{0});
          T* sum_re = sum.data();
          T* sum_im = sum_re + values;
          for (std::int64_t c = 0; c < inputs; ++c) {
            const T* a = images.data() + c * values * 2;
            const T* b = filters.data() + ((first_output + k) * inputs + c) * values * 2;
            for (std::int64_t f = 0; f < values; ++f) {  // a * conj(b): a correlation
              sum_re[f] += a[f] * b[f] + a[values + f] * b[values + f];
              sum_im[f] += a[values + f] * b[f] - a[f] * b[values + f];
            }
          }
          products += static_cast<std::uint64_t>(inputs * values * 4);
          fft.inverse(sum.data(), plane.data());
          T* out = y + (ng * outputs + k) * conv.p * conv.q;
          for (std::int64_t p = top; p < std::min(conv.p, top + step_h); ++p) {
            std::copy_n(plane.data() + (p - top) * tile, std::min(step_w, conv.q - left),
                        out + p * conv.q + left);
          }
        }
      }
    }
  }
  return products + fft.multiplies();
}

template std::uint64_t convolve_fft(const Convolution&, const float*, const float*, float*, std::int64_t,
                                    Scratch&);
template std::uint64_t convolve_fft(const Convolution&, const double*, const double*, double*, std::int64_t,
                                    Scratch&);

}  // namespace standin
