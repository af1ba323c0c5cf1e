// From a rule to engine configurations that are possible for a graph.
#pragma once

#include <string>
#include <vector>

#include "shim/graph/pins.hpp"

namespace convpin::graph {

// What the problem's rule takes here, in order of preference; empty with the reason where nothing is possible, and empty
// without one where the framework's own choice is right. `graph` is the problem's, on `target`; `heuristics` its INSTANT list,
// which may be empty where the rule names configurations.
struct Decision {
  std::vector<EngineConfig> configs;
  std::string reason;
};
Decision decide(const Library&, ProblemState&, const ConvolutionGraph&, cudnnBackendDescriptor_t graph, const Target&,
                const std::vector<Listed>& heuristics);

// Whether the rule asks for anything but the framework's own choice.
bool asks(const Rule*);
// Whether it names engines with their knobs and nothing else, so that decide() needs no list to choose from.
bool names_configurations(const Rule&);
// Whether `ran`, with these notes (null: not known, and no requirement is looked at), is what the problem's rule asks for.
bool satisfies(ProblemState&, std::size_t cudnn_version, const EngineConfig& ran, const Notes* notes);
inline bool satisfies(ProblemState& state, std::size_t cudnn_version, const Way& way) {
  return satisfies(state, cudnn_version, way.config, &way.notes);
}

}  // namespace convpin::graph
