#include "tools/convpin/trial.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace convpin::cli {
namespace {

void put(const std::optional<Timing>& timing, Candidate& c) {
  if (!timing) {
    c.status = CandidateStatus::Unsupported;
    c.reason = "it failed while it was timed";
    return;
  }
  c.time_ms = timing->median_ms;
  c.time_iqr_ms = timing->iqr_ms;
  c.samples = timing->samples;
}

}  // namespace

std::vector<Candidate> try_all(Bench& bench, const std::vector<EngineConfig>& configs, const EngineConfig* always,
                               const TrialOptions& options, const std::function<bool()>& stop) {
  std::vector<Runnable> runnables;
  for (const EngineConfig& config : configs) {
    if (!stop()) {
      runnables.push_back(bench.prepare(config, options.workspace_limit));
      continue;
    }
    Runnable& skipped = runnables.emplace_back();
    skipped.candidate.engine = config;
    skipped.candidate.operation = bench.problem().operation;
    skipped.candidate.reason = "the time was up";
  }
  bench.set_cold(options.cold);
  const auto time = [&](std::vector<std::size_t> places, const TimingPlan& plan) {
    const Sample sample = [&](std::size_t i, int launches) { return bench.time_ms(runnables[places[i]], launches); };
    const auto timings = interleaved(places.size(), sample, plan, stop);
    for (std::size_t i = 0; i < places.size(); ++i) put(timings[i], runnables[places[i]].candidate);
  };
  std::vector<std::size_t> places(runnables.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::erase_if(places, [&](std::size_t i) { return !runnables[i]; });
  time(places, options.timing);

  std::erase_if(places, [&](std::size_t i) { return !runnables[i]; });
  std::ranges::stable_sort(places, {}, [&](std::size_t i) { return runnables[i].candidate.time_ms.value_or(HUGE_VAL); });
  std::vector<std::size_t> finalists;
  for (const std::size_t i : places)
    if (finalists.size() < options.finalists || (always && runnables[i].candidate.engine == *always)) finalists.push_back(i);
  if (options.finalists > 0 && finalists.size() > 1 && !stop()) {
    TimingPlan again = options.timing;
    again.rounds *= 2;
    again.hopeless = HUGE_VAL;
    time(finalists, again);
  }
  std::vector<Candidate> candidates;
  for (Runnable& r : runnables) candidates.push_back(std::move(r.candidate));
  return candidates;
}

}  // namespace convpin::cli
