#include "tools/convpin/trial.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "tools/convpin/command.hpp"

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

// What was tried, and what is done with those of it that run.
class Trial {
 public:
  Trial(Bench& bench, const EngineConfig* always, const TrialOptions& options, const std::function<bool()>& stop)
      : bench_(bench), always_(always), options_(options), stop_(stop) {}

  void prepare(const EngineConfig& config) {
    if (stop_()) {
      Runnable& skipped = runnables_.emplace_back();
      skipped.candidate.engine = config;
      skipped.candidate.operation = bench_.problem().operation;
      skipped.candidate.reason = "the time was up";
      return;
    }
    Runnable& r = runnables_.emplace_back(bench_.configure(config));
    if (!r.config) return;
    if (options_.in_vain && !is_always(r)) r.candidate.reason = options_.in_vain(r.candidate, always_ms_);
    if (!r.candidate.reason.empty()) return;
    bench_.build(r, options_.workspace_limit);
    if (options_.in_vain && is_always(r) && r) always_ms_ = bench_.time_ms(r, 0);
  }

  void time(const std::vector<std::size_t>& places, const TimingPlan& plan) {
    const Sample sample = [&](std::size_t i, int launches) { return bench_.time_ms(runnables_[places[i]], launches); };
    const auto timings = interleaved(places.size(), sample, plan, stop_);
    for (std::size_t i = 0; i < places.size(); ++i) put(timings[i], runnables_[places[i]].candidate);
  }

  // Once more where the clocks were not the same all the while.
  void time_watched(const std::vector<std::size_t>& places, const TimingPlan& plan) {
    const auto& nvml = bench_.gpu().nvml;
    std::string wrong;
    for (int attempt = 0; attempt < 2 && !stop_(); ++attempt) {
      const GpuState before = nvml ? nvml->state() : GpuState{};
      time(places, plan);
      const GpuState after = nvml ? nvml->state() : GpuState{};
      wrong = disturbance(before, after);
      if (wrong.empty()) break;
    }
    if (options_.disturbed) *options_.disturbed = wrong;
  }

  void measure_energy(const std::vector<std::size_t>& places) {
    const auto work = [&](std::size_t i) { return bench_.keep_busy(runnables_[places[i]]); };
    const auto all = energies(meter_of(bench_.gpu()), *options_.energy, places.size(), work, stop_);
    for (std::size_t i = 0; i < places.size(); ++i) {
      Candidate& c = runnables_[places[i]].candidate;
      if (!all[i]) continue;
      c.energy_mj = all[i]->mj;
      c.energy_sd_mj = all[i]->sd_mj;
      c.power_w = all[i]->power_w;
    }
  }

  std::vector<std::size_t> those_that_run() const {
    std::vector<std::size_t> places(runnables_.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::erase_if(places, [&](std::size_t i) { return !runnables_[i]; });
    return places;
  }

  // Of those that run and may win, fastest first, `most` with the one that is always in.
  std::vector<std::size_t> fastest(std::size_t most, double within) const {
    auto places = those_that_run();
    const auto ms = [&](std::size_t i) { return runnables_[i].candidate.time_ms.value_or(HUGE_VAL); };
    std::ranges::stable_sort(places, {}, ms);
    std::vector<std::size_t> kept;
    const auto always = [&](std::size_t i) { return is_always(runnables_[i]); };
    const auto at = std::ranges::find_if(places, always);
    const Candidate* beside = at == places.end() ? nullptr : &runnables_[*at].candidate;
    if (options_.may_win)
      std::erase_if(places, [&](std::size_t i) { return !always(i) && !options_.may_win(runnables_[i].candidate, beside); });
    std::size_t room = most - (most > 0 && beside ? 1 : 0);
    for (const std::size_t i : places) {
      const bool near = room > 0 && (within == HUGE_VAL || ms(i) <= within * ms(places.front()));
      if (always(i)) {
        kept.push_back(i);
      } else if (near) {
        kept.push_back(i);
        --room;
      }
    }
    return kept;
  }

  std::vector<Candidate> candidates() {
    std::vector<Candidate> all;
    for (Runnable& r : runnables_) all.push_back(std::move(r.candidate));
    return all;
  }

 private:
  bool is_always(const Runnable& r) const { return always_ && r.candidate.engine == *always_; }

  Bench& bench_;
  const EngineConfig* always_;
  const TrialOptions& options_;
  const std::function<bool()>& stop_;
  std::vector<Runnable> runnables_;
  std::optional<double> always_ms_;  // by itself: rather too long than too short
};

}  // namespace

void declare_energy(CLI::App& app, EnergyPlan& plan, int fewest) {
  app.add_option("--energy-seconds", plan.seconds, "how long each is kept running for its energy, at least")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--energy-repeats", plan.repeats, "how often: the standard deviation is of these")
      ->check(CLI::Range(fewest, 1000))
      ->capture_default_str();
}

EnergyMeter meter_of(const Gpu& gpu) {
  if (!gpu.nvml) throw BadUse("energy can't be measured: " + gpu.nvml.error);
  return {[&gpu] { return gpu.nvml->energy_mj(); },
          [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }};
}

Trials try_all(Bench& bench, const std::vector<EngineConfig>& configs, const EngineConfig* always, const TrialOptions& options,
               const std::function<bool()>& stop) {
  Trial trial(bench, always, options, stop);
  bench.set_cold(options.cold);
  for (const EngineConfig& config : configs) trial.prepare(config);
  trial.time(trial.those_that_run(), options.timing);
  auto finalists = trial.fastest(options.finalists, HUGE_VAL);
  if (options.finalists > 0 && finalists.size() > 1 && !stop()) {
    TimingPlan again = options.timing;
    again.rounds *= 2;
    again.most_ms *= 2;
    again.hopeless = HUGE_VAL;
    trial.time_watched(finalists, again);
  }
  if (options.energy && !stop()) trial.measure_energy(trial.fastest(options.energy->most, options.energy->within));
  return {trial.candidates(), std::move(finalists)};
}

}  // namespace convpin::cli
