// The profile of a legacy caller's problem: candidates are legacy calls on the caller's descriptors and inputs.
#pragma once

#include "shim/legacy/adapter.hpp"
#include "shim/process/runtime.hpp"

namespace convpin::legacy {

// After the problem's execution with `ran`: profiles it, or leaves it wanted where it can't be done now.
void profile(const Execution&, ProblemState&, int ran);

}  // namespace convpin::legacy
