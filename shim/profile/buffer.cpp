#include "shim/profile/buffer.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace convpin {
namespace {

constexpr std::size_t kBlock = 1 << 20;  // bytes; repeated over the tensor

// splitmix64
std::uint64_t next(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Bits of a number in (-1, 1): any sign and mantissa below the exponent of 1, by up to 2^-7 or as far as the type goes.
template <typename Word>
Word float_bits(std::uint64_t random, int mantissa_bits, int exponent_of_one, int span) {
  const auto mantissa = static_cast<Word>(random & ((1ull << mantissa_bits) - 1));
  const auto exponent = static_cast<Word>(exponent_of_one - 1 - static_cast<int>((random >> 56) % static_cast<unsigned>(span)));
  const auto sign = static_cast<Word>(random >> 63);
  return static_cast<Word>(static_cast<std::uint64_t>(sign) << (sizeof(Word) * 8 - 1) | static_cast<std::uint64_t>(exponent) << mantissa_bits | mantissa);
}

template <typename Make>
void fill(std::vector<unsigned char>& block, Make&& make) {
  std::uint64_t state = 1;
  using Word = decltype(make(std::uint64_t{}));
  for (std::size_t at = 0; at + sizeof(Word) <= block.size(); at += sizeof(Word)) {
    const Word word = make(next(state));
    std::memcpy(&block[at], &word, sizeof word);
  }
}

std::vector<unsigned char> random_block(DataType type) {
  std::vector<unsigned char> block(kBlock);
  switch (type) {
    case DataType::Float: fill(block, [](auto r) { return float_bits<std::uint32_t>(r, 23, 127, 8); }); break;
    case DataType::Double: fill(block, [](auto r) { return float_bits<std::uint64_t>(r, 52, 1023, 8); }); break;
    case DataType::Half: fill(block, [](auto r) { return float_bits<std::uint16_t>(r, 10, 15, 8); }); break;
    case DataType::BFloat16: fill(block, [](auto r) { return float_bits<std::uint16_t>(r, 7, 127, 8); }); break;
    case DataType::Fp8E4M3: fill(block, [](auto r) { return float_bits<std::uint8_t>(r, 3, 7, 5); }); break;
    case DataType::Fp8E5M2: fill(block, [](auto r) { return float_bits<std::uint8_t>(r, 2, 15, 8); }); break;
    default: fill(block, [](auto r) { return static_cast<std::uint8_t>(r); }); break;
  }
  return block;
}

}  // namespace

bool fill_random(const Driver& driver, CUstream stream, CUdeviceptr to, std::size_t bytes, DataType type) {
  const std::vector<unsigned char> block = random_block(type);
  for (std::size_t at = 0; at < bytes; at += kBlock)
    if (driver.copy_to_device(to + at, block.data(), std::min(kBlock, bytes - at), stream) != CUDA_SUCCESS) return false;
  return driver.synchronize(stream) == CUDA_SUCCESS;  // the block is ours until here
}

}  // namespace convpin
