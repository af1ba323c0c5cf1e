// What a rule makes of a problem on the legacy API: an algorithm and the workspace that it needs.
#pragma once

#include <optional>
#include <string>

#include "shim/legacy/adapter.hpp"
#include "shim/process/runtime.hpp"

namespace convpin::legacy {

// The pinned algorithm, -1 where the rule names none that this API has.
int pinned(const ProblemState&);
// What the rule asks for; null where it leaves the framework its choice.
const Request* request_of(const ProblemState&);

// Bytes that the pinned algorithm needs here, or nothing where it can't run (state.unsupported_reason says why). Remembered
// for the problem and math type, since a program with a fixed algorithm asks at every call.
std::optional<std::int64_t> needed_by_pin(const Library&, const Descriptors&, ProblemState&);
void refuse_pin(ProblemState&);   // it failed: not again at each call

// The same for any algorithm; `reason` says why not.
std::optional<std::int64_t> needed(const Library&, const Descriptors&, int algorithm, std::string* reason);
cudnnStatus_t workspace_of(const Library&, const Descriptors&, int algorithm, std::size_t* bytes);
bool within_limit(std::int64_t bytes);
int math_type(const Library&, const Descriptors&);

}  // namespace convpin::legacy
