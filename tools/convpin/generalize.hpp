// Rules for programs whose sizes change: one engine for all batch sizes, or for all image sizes, out of a
// tuning.
#pragma once

#include <string>
#include <vector>

#include "tools/convpin/freeze.hpp"
#include "tools/convpin/tuner.hpp"

namespace convpin::cli {

// A rule with * in x for each group of at least two tuned problems that differ in their batch alone, and for
// each that differ in their image's size alone, where one exact configuration was measured in all of them,
// may be taken by the policy, and costs (as the policy counts: time, energy, workspace) at most `within` times
// what was chosen for each. `tf32` is tune's option: yes, no, auto. Rules for the batch come first.
std::vector<FrozenRule> generalize(const std::vector<Usage>& tuned, const TunePolicy&,
                                   const std::string& tf32, double within = 1.03);

}  // namespace convpin::cli
