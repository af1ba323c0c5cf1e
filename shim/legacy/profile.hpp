// The profile of a legacy caller's problem: candidates are legacy calls on the caller's descriptors and inputs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shim/legacy/adapter.hpp"
#include "shim/process/runtime.hpp"

namespace convpin::legacy {

// After the problem's execution with `ran`: profiles it, or leaves it wanted where it can't be done now.
void profile(const Execution&, ProblemState&, int ran);

// What the rule's policy takes, best first, from a profile on tensors of ours that hold random finite numbers; it is made once
// for the problem. Empty where the framework's own choice is to be left; `reason` where it can't be decided. Nothing: not now,
// but the next call may.
std::optional<std::vector<Candidate>> decided_by_policy(const Library&, const Descriptors&, ProblemState&, const Rule&,
                                                        std::string& reason);

}  // namespace convpin::legacy
