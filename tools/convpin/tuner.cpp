#include "tools/convpin/tuner.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "shim/model/record.hpp"
#include "tools/convpin/counted.hpp"

namespace convpin::cli {
namespace {

constexpr int kRuntimeCompilation = 0;  // cudnnBackendBehaviorNote_t
constexpr int kTensorCore = 0;          // cudnnBackendNumericalNote_t

bool compiled_at_run_time(const Candidate& c) { return std::ranges::count(c.behavior_notes, kRuntimeCompilation) > 0; }

double compilation_ms(const Candidate& c, const TunePolicy& policy) { return std::max(c.build_ms.value_or(0), policy.compile_ms); }

// It is compiled at run time, and what it gains in so many calls is no more than what that takes, or not known. Named in a file
// it would be taken as asked; here it must repay itself, unless it was asked for.
bool unpaid(const Candidate& c, std::optional<double> gained_ms, const TunePolicy& policy) {
  if (policy.allow.has(Flag::RuntimeCompilation) || !compiled_at_run_time(c)) return false;
  return !gained_ms || *gained_ms * policy.steps <= compilation_ms(c, policy);
}

bool unpaid(const Candidate& c, const Candidate* own, const TunePolicy& policy) {
  const bool known = own && own->time_ms && c.time_ms && c.build_ms;
  return unpaid(c, known ? std::optional(*own->time_ms - *c.time_ms) : std::nullopt, policy);
}

Rule rule_of(const TunePolicy& policy) {
  Rule rule;
  rule.policy = policy.kind;
  rule.require = policy.require;
  rule.allow = policy.allow;
  rule.min_gain = policy.min_gain;
  rule.workspace_limit = policy.workspace_limit;
  if (!policy.tf32) rule.require.add(Flag::NoTensorCore);
  rule.allow.add(Flag::RuntimeCompilation);
  return rule;
}

bool beyond_spread(const Candidate& c, const Candidate& own) {
  if (!c.time_ms || !own.time_ms) return true;
  return *own.time_ms - *c.time_ms > (c.time_iqr_ms.value_or(0) + own.time_iqr_ms.value_or(0)) / 2;
}

bool beyond_deviations(const Candidate& c, const Candidate& than) {
  if (!c.energy_mj || !than.energy_mj) return true;
  return *than.energy_mj - *c.energy_mj > 2 * std::hypot(c.energy_sd_mj.value_or(0), than.energy_sd_mj.value_or(0));
}

std::string short_number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string cost_text(const Candidate& c, const TunePolicy& policy) {
  const auto with_spread = [](double value, const char* unit, const std::optional<double>& spread) {
    return four_digits(value) + " " + unit + (spread ? " ± " + short_number("%.2g", *spread) : "");
  };
  if (policy.least_energy) return with_spread(*c.energy_mj, "mJ", c.energy_sd_mj);
  if (policy.kind == PolicyKind::Fastest) return with_spread(*c.time_ms, "ms", c.time_iqr_ms);
  return counted(c.workspace_bytes.value_or(0), "byte") + " of workspace";
}

std::string gain_text(const Candidate& c, const Candidate& own, const TunePolicy& policy) {
  std::string text = cost_text(c, policy) + ", " + short_number("%.1f %%", 100 * (1 - *cost_of(c, policy) / *cost_of(own, policy))) +
                     " less than the framework's own " + cost_text(own, policy) + " (" + to_tag(own.engine) + ")";
  if (compiled_at_run_time(c) && c.build_ms && c.time_ms && own.time_ms && *own.time_ms > *c.time_ms)
    text += "; compiled at run time in " + short_number("%.0f", compilation_ms(c, policy)) + " ms, repaid after " +
            counted(std::llround(compilation_ms(c, policy) / (*own.time_ms - *c.time_ms)), "call");
  return text;
}

// For the ranking, which knows time and memory.
std::vector<Candidate> by_energy(std::vector<Candidate> candidates) {
  for (Candidate& c : candidates) {
    c.time_ms = c.energy_mj;
    if (!c.energy_mj) c.status = CandidateStatus::Skipped;
  }
  return candidates;
}

}  // namespace

double longest_compilation_ms(const std::vector<Candidate>& candidates) {
  double longest = 0;
  for (const Candidate& c : candidates)
    if (compiled_at_run_time(c)) longest = std::max(longest, c.build_ms.value_or(0));
  return longest;
}

std::optional<double> cost_of(const Candidate& c, const TunePolicy& policy) {
  if (policy.least_energy) return c.energy_mj;
  if (policy.kind != PolicyKind::LeastMemory) return c.time_ms;
  return c.workspace_bytes ? std::optional(static_cast<double>(*c.workspace_bytes)) : std::nullopt;
}

bool takes_tf32(const std::string& option, const Problem& problem, const Candidate* own) {
  if (problem.x.type != DataType::Float || option == "yes") return true;
  return option == "auto" && own && std::ranges::count(own->numerical_notes, kTensorCore) > 0;
}

std::string in_vain(const Candidate& unbuilt, std::optional<double> own_ms, const TunePolicy& policy) {
  if (!unpaid(unbuilt, own_ms, policy)) return {};
  if (!own_ms) return "not built: compiled at run time, and without a time of the framework's own choice nothing shows that this is repaid";
  return "not built: compiled at run time, in " + short_number("%.0f", compilation_ms(unbuilt, policy)) + " ms or so, which all of the " +
         four_digits(*own_ms) + " ms that the framework's own choice takes would not repay in " + counted(std::llround(policy.steps), "call");
}

bool may_be_chosen(const Candidate& c, const Candidate* own, const TunePolicy& policy) {
  return untakable(c, rule_of(policy)).empty() && !unpaid(c, own, policy);
}

std::vector<Candidate> contenders(std::vector<Candidate> candidates, const std::vector<std::size_t>& finalists, const TunePolicy& policy) {
  const bool by_time = policy.kind == PolicyKind::Fastest && !policy.least_energy;
  const Candidate* own = nullptr;
  for (const Candidate& c : candidates)
    if (c.framework_choice) own = &c;
  for (std::size_t i = 0; by_time && i < candidates.size(); ++i)
    if (std::ranges::find(finalists, i) == finalists.end() && may_be_chosen(candidates[i], own, policy))
      candidates[i].status = CandidateStatus::Skipped;
  return candidates;
}

Tuned choose(std::vector<Candidate> candidates, std::optional<std::size_t> own, const TunePolicy& policy) {
  Rule rule = rule_of(policy);
  const Candidate* yardstick = own ? &candidates[*own] : nullptr;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Candidate& c = candidates[i];
    c.framework_choice = own == i;
    if (own != i && unpaid(c, yardstick, policy)) c.status = CandidateStatus::Skipped;
  }
  if (policy.least_energy) rule.policy = PolicyKind::Fastest;
  const Ranking ranking = rank(policy.least_energy ? by_energy(candidates) : candidates, rule);
  const bool own_may_stay = yardstick && yardstick->status == CandidateStatus::Ok && meets(*yardstick, rule.require) &&
                            !(rule.workspace_limit && yardstick->workspace_bytes.value_or(0) > *rule.workspace_limit);
  if (own_may_stay && !cost_of(*yardstick, policy))
    return {own, "the framework's own choice: what it takes could not be measured, so that nothing is known to be better"};
  const auto beyond = [&](std::size_t i) {
    if (!own_may_stay) return true;
    if (policy.least_energy) return beyond_deviations(candidates[i], *yardstick);
    return policy.kind != PolicyKind::Fastest || beyond_spread(candidates[i], *yardstick);
  };
  const auto first = std::ranges::find_if(ranking.best, beyond);
  if (first != ranking.best.end()) {
    std::size_t best = *first;
    for (auto i = first; policy.least_energy && i != ranking.best.end(); ++i)
      if (beyond(*i) && !beyond_deviations(candidates[*first], candidates[*i]) && candidates[*i].time_ms < candidates[best].time_ms)
        best = *i;
    return {best, own_may_stay ? gain_text(candidates[best], *yardstick, policy) : ranking.reason};
  }
  if (!own_may_stay) return {std::nullopt, ranking.reason};
  const char* spread = policy.least_energy ? "two standard deviations" : "the spread of its times";
  return {own, cost_text(*yardstick, policy) + "; " +
                   (ranking.best.empty() ? ranking.reason : std::string("what is better is so by less than ") + spread)};
}

}  // namespace convpin::cli
