// What a tuning keeps while it goes on, so that it can be interrupted and gone on with.
#pragma once

#include <string>
#include <vector>

#include "shim/model/record.hpp"
#include "tools/convpin/bench.hpp"
#include "tools/convpin/energy.hpp"
#include "tools/convpin/tuner.hpp"
#include "tools/convpin/usage.hpp"

namespace convpin::cli {

struct TuneOptions {
  std::vector<std::string> logs, allow;
  std::string log, cudnn, refresh, budget = "30 min", workspace_limit, tf32 = "auto", policy = "fastest";
  bool deterministic = false, cold = false, knobs = false, energy = false, generalize = false, keep = false;
  double min_gain = 0.02, steps = 10000;
  int rounds = 15;
  EnergyPlan energy_plan;  // with `energy` or the policy least_energy

  bool wants_energy() const { return energy || policy == "least_energy"; }
};

// The log of the tuning itself: what was measured and what was made of it, under these options. It is also what a later
// start goes on from.
class TuneState {
 public:
  // An empty path: kept in memory alone. The idle GPU's power, where energy is measured, is noted in the header.
  TuneState(std::string path, const Gpu&, const TuneOptions&, std::optional<double> idle_w = std::nullopt);
  bool has(const Usage&) const;                  // an earlier start decided about it
  void add(const Usage&, const std::vector<Candidate>&, const Tuned&);
  void end();
  Log log() const;                               // all that was decided under these options

 private:
  void add(const std::string& record);
  void write() const;

  std::string path_, text_, run_id_, cudnn_, command_;
  const Gpu& gpu_;
  Log before_;
  convpin::Device device_;
  int problems_ = 0;
};

}  // namespace convpin::cli
