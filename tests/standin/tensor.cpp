// Between the caller's types and layouts and packed float or double.
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
  const std::size_t last = tensor.rank - 1;
  std::array<std::int64_t, max_rank> at{};
  for (std::int64_t packed = 0; packed < tensor.count();) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < last; ++i) offset += at[i] * tensor.stride[i];
    for (std::int64_t i = 0; i < tensor.dim[last]; ++i, offset += tensor.stride[last])
      visit(packed++, offset);
    for (std::size_t i = last; i-- > 0 && ++at[i] == tensor.dim[i];) at[i] = 0;
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
  // from the last dimension: width, height, depth
  const auto extent = [](const Tensor& tensor, std::size_t from_last) {
    return tensor.rank >= 3 + from_last ? tensor.dim[tensor.rank - 1 - from_last] : 1;
  };
  Convolution conv{};
  conv.n = x.dim[0], conv.c = x.dim[1], conv.k = w.dim[0];
  conv.w = extent(x, 0), conv.h = extent(x, 1), conv.d = extent(x, 2);
  conv.s = extent(w, 0), conv.r = extent(w, 1), conv.t = extent(w, 2);
  conv.q = extent(y, 0), conv.p = extent(y, 1), conv.z = extent(y, 2);
  conv.groups = w.dim[1] > 0 ? x.dim[1] / w.dim[1] : 1;
  return conv;
}

void set_spatial(Convolution& conv, const Spatial& spatial) {
  const auto from_last = [](const std::vector<std::int64_t>& values, std::size_t i, std::int64_t& to) {
    if (i < values.size()) to = values[values.size() - 1 - i];
  };
  from_last(spatial.pad, 0, conv.pad_w), from_last(spatial.stride, 0, conv.stride_w);
  from_last(spatial.pad, 1, conv.pad_h), from_last(spatial.stride, 1, conv.stride_h);
  from_last(spatial.pad, 2, conv.pad_d), from_last(spatial.stride, 2, conv.stride_d);
  from_last(spatial.dilation, 0, conv.dilation_w);
  from_last(spatial.dilation, 1, conv.dilation_h);
  from_last(spatial.dilation, 2, conv.dilation_d);
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
