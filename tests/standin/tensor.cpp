// Between the caller's types and layouts and packed NCHW float or double.
#include <bit>
#include <cmath>
#include <cstring>

#include "tests/standin/graph.hpp"

namespace standin {
namespace {

struct Half {
  std::uint16_t bits;

  explicit operator float() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t rest = bits & 0x7fffu;
    if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    // as a float its exponent is 112 too small; the product is exact, for subnormal halves too
    return std::bit_cast<float>(sign | rest << 13) * 0x1p112f;
  }

  static Half from(float value) {
    const auto sign = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16 & 0x8000u);
    const float size = std::fabs(value);
    if (std::isnan(value)) return {static_cast<std::uint16_t>(sign | 0x7e00u)};
    if (size >= 65520.0f) return {static_cast<std::uint16_t>(sign | 0x7c00u)};
    if (size < 0x1p-14f) {  // subnormal: a multiple of 2^-24, rounded to even by the FPU
      return {static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(size * 0x1p24f)))};
    }
    std::uint32_t b = std::bit_cast<std::uint32_t>(size);
    b += 0xfffu + (b >> 13 & 1u);  // to the nearest, ties to even
    return {static_cast<std::uint16_t>(sign | ((b - (112u << 23)) >> 13))};
  }
};

struct BFloat16 {
  std::uint16_t bits;

  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

  static BFloat16 from(float value) {
    const auto b = std::bit_cast<std::uint32_t>(value);
    if (std::isnan(value)) return {static_cast<std::uint16_t>(b >> 16 | 0x40u)};
    return {static_cast<std::uint16_t>((b + 0x7fffu + (b >> 16 & 1u)) >> 16)};
  }
};

template <typename E, typename T>
T decode(E element) {
  if constexpr (std::is_floating_point_v<E>)
    return static_cast<T>(element);
  else
    return static_cast<T>(static_cast<float>(element));
}

template <typename E, typename T>
E encode(T value) {
  if constexpr (std::is_floating_point_v<E>)
    return static_cast<E>(value);
  else
    return E::from(static_cast<float>(value));
}

template <typename Visit>
void visit_offsets(const Tensor& tensor, Visit visit) {
  std::int64_t packed = 0;
  for (std::int64_t n = 0; n < tensor.dim[0]; ++n) {
    for (std::int64_t c = 0; c < tensor.dim[1]; ++c) {
      for (std::int64_t h = 0; h < tensor.dim[2]; ++h) {
        std::int64_t offset = n * tensor.stride[0] + c * tensor.stride[1] + h * tensor.stride[2];
        for (std::int64_t w = 0; w < tensor.dim[3]; ++w, offset += tensor.stride[3]) visit(packed++, offset);
      }
    }
  }
}

// Calls `use` with a null pointer to the element type.
template <typename Use>
void with_type(cudnnDataType_t type, Use use) {
  if (type == CUDNN_DATA_FLOAT) use(static_cast<float*>(nullptr));
  if (type == CUDNN_DATA_DOUBLE) use(static_cast<double*>(nullptr));
  if (type == CUDNN_DATA_HALF) use(static_cast<Half*>(nullptr));
  if (type == CUDNN_DATA_BFLOAT16) use(static_cast<BFloat16*>(nullptr));
}

}  // namespace

std::size_t size_of(cudnnDataType_t type) {
  std::size_t size = 0;
  with_type(type, [&]<typename E>(E*) { size = sizeof(E); });
  return size;
}

Convolution shape_of(const Tensor& x, const Tensor& w, const Tensor& y) {
  Convolution conv{};
  conv.n = x.dim[0], conv.c = x.dim[1], conv.h = x.dim[2], conv.w = x.dim[3];
  conv.k = w.dim[0], conv.r = w.dim[2], conv.s = w.dim[3];
  conv.p = y.dim[2], conv.q = y.dim[3];
  conv.groups = w.dim[1] > 0 ? x.dim[1] / w.dim[1] : 1;
  return conv;
}

template <typename T>
void load(const Tensor& tensor, const void* memory, T* packed) {
  with_type(tensor.type, [&]<typename E>(E*) {
    const E* elements = static_cast<const E*>(memory);
    visit_offsets(tensor,
                  [&](std::int64_t i, std::int64_t offset) { packed[i] = decode<E, T>(elements[offset]); });
  });
}

template <typename T>
void store(const Tensor& tensor, const T* packed, void* memory) {
  with_type(tensor.type, [&]<typename E>(E*) {
    E* elements = static_cast<E*>(memory);
    visit_offsets(tensor,
                  [&](std::int64_t i, std::int64_t offset) { elements[offset] = encode<E, T>(packed[i]); });
  });
}

template <typename T>
void round_to(cudnnDataType_t type, T* values, std::int64_t count) {
  with_type(type, [&]<typename E>(E*) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = decode<E, T>(encode<E, T>(values[i]));
  });
}

template void load(const Tensor&, const void*, float*);
template void load(const Tensor&, const void*, double*);
template void store(const Tensor&, const float*, void*);
template void store(const Tensor&, const double*, void*);
template void round_to(cudnnDataType_t, float*, std::int64_t);
template void round_to(cudnnDataType_t, double*, std::int64_t);

}  // namespace standin
