// Which engines support a problem, by building a plan of each: as data, without running anything.
#pragma once

#include <string>
#include <vector>

#include "shim/model/candidate.hpp"
#include "tools/convpin/cudnn.hpp"
#include "tools/convpin/operation_graph.hpp"

namespace convpin::cli {

struct EngineList {
  // One an engine, in order of their numbers, with the heuristics' knobs where they list it. Ok: its plan can be built.
  // Skipped: it can't be judged here, without the GPU itself; `reason` says what it needs.
  std::vector<Candidate> engines;
  std::string reason;                            // where the graph itself can't be built: there are no engines then
};
EngineList list_engines(const Cudnn&, const Device&, const Problem&);

// The heuristics' configurations, best first (rank 0), of the instant mode and then of the fallback.
struct Listed {
  EngineConfig config;
  int rank;
};
std::vector<Listed> heuristics_of(const Library&, const OperationGraph&, const graph::Target&);

// Whether this refusal is the missing GPU's, its driver's or cuBLAS's, and not the engine's.
bool needs_the_device(const std::string& reason, cudnnStatus_t status);

}  // namespace convpin::cli
