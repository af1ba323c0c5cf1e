// The profile of a graph caller's problem: candidates are plans of its own graph.
#pragma once

#include <string>
#include <vector>

#include "shim/graph/pins.hpp"
#include "shim/model/candidate.hpp"

namespace convpin::graph {

// After the plan's execution with this variant pack: profiles the plan's problem, or leaves it wanted where it can't
// be done now (a capture, another profile under way, a variant pack that was not watched).
void profile_plan(const Library&, cudnnHandle_t, cudnnBackendDescriptor_t plan, PlanNode&, const Way&,
                  cudnnBackendDescriptor_t variant_pack);

// Why the graph can't be profiled on data of ours now; empty if it can.
std::string may_profile(const Library&, const Target&, const ConvolutionGraph&, const std::vector<Listed>& heuristics);
// The profile that a policy decides by: every engine, on tensors of ours that hold random finite numbers. In a MeasuringTurn,
// and where may_profile has no objection. Empty where there is no memory for it; `why` then says so.
std::vector<Candidate> profile_on_own_data(const Library&, ProblemState&, const Rule&, const ConvolutionGraph&,
                                           cudnnBackendDescriptor_t graph, const Target&, const std::vector<Listed>& heuristics,
                                           std::string& why);

}  // namespace convpin::graph
