// What becomes of an answer: the plans that are built from it, which of them run, and what is said of that.
#pragma once

#include "shim/graph/mirror.hpp"

namespace convpin::graph {

// Finalize of a plan: refuses the real list's plans once a pin has run, else reads back what was built.
// `finalized` is set as soon as the real call succeeded.
cudnnStatus_t finalize_plan(const Library&, cudnnBackendDescriptor_t, PlanNode&, bool& finalized);
// Whether a plan that has not run yet leaves the field to a pin of the same list that has.
bool stands_back(const PlanNode&);

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
