// The profile of a legacy caller's problem: candidates are legacy calls on the caller's descriptors and inputs.
#pragma once

#include <functional>

#include "shim/legacy/adapter.hpp"
#include "shim/process/runtime.hpp"

namespace convpin::legacy {

// The caller's call with another algorithm, workspace and output.
struct LegacyCall {
  using Run = std::function<cudnnStatus_t(int algorithm, void* workspace, std::size_t bytes, const void* beta, void* y)>;
  Run run;
  const void* beta;   // null where the call has none
};

// After the problem's execution with `ran`: profiles it, or leaves it wanted where it can't be done now.
void profile(const Library&, const Descriptors&, ProblemState&, int ran, const LegacyCall&);

}  // namespace convpin::legacy
