#include "shim/process/decided.hpp"

#include "shim/model/policy.hpp"
#include "shim/model/text.hpp"
#include "shim/process/denials.hpp"
#include "shim/process/rules.hpp"

namespace convpin {
namespace {

Decided kept(const ProblemState& state) {  // under its lock
  return {state.decided, state.decided_met ? std::string() : state.decided_reason};
}

// What could not be measured, since it is denied.
std::string denials_in(const ProblemState& state, const std::vector<Candidate>& measured) {
  std::vector<Offer> offers;
  for (const Candidate& c : measured) {
    if (c.engine.engine >= 0)
      offers.push_back({to_tag(c.engine), denied(state, c.engine)});
    else
      offers.push_back(
          {std::to_string(c.algorithm) + " (" + algorithm_name(c.operation, c.algorithm) + ")", denied_algorithm(state, c.algorithm)});
  }
  return denials_text(offers);
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
  Ranking ranking = rank(measured, limited);
  if (!ranking.met) ranking.reason = joined(ranking.reason, denials_in(state, measured));
  std::lock_guard hold(state.lock);
  state.decided.clear();
  for (const std::size_t i : ranking.best) state.decided.push_back(measured[i]);
  state.decided_reason = ranking.reason;
  state.decided_met = ranking.met;
  state.decided_for = &rule;
  return kept(state);
}

}  // namespace convpin
