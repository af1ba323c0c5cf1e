#include "shim/profile/compare.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace convpin {
namespace {

constexpr std::size_t kPieces = 64, kPieceBytes = 16 * 1024;

double from_half(std::uint16_t bits) {  // IEEE 754 binary16
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31) return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
}

double from_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

template <typename T, typename Convert>
void append(std::vector<double>& out, const void* data, std::size_t count, Convert convert) {
  for (std::size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, static_cast<const char*>(data) + i * sizeof value, sizeof value);
    out.push_back(convert(value));
  }
}

}  // namespace

std::vector<double> decode(const void* data, std::size_t count, DataType type) {
  std::vector<double> out;
  out.reserve(count);
  const auto plain = [](auto value) { return static_cast<double>(value); };
  switch (type) {
    case DataType::Float: append<float>(out, data, count, plain); break;
    case DataType::Double: append<double>(out, data, count, plain); break;
    case DataType::Half: append<std::uint16_t>(out, data, count, from_half); break;
    case DataType::BFloat16: append<std::uint16_t>(out, data, count, from_bfloat16); break;
    case DataType::Int8: append<std::int8_t>(out, data, count, plain); break;
    case DataType::Int32: append<std::int32_t>(out, data, count, plain); break;
    default: break;
  }
  return out;
}

std::vector<double> sample_of(const Driver& driver, CUstream stream, CUdeviceptr address, std::size_t bytes, DataType type) {
  const std::size_t element = size_of(type);
  if (element == 0 || bytes == 0) return {};
  const std::size_t pieces = std::min(kPieces, (bytes + kPieceBytes - 1) / kPieceBytes);
  const std::size_t piece = std::min(kPieceBytes, bytes) / element * element;
  std::vector<char> host(pieces * piece);
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::size_t last = (bytes - piece) / element;
    const std::size_t at = pieces == 1 ? 0 : last * i / (pieces - 1) * element;
    if (driver.copy_to_host(host.data() + i * piece, address + at, piece, stream) != CUDA_SUCCESS) return {};
  }
  if (driver.synchronize(stream) != CUDA_SUCCESS) return {};
  return decode(host.data(), host.size() / element, type);
}

double relative_error(const std::vector<double>& out, const std::vector<double>& ref) {
  double difference = 0, scale = 0;
  for (std::size_t i = 0; i < std::min(out.size(), ref.size()); ++i) {
    if (std::isnan(ref[i])) continue;
    if (std::isnan(out[i])) return std::numeric_limits<double>::infinity();
    if (out[i] != ref[i]) difference = std::max(difference, std::abs(out[i] - ref[i]));
    scale = std::max(scale, std::abs(ref[i]));
  }
  if (difference == 0) return 0;
  return scale > 0 ? difference / scale : std::numeric_limits<double>::infinity();
}

}  // namespace convpin
