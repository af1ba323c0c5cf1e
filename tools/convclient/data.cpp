#include "tools/convclient/data.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace convclient {

using convpin::DataType;
using convpin::Tensor;

namespace {

std::uint64_t splitmix64(
    std::uint64_t x) {  // Steele, Lea, Flood: Fast splittable pseudorandom number generators
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

template <typename T>
T load(const std::byte* bytes, std::int64_t at) {
  T value;
  std::memcpy(&value, bytes + static_cast<std::size_t>(at) * sizeof(T), sizeof(T));
  return value;
}
template <typename T>
void store(Bytes& bytes, std::int64_t at, T value) {
  std::memcpy(bytes.data() + static_cast<std::size_t>(at) * sizeof(T), &value, sizeof(T));
}

}  // namespace

bool can_hold(DataType type) {
  return type == DataType::Float || type == DataType::Double || type == DataType::Half ||
         type == DataType::BFloat16;
}

std::int64_t elements_of(const Tensor& t) {
  std::int64_t n = 1;
  for (int d = 0; d < t.rank; ++d) n *= t.dims[d];
  return n;
}

double read(DataType type, const Bytes& bytes, std::int64_t at) { return read(type, bytes.data(), at); }

double read(DataType type, const std::byte* bytes, std::int64_t at) {
  switch (type) {
    case DataType::Double:
      return load<double>(bytes, at);
    case DataType::Half:
      return from_half(load<std::uint16_t>(bytes, at));
    case DataType::BFloat16:
      return from_bfloat16(load<std::uint16_t>(bytes, at));
    default:
      return load<float>(bytes, at);
  }
}

void write(DataType type, Bytes& bytes, std::int64_t at, double value) {
  switch (type) {
    case DataType::Double:
      return store(bytes, at, value);
    case DataType::Half:
      return store(bytes, at, to_half(static_cast<float>(value)));
    case DataType::BFloat16:
      return store(bytes, at, to_bfloat16(static_cast<float>(value)));
    default:
      return store(bytes, at, static_cast<float>(value));
  }
}

namespace {

void fill_random(DataType type, Bytes& bytes, std::int64_t count, std::uint64_t seed) {
  const std::uint64_t start = splitmix64(seed);
  for (std::int64_t i = 0; i < count; ++i) {
    // 24 bits, so that the value is exact in float before it is rounded to the type.
    const auto bits = splitmix64(start + static_cast<std::uint64_t>(i)) >> 40;
    write(type, bytes, i, static_cast<double>(bits) / (1 << 23) - 1.0);
  }
}

}  // namespace

Bytes random_bytes(const Tensor& t, std::uint64_t seed) {
  Bytes bytes(bytes_of(t));
  fill_random(t.type, bytes, static_cast<std::int64_t>(bytes.size() / convpin::size_of(t.type)), seed);
  return bytes;
}

Bytes repeated_random_bytes(const Tensor& t, std::uint64_t seed) {
  constexpr std::size_t kBlock = 999983;  // a prime, so that no row or channel is like its neighbour
  Bytes bytes(bytes_of(t));
  const std::size_t element = convpin::size_of(t.type), block = std::min(kBlock, bytes.size() / element);
  fill_random(t.type, bytes, static_cast<std::int64_t>(block), seed);
  for (std::size_t done = block * element; done < bytes.size();) {
    const std::size_t more = std::min(block * element, bytes.size() - done);
    std::memcpy(bytes.data() + done, bytes.data(), more);
    done += more;
  }
  return bytes;
}

std::uint64_t fnv1a(const Bytes& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::byte b : bytes) hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3;
  return hash;
}

std::uint16_t to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (magnitude >= 65520.0f) return sign | 0x7c00;
  if (magnitude < 0x1p-14f)  // subnormal: units of 2^-24, nearbyint rounds to even
    return sign | static_cast<std::uint16_t>(std::nearbyint(magnitude * 0x1p24f));
  const std::uint32_t m = (bits & 0x7fffffff) - (112u << 23);  // exponent bias 127 to 15
  return sign | static_cast<std::uint16_t>((m + 0xfff + (m >> 13 & 1)) >> 13);
}

float from_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 31, mantissa = half & 0x3ff;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  const std::uint32_t e = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | e << 23 | mantissa << 13);
}

std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float from_bfloat16(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

}  // namespace convclient
