// Running one problem with algorithms of the legacy API: replay's, by the example client's calls.
#pragma once

#include <vector>

#include "tools/convpin/bench.hpp"
#include "tools/convpin/timing.hpp"
#include "tools/convpin/wanted.hpp"

namespace convpin::cli {

// A candidate an algorithm, in their order, with time, workspace and error against float64 where it runs; data by the seed.
// All are refused, with the reason, where the legacy API has no such problem.
std::vector<Candidate> try_legacy(const Gpu&, const Problem&, const std::vector<Wanted>&, std::uint64_t seed, const TimingPlan&);

}  // namespace convpin::cli
