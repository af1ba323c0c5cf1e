// Tensors in host memory: filling, reading, checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shim/model/problem.hpp"

namespace convclient {

using Bytes = std::vector<std::byte>;

bool can_hold(convpin::DataType);  // float, double, half, bfloat16: what the functions below know

std::int64_t elements_of(const convpin::Tensor&);  // product of the dims

double read(convpin::DataType, const std::byte*, std::int64_t at);  // `at` counts elements
double read(convpin::DataType, const Bytes&, std::int64_t at);
void write(convpin::DataType, Bytes&, std::int64_t at, double value);

// Uniform in [-1, 1), rounded to the type. The same for the same seed, whatever the machine.
Bytes random_bytes(const convpin::Tensor&, std::uint64_t seed);
// The same up to about a million elements; a larger tensor repeats them, which takes as long as copying does.
Bytes repeated_random_bytes(const convpin::Tensor&, std::uint64_t seed);

std::uint64_t fnv1a(const Bytes&);

// 16-bit floats, rounding to nearest even.
std::uint16_t to_half(float);
float from_half(std::uint16_t);
std::uint16_t to_bfloat16(float);
float from_bfloat16(std::uint16_t);

}  // namespace convclient
