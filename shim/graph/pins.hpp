// From what a rule asks for to engine configurations that are possible for a graph.
#pragma once

#include <string>
#include <vector>

#include "shim/graph/mirror.hpp"

namespace convpin::graph {

// A configuration of the heuristics' list, as data.
struct Listed {
  EngineConfig config;
  bool down_converts = false;   // numerical note DOWN_CONVERT_INPUTS: fp32 inputs become fp16
};
std::vector<Listed> read_list(const Library&, const std::vector<Descriptor>& configs);

// The configurations that `request` may mean, in order of preference, most of them untried. For an engine: the
// heuristics' own configuration of it where there is one, else its default. For an algorithm with several engines: all
// that the heuristics list, in their order, then the others by default. An algorithm never means a configuration that
// converts its inputs down.
std::vector<EngineConfig> wanted_configs(const Request&, const Problem&, std::size_t cudnn_version,
                                         const std::vector<Listed>& heuristics);
// The legacy algorithm that `engine` runs in this problem's graph, -1 for none.
int algorithm_in(const Problem&, std::size_t cudnn_version, int engine);

// Whether `ran` is what was asked for.
bool satisfies(const Request&, const Problem&, std::size_t cudnn_version, const EngineConfig& ran);

struct Pins {
  std::vector<EngineConfig> configs;   // the first builds a plan here, or is untried; empty: none does
  std::string reason;                  // why none: over the limit, if any was, else of the last that cuDNN refused
};
// A scratch plan of an engine that is compiled at run time is compiled in vain, for tenths of a second: cuDNN keeps nothing of it
// (measured, 9.19; EfficientNet-B0's first step took twice as long). Where something stands behind a pin it goes along untried.
enum class Compiled : bool { Tried, Untried };
// Finds the first of the wanted configurations that builds, within the workspace limit (bytes; -1: none), by scratch plans.
// What may not fit into the free memory comes last.
Pins possible_pins(const Library&, cudnnBackendDescriptor_t graph, const Target&, const std::vector<EngineConfig>& wanted,
                   std::int64_t workspace_limit, Compiled);
// Why a request means no configuration at all.
std::string means_nothing(const Problem&);

}  // namespace convpin::graph
