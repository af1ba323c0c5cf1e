#include "shim/process/decided.hpp"

#include "shim/model/policy.hpp"
#include "shim/process/rules.hpp"

namespace convpin {
namespace {

Decided kept(const ProblemState& state) {  // under its lock
  return {state.decided, state.decided_met ? std::string() : state.decided_reason};
}

}  // namespace

std::optional<Decided> decided_before(ProblemState& state, const Rule& rule) {
  std::lock_guard hold(state.lock);
  if (state.decided_for != &rule) return std::nullopt;
  return kept(state);
}

Decided decide_from(ProblemState& state, const Rule& rule, const std::vector<Candidate>& measured) {
  Rule limited = rule;
  if (const std::int64_t limit = workspace_limit_of(&rule); limit >= 0) limited.workspace_limit = limit;
  const Ranking ranking = rank(measured, limited);
  std::lock_guard hold(state.lock);
  state.decided.clear();
  for (const std::size_t i : ranking.best) state.decided.push_back(measured[i]);
  state.decided_reason = ranking.reason;
  state.decided_met = ranking.met;
  state.decided_for = &rule;
  return kept(state);
}

}  // namespace convpin
