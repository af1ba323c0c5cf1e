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

std::vector<std::optional<Timing>> interleaved(std::size_t candidates, const Sample& sample, const TimingPlan& plan,
                                               const std::function<bool()>& stop) {
  std::vector<std::optional<double>> first(candidates);
  double best = HUGE_VAL;
  for (std::size_t i = 0; i < candidates && !stop(); ++i) {
    bool works = true;
    for (int w = 0; w < plan.warmup && works; ++w) works = sample(i, 1).has_value();
    if (works) first[i] = sample(i, 1);
    if (first[i]) best = std::min(best, *first[i]);
  }
  std::vector<std::vector<double>> samples(candidates);
  for (int round = 0; round < plan.rounds && !stop(); ++round)
    for (std::size_t i = 0; i < candidates; ++i) {
      if (!first[i] || *first[i] > plan.hopeless * best) continue;
      const double wanted = std::ceil(plan.sample_ms / std::max(*first[i], 1e-6));
      const auto ms = sample(i, static_cast<int>(std::clamp(wanted, 1.0, static_cast<double>(plan.most_launches))));
      if (ms) {
        samples[i].push_back(*ms);
      } else {
        first[i].reset();
      }
    }
  std::vector<std::optional<Timing>> timings(candidates);
  for (std::size_t i = 0; i < candidates; ++i)
    if (first[i]) timings[i] = timing_of(samples[i].empty() ? std::vector{*first[i]} : samples[i]);
  return timings;
}

}  // namespace convpin::cli
