#include "tools/convpin/tuner.hpp"

#include <algorithm>

#include "shim/model/record.hpp"

namespace convpin::cli {
namespace {

constexpr int kRuntimeCompilation = 0;  // cudnnBackendBehaviorNote_t

bool compiled_at_run_time(const Candidate& c) { return std::ranges::count(c.behavior_notes, kRuntimeCompilation) > 0; }

// In so many calls what it gains is more than what its compilation takes.
bool repays(const Candidate& c, const Candidate* own, double steps) {
  return own && own->time_ms && c.time_ms && c.build_ms && (*own->time_ms - *c.time_ms) * steps > *c.build_ms;
}

bool beyond_spread(const Candidate& c, const Candidate& own) {
  if (!c.time_ms || !own.time_ms) return true;
  return *own.time_ms - *c.time_ms > (c.time_iqr_ms.value_or(0) + own.time_iqr_ms.value_or(0)) / 2;
}

}  // namespace

Tuned choose(std::vector<Candidate> candidates, std::optional<std::size_t> own, const TunePolicy& policy) {
  Rule rule;
  rule.policy = policy.kind;
  rule.require = policy.require;
  rule.allow = policy.allow;
  rule.min_gain = policy.min_gain;
  rule.workspace_limit = policy.workspace_limit;
  if (!policy.tf32) rule.require.add(Flag::NoTensorCore);
  const Candidate* yardstick = own ? &candidates[*own] : nullptr;
  // Named in a file it would be taken as asked; here it must be worth it, unless it was asked for.
  const bool compile_unasked = !policy.allow.has(Flag::RuntimeCompilation);
  rule.allow.add(Flag::RuntimeCompilation);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Candidate& c = candidates[i];
    c.framework_choice = own == i;
    if (own != i && compile_unasked && compiled_at_run_time(c) && !repays(c, yardstick, policy.steps)) c.status = CandidateStatus::Skipped;
  }
  const Ranking ranking = rank(candidates, rule);
  const bool own_may_stay = yardstick && yardstick->status == CandidateStatus::Ok && meets(*yardstick, rule.require) &&
                            !(rule.workspace_limit && yardstick->workspace_bytes.value_or(0) > *rule.workspace_limit);
  for (const std::size_t i : ranking.best)
    if (!own_may_stay || policy.kind != PolicyKind::Fastest || beyond_spread(candidates[i], *yardstick))
      return {i, i == ranking.best.front() ? ranking.reason
                                           : four_digits(candidates[i].time_ms.value_or(0)) + " ms, the fastest beyond the spread"};
  if (own_may_stay) return {own, ranking.best.empty() ? ranking.reason : "what is faster is so by less than the spread of its times"};
  return {std::nullopt, ranking.reason};
}

}  // namespace convpin::cli
