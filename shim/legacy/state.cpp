#include "shim/legacy/state.hpp"

#include "shim/legacy/pin.hpp"
#include "shim/process/denials.hpp"
#include "shim/process/rules.hpp"

namespace convpin::legacy {

std::string algorithm_text(const Library& library, Operation operation, int number) {
  for (const Algorithm& a : algorithms(operation, library.version))
    if (a.number == number) return std::to_string(number) + " " + a.name;
  return std::to_string(number);
}

ProblemState* state_of(const Library& library, const Problem& problem) {
  const Problem key = canonical(problem);
  ProblemState* known = find_problem(key, Api::Legacy);
  return known ? known : meet(key, Api::Legacy, library);
}

std::string denial_of(const ProblemState& state, int algorithm) {
  const Denial* denial = algorithm < 0 ? nullptr : denied_algorithm(state, algorithm);
  return denial ? "algorithm " + denied_text(*denial) + " is " + denial_text(*denial) : "";
}

namespace {

// Why this convolution must fail: no rule covers it, its rule can't be met and must be, or it is denied. Empty: it need not.
std::string failure_of(const Library& library, const Descriptors& d, ProblemState& state, int algorithm) {
  if (std::string missed = failure_by_miss(state); !missed.empty()) return missed;
  const Rule* rule = rule_of(state);
  if (rule && rule->on_unsupported == OnUnsupported::Error && asks(state) && !pin_for(library, d, state)) {
    std::string reason;
    {
      std::lock_guard hold(state.lock);
      reason = state.unsupported_reason;
    }
    if (!reason.empty()) return failure_by_rule(state, reason);  // else the framework's own choice is right
  }
  return pin_for(library, d, state) ? "" : denial_of(state, algorithm);
}

// Only a few settings can make a convolution fail: not to be looked at in each call otherwise.
bool may_fail(ProblemState& state) {
  const Settings& settings = runtime().settings;
  const Rule* rule = rule_of(state);
  return settings.on_miss == OnMiss::Error || !settings.denials.empty() ||
         (settings.strict && state.stale.load(std::memory_order_relaxed)) ||
         (rule && rule->on_unsupported == OnUnsupported::Error);
}

}  // namespace

bool fails(const Library& library, const Descriptors& d, ProblemState& state, int algorithm) {
  if (!may_fail(state)) return false;
  const std::string why = failure_of(library, d, state, algorithm);
  if (!why.empty()) say_failure(state, why);
  return !why.empty();
}

}  // namespace convpin::legacy
