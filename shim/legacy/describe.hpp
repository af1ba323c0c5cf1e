// A problem from the legacy API's descriptors, which can be read back at every call.
#pragma once

#include "shim/legacy/adapter.hpp"
#include "shim/model/problem.hpp"

namespace convpin::legacy {

// False where a descriptor can't be read, or is of a kind that has no text form (vectorised layouts). Five reads of
// 20-60 ns each, no lock, no allocation.
bool describe(const Library&, const Descriptors&, Problem&) noexcept;
// Adds what cudnnConvolutionBiasActivationForward fuses: z, bias, activation.
bool adds_z(const Problem&, const void* alpha2) noexcept;
bool describe_fused(const Library&, bool adds_z, cudnnActivationDescriptor_t, Problem&) noexcept;

}  // namespace convpin::legacy
