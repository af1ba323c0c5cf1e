#include "tools/convpin/timing.hpp"

#include <algorithm>
#include <cmath>

namespace convpin::cli {

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

Timing timing_of(std::vector<double> samples) {
  std::ranges::sort(samples);
  return {quantile(samples, 0.5), quantile(samples, 0.75) - quantile(samples, 0.25), static_cast<int>(samples.size())};
}

namespace {

constexpr double kByItself = 5;  // so much rougher is one launch by itself

struct Turns {
  std::optional<double> ms;  // of a launch, as known by now; nothing: it failed
  std::vector<double> samples;
  bool hopeless = false;
};

// How often its sample is taken: what takes long needs no thirty.
int rounds_for(double sample_ms, const TimingPlan& plan) {
  const double most = std::min<double>(plan.rounds, plan.most_ms / std::max(sample_ms, plan.sample_ms));
  return std::max(static_cast<int>(most), (plan.rounds + 2) / 3);
}

}  // namespace

std::vector<std::optional<Timing>> interleaved(std::size_t candidates, const Sample& sample, const TimingPlan& plan,
                                               const std::function<bool()>& stop) {
  std::vector<Turns> all(candidates);
  double best = HUGE_VAL;
  for (std::size_t i = 0; i < candidates && !stop(); ++i) {
    Turns& turns = all[i];
    turns.ms = sample(i, 0);
    turns.hopeless = turns.ms && *turns.ms > kByItself * plan.hopeless * best;
    for (int w = 0; w < plan.warmup && turns.ms && !turns.hopeless; ++w) turns.ms = sample(i, 0);
    if (turns.ms) best = std::min(best, *turns.ms);
  }
  for (Turns& turns : all) turns.hopeless = turns.hopeless || (turns.ms && *turns.ms > kByItself * plan.hopeless * best);
  for (int round = 0; round < plan.rounds && !stop(); ++round) {
    for (std::size_t i = 0; i < candidates; ++i) {
      Turns& turns = all[i];
      if (!turns.ms || turns.hopeless) continue;
      const double wanted = std::ceil(plan.sample_ms / std::max(*turns.ms, 1e-6));
      const int launches = static_cast<int>(std::clamp(wanted, 1.0, static_cast<double>(plan.most_launches)));
      if (round > 0 && round >= rounds_for(*turns.ms * launches, plan)) continue;
      const auto ms = sample(i, launches);
      if (ms) turns.samples.push_back(*ms);
      if (!ms || round == 0) turns.ms = ms;  // better than by itself
    }
    if (round > 0) continue;
    best = HUGE_VAL;
    for (const Turns& turns : all)
      if (!turns.samples.empty()) best = std::min(best, turns.samples.front());
    for (Turns& turns : all) turns.hopeless = turns.hopeless || (turns.ms && *turns.ms > plan.hopeless * best);
  }
  std::vector<std::optional<Timing>> timings(candidates);
  for (std::size_t i = 0; i < candidates; ++i)
    if (all[i].ms) timings[i] = timing_of(all[i].samples.empty() ? std::vector{*all[i].ms} : all[i].samples);
  return timings;
}

}  // namespace convpin::cli
