// Trying configurations of one problem against each other.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tools/convpin/bench.hpp"
#include "tools/convpin/energy.hpp"
#include "tools/convpin/timing.hpp"

namespace CLI {
class App;
}

namespace convpin::cli {

struct TrialOptions {
  TimingPlan timing;
  std::optional<std::int64_t> workspace_limit;
  bool cold = false;
  std::size_t finalists = 0;                     // so many of the fastest are timed again, against each other; 0: none
  // Which may be among them, and have their energy measured, beside `always` (null where it is none of them); empty: all.
  std::function<bool(const Candidate&, const Candidate* always)> may_win;
  // Why one is not even built, by its notes and by what `always` takes, roughly (nothing where it doesn't run); empty text where
  // it is built. Empty: all are.
  std::function<std::string(const Candidate& unbuilt, std::optional<double> always_ms)> in_vain;
  std::optional<EnergyPlan> energy;              // measured too: of a GPU with NVML
  // Where a sentence goes on what was wrong with the clocks while the finalists were timed, and was so the second time too.
  std::string* disturbed = nullptr;
};
// --energy-seconds and --energy-repeats, of which `fewest` are allowed.
void declare_energy(CLI::App&, EnergyPlan&, int fewest);
// What its energy is measured with. Throws BadUse where it has no NVML.
EnergyMeter meter_of(const Gpu&);

struct Trials {
  std::vector<Candidate> candidates;             // one a configuration, in their order, with time and error where it runs
  std::vector<std::size_t> finalists;            // into them: their times were taken side by side, later than the others'
};
// `always`: a configuration that is built, and among the finalists, whatever its time; the first, where `in_vain` is asked. `stop` is
// asked between the parts; what was not tried by then is Skipped.
Trials try_all(Bench&, const std::vector<EngineConfig>&, const EngineConfig* always, const TrialOptions&, const std::function<bool()>& stop);

}  // namespace convpin::cli
