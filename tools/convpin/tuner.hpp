// What is best for a problem, of what was measured: the choice of tune, as a pure function.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shim/model/policy.hpp"
#include "shim/model/problem.hpp"

namespace convpin::cli {

struct TunePolicy {
  PolicyKind kind = PolicyKind::Fastest;
  bool least_energy = false;  // instead: of those whose energy was measured
  Flags require, allow;
  double min_gain = 0.02;
  std::optional<std::int64_t> workspace_limit;
  bool tf32 = true;                              // float data on tensor cores
  double steps = 10000;                          // calls in which run-time compilation must have repaid itself
  // The longest that a compilation took so far. A start of the program pays it; here a kernel may come from an earlier problem.
  double compile_ms = 0;
};

// Of candidates that are compiled at run time, the longest build in ms; 0 for none.
double longest_compilation_ms(const std::vector<Candidate>&);
// What the policy wants little of: ms, mJ, or bytes of workspace. Nothing where it was not measured.
std::optional<double> cost_of(const Candidate&, const TunePolicy&);
// Whether the problem may run on tensor cores, by tune's option: yes, no, or auto, which is as the framework's choice does (null:
// not known). Only float data may not.
bool takes_tf32(const std::string& option, const Problem&, const Candidate* own);

// Why choose() would not take it whatever it gains, of one that is not built: it is compiled at run time, and even all that the
// framework's choice takes (own_ms; too long rather than too short; nothing: not known) is less than that costs. Empty where it might.
std::string in_vain(const Candidate& unbuilt, std::optional<double> own_ms, const TunePolicy&);
// Whether choose() might take it, were it the best. `own`: the framework's choice, null where it is not known.
bool may_be_chosen(const Candidate&, const Candidate* own, const TunePolicy&);
// The candidates, of which those alone can be chosen for their time that were timed beside the framework's choice: when the
// others were, the clock may have been another.
std::vector<Candidate> contenders(std::vector<Candidate>, const std::vector<std::size_t>& finalists, const TunePolicy&);

struct Tuned {
  std::optional<std::size_t> chosen;             // into the candidates; nothing where none qualifies
  // "0.0292 ms ± 0.0003, 12.1 % less than the framework's own 0.0332 ms ± 0.0004 (eng62_k2=1)", or why that stays.
  std::string reason;
};
// `own`: the framework's choice among the candidates. It stays where nothing beats it by min_gain and by more than both
// spreads, and where its own cost is not known; by energy, by more than two standard deviations of the difference, and of those
// that are no further from the least than that, the fastest is taken.
Tuned choose(std::vector<Candidate> candidates, std::optional<std::size_t> own, const TunePolicy&);

}  // namespace convpin::cli
