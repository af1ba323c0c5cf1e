// What a policy makes of a problem's profile, and what a rule's requirements make of one candidate.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "shim/model/candidate.hpp"
#include "shim/model/rule.hpp"

namespace convpin {

struct Ranking {
  std::vector<std::size_t> best;                 // into the candidates, best first: all that beat the framework's own choice,
                                                 // since a framework may drop the first. Empty: its own choice is left
  bool met = true;                               // false: nothing qualifies, and the framework's own choice is unknown or
                                                 // against the rule: on_unsupported says what then
  std::string reason;                            // "0.1088 ms, 31 % less than the framework's own choice", or why none
};
// Of the candidates that ran, those that keep to the rule's requirements, to what it allows and to its workspace limit,
// and are better than the framework's own choice by min_gain: in time for `fastest` (workspace decides between equals), in
// workspace for `least_memory` (time does). Where the framework's own choice is not known, or is itself against a
// requirement or the limit, there is no gain to ask for: all that qualify are given.
Ranking rank(const std::vector<Candidate>&, const Rule&);

// Why a policy may not take it (a requirement, the limit, what is not allowed unasked); empty if it may.
std::string untakable(const Candidate&, const Rule&);
// Why this candidate is against the requirements ("it is not deterministic"); empty if it meets them. Of a candidate only
// engine, algorithm, operation, math_type, deterministic and numerical_notes are looked at.
std::string unmet(const Candidate&, Flags require);
inline bool meets(const Candidate& candidate, Flags require) { return unmet(candidate, require).empty(); }

}  // namespace convpin
