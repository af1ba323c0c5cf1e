// Comparing two outputs by a sample: enough to see a wrong or less exact candidate, little enough to copy.
#pragma once

#include <cstddef>
#include <vector>

#include "shim/model/problem.hpp"
#include "shim/profile/driver.hpp"

namespace convpin {

// Up to 64 pieces of 16 KiB, spread evenly over the buffer, as doubles. Empty for a type that has no numbers to
// compare or where the copy failed.
std::vector<double> sample_of(const Driver&, CUstream, CUdeviceptr, std::size_t bytes, DataType);

// max |out - ref| / max |ref|; infinite where `out` holds a NaN that `ref` does not.
double relative_error(const std::vector<double>& out, const std::vector<double>& ref);

// The numbers in `count` elements of `type` at `data`.
std::vector<double> decode(const void* data, std::size_t count, DataType type);

}  // namespace convpin
