// Trying configurations of one problem against each other.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tools/convpin/bench.hpp"
#include "tools/convpin/timing.hpp"

namespace convpin::cli {

struct TrialOptions {
  TimingPlan timing;
  std::optional<std::int64_t> workspace_limit;
  bool cold = false;
  std::size_t finalists = 0;                     // so many of the fastest are timed again, against each other; 0: none
};
// A candidate a configuration, in their order, with time and error where it runs. `always`: a configuration that is among
// the finalists whatever its time. `stop` is asked between the parts; what was not tried by then is Skipped.
std::vector<Candidate> try_all(Bench&, const std::vector<EngineConfig>&, const EngineConfig* always, const TrialOptions&,
                               const std::function<bool()>& stop);

}  // namespace convpin::cli
