// What a rule's policy decided of a problem, kept with the problem for its next query.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shim/process/runtime.hpp"

namespace convpin {

// In order of preference; none, with the reason, where nothing qualifies, and without one where the framework's own choice is right.
struct Decided {
  std::vector<Candidate> candidates;
  std::string reason;
};
// Nothing where this rule has not decided yet.
std::optional<Decided> decided_before(ProblemState&, const Rule&);
// Ranks what was measured, within the workspace limit in force, and keeps the result.
Decided decide_from(ProblemState&, const Rule&, const std::vector<Candidate>& measured);

}  // namespace convpin
