// What a profile of a graph's problem tries, and in which order.
#pragma once

#include <optional>
#include <vector>

#include "config/settings.hpp"
#include "shim/graph/pins.hpp"

namespace convpin::graph {

// One row of the profile before it is tried: configurations in order of preference, the first that builds is it.
struct Row {
  int algorithm = -1;
  std::vector<EngineConfig> configs;
  bool framework_choice = false, requested = false;
};

// What is known before anything is tried.
struct Known {
  ProblemState& state;
  EngineConfig framework_choice;
  std::optional<EngineConfig> running;
  std::vector<EngineConfig> dropped;      // by the framework
};

// The framework's own choice first: the others are compared with it. Then what ran, then the rest: each algorithm (none of a
// fused graph's engines stands for one), or each of so many engines. `list`: the heuristics' INSTANT list.
std::vector<Row> rows_of(const Library&, const Known&, ProfileLevel, const std::vector<Listed>& list, int engines);

}  // namespace convpin::graph
