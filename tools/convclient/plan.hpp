// From an operation graph to something that can run: heuristics, engine configurations, execution plans.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shim/model/algorithm.hpp"
#include "tools/convclient/backend.hpp"

namespace convclient {

// What plans are made for: a GPU by its handle, or a description of one and no GPU at all.
struct Target {
  cudnnHandle_t handle = nullptr;
  const Descriptor* properties = nullptr;  // CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR
};
Descriptor make_properties(const std::string& json);

// The heuristics' engine configurations for the graph, best first. `error` gets what went wrong.
std::vector<Descriptor> ask_heuristics(const Descriptor& graph, cudnnBackendHeurMode_t, const Target&,
                                       std::string& error);

// What can be read off an engine configuration, also off the one inside a finished plan.
struct Configuration {
  convpin::EngineConfig engine;
  std::vector<int> notes;  // cudnnBackendNumericalNote_t
};
Configuration read_configuration(Descriptor& config);

// The same configuration made anew from its engine's number and its knobs, as programs do that keep only
// these from one run to the next (XLA). An engine's number is one of the graph's, so the graph is needed
// again.
struct OwnConfiguration {
  std::vector<Descriptor> parts;  // engine and knob choices, kept as long as the configuration
  Descriptor config;
};
OwnConfiguration make_configuration(const convpin::EngineConfig&, const Descriptor& graph, const Target&);

struct Plan {
  Descriptor descriptor;
  std::int64_t workspace = 0;
};
// Not every configuration that the heuristics offer can be built: then the descriptor has an error.
Plan make_plan(const Descriptor& config, const Target&);
// The plan as its own JSON text, and a plan made from such a text alone, without graph and configuration.
std::string json_of(Plan&);
Plan restore_plan(const std::string& json, const Target&);

Configuration read_configuration_of_plan(Descriptor& plan);

// Pure: whether a configuration with these notes may run.
bool allowed(const std::vector<int>& notes, const std::vector<int>& denied);
// Pure: the places of the times, fastest first; those without a time are left out.
std::vector<std::size_t> fastest_first(const std::vector<std::optional<double>>& times);

}  // namespace convclient
