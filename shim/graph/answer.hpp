// Answering the application's query of the heuristics, and its own configurations.
#pragma once

#include "shim/graph/mirror.hpp"

namespace convpin::graph {

// GetAttribute(ENGINEHEUR_RESULTS): the count where `values` is null or `requested` 0, else the configurations.
cudnnStatus_t answer_query(const Library&, cudnnBackendDescriptor_t heuristics, HeuristicsNode&, std::int64_t requested,
                           std::int64_t* count, cudnnBackendDescriptor_t* values);

// For a plan that is to be given `config`, which the program built itself: the configuration that a rule asks for instead,
// which builds; empty where there is none. `plan` notes what the program's own was.
Descriptor swap_config(const Library&, cudnnBackendDescriptor_t config, const ConfigNode&, PlanNode& plan);

}  // namespace convpin::graph
