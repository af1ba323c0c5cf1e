// Answering the application's query of the heuristics, and following what becomes of the answer.
#pragma once

#include "shim/graph/mirror.hpp"

namespace convpin::graph {

// GetAttribute(ENGINEHEUR_RESULTS): the count where `values` is null or `requested` 0, else the configurations.
cudnnStatus_t answer_query(const Library&, cudnnBackendDescriptor_t heuristics, HeuristicsNode&, std::int64_t requested,
                           std::int64_t* count, cudnnBackendDescriptor_t* values);

// Finalize of a plan: refuses the real list's plans once a pin has run, else reads back what was built.
// `finalized` is set as soon as the real call succeeded.
cudnnStatus_t finalize_plan(const Library&, cudnnBackendDescriptor_t, PlanNode&, bool& finalized);
// Whether a plan that has not run yet leaves the field to a pin of the same list that has.
bool stands_back(const PlanNode&);

// For a plan that is to be given `config`, which the program built itself: the configuration that a rule asks for instead,
// which builds; empty where there is none. `plan` notes what the program's own was.
Descriptor swap_config(const Library&, cudnnBackendDescriptor_t config, const ConfigNode&, PlanNode& plan);

// What becomes of what we gave, or put in the place of the program's own.
void config_destroyed(const ConfigNode&);
void plan_destroyed(PlanNode&);
void plan_failed(PlanNode&);
void plan_ran(PlanNode&);

// What the plan's first execution shows: what was asked, what ran, and why if they differ.
Choice choice_of(const Library&, const PlanNode&, const Way&);
Candidate candidate_of(const Library&, const PlanNode&, const Way&);

// What the framework would run without us: the first of the real list that it has not dropped. Empty if unknown.
std::optional<EngineConfig> framework_choice(const PlanNode&);
// The same for a plan that is a pin's, though the rule is gone: in order of preference, untried. Empty: nothing is known.
std::vector<EngineConfig> choices_without_us(const PlanNode&);
// The configurations of the real list that the framework dropped before any plan was built.
std::vector<EngineConfig> dropped_by_framework(const PlanNode&);

}  // namespace convpin::graph
