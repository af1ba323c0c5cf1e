// What a rule makes of a problem on the legacy API: an algorithm and the workspace that it needs.
#pragma once

#include <optional>
#include <string>

#include "shim/legacy/adapter.hpp"
#include "shim/process/runtime.hpp"

namespace convpin::legacy {

struct Pin {
  int algorithm;
  std::int64_t workspace_bytes;
};
// The first algorithm that the problem's rule asks for and that is possible here; nothing where it asks for none, or none is
// (state.unsupported_reason says why). Remembered for the problem and math type, since a program with a fixed algorithm asks
// at every call.
std::optional<Pin> pin_for(const Library&, const Descriptors&, ProblemState&);
void refuse_pin(ProblemState&, const Pin&);   // it failed: not again at each call

bool asks(ProblemState&);                        // whether a rule asks for anything but the framework's own choice
bool asked_for(ProblemState&, int algorithm, int math_type);    // whether that is what it asks for

// Bytes that an algorithm needs here, or nothing where cuDNN refuses it; `reason` then says why.
std::optional<std::int64_t> needed(const Library&, const Descriptors&, int algorithm, std::string* reason);
cudnnStatus_t workspace_of(const Library&, const Descriptors&, int algorithm, std::size_t* bytes);
int math_type(const Library&, const Descriptors&);

}  // namespace convpin::legacy
