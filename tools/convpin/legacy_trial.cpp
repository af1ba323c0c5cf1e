#include "tools/convpin/legacy_trial.hpp"

#include <algorithm>

#include "tools/convclient/run.hpp"
#include "tools/convpin/legacy_calls.hpp"

namespace convpin::cli {
namespace {

convclient::Options options_for(const Wanted& w, std::uint64_t seed) {
  convclient::Options o;
  o.api = convclient::Api::Legacy;
  o.fixed = w.algorithm;
  o.math = w.math_type < 0 ? CUDNN_DEFAULT_MATH : w.math_type;
  o.seed = seed;
  return o;
}

// Fewer would be timed with what the host takes to make the first of them.
constexpr int kInARow = 10;

}  // namespace

std::vector<Candidate> try_legacy(const Gpu& gpu, const Problem& problem, const std::vector<Wanted>& wanted, std::uint64_t seed,
                                  const TimingPlan& plan) {
  call_legacy_in(gpu.cudnn);
  const cudnnHandle_t handle = gpu.device.target().handle;
  const auto load = convclient::Workload::make(problem, options_for({}, seed), gpu.memory);
  std::vector<Candidate> candidates;
  std::vector<std::size_t> places;
  for (const Wanted& w : wanted) {
    Candidate& c = candidates.emplace_back();
    c.operation = problem.operation;
    c.algorithm = w.algorithm;
    c.math_type = w.math_type;
    c.status = CandidateStatus::Unsupported;
    if (!load || !convclient::knows_fused(problem)) {
      c.reason =
          load ? "no call of the legacy API does this: bare, or with fused=add,relu or fused=add,add,relu behind forward" : load.error;
      continue;
    }
    convclient::Options once = options_for(w, seed);
    once.check = true;
    const auto ran = convclient::run_legacy(*load, once, handle);
    if (!ran) {
      c.reason = ran.error;
      continue;
    }
    c.workspace_bytes = ran->workspace;
    c.error = ran->error;
    c.status = *ran->error <= *ran->bound ? CandidateStatus::Ok : CandidateStatus::Skipped;
    if (c.status == CandidateStatus::Ok) {
      places.push_back(candidates.size() - 1);
    } else {
      c.reason = "its error of " + std::to_string(*ran->error) + " is over the bound of " + std::to_string(*ran->bound);
    }
  }
  const Sample sample = [&](std::size_t i, int launches) -> std::optional<double> {
    convclient::Options timed = options_for(wanted[places[i]], seed);
    timed.time = true;
    timed.repeat = std::max(launches, kInARow);
    timed.in_a_row = true;
    const auto ran = convclient::run_legacy(*load, timed, handle);
    return ran ? ran->time_ms : std::nullopt;
  };
  const auto timings = interleaved(places.size(), sample, plan, [] { return false; });
  for (std::size_t i = 0; i < places.size(); ++i) {
    Candidate& c = candidates[places[i]];
    if (timings[i]) {
      c.time_ms = timings[i]->median_ms;
      c.time_iqr_ms = timings[i]->iqr_ms;
      c.samples = timings[i]->samples;
    } else {
      c.status = CandidateStatus::Unsupported;
      c.reason = "it failed while it was timed";
    }
  }
  return candidates;
}

}  // namespace convpin::cli
