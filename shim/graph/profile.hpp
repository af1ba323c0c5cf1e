// The profile of a graph caller's problem: candidates are plans of its own graph.
#pragma once

#include "shim/graph/mirror.hpp"

namespace convpin::graph {

// Watches what a variant pack holds, since it can't be read back. No allocation: the last few of each thread.
void note_variant_pack(cudnnBackendDescriptor_t pack, cudnnBackendAttributeName_t, std::int64_t count,
                       const void* values) noexcept;
void forget_variant_pack(cudnnBackendDescriptor_t pack) noexcept;  // its address may come again

// After the plan's execution with this variant pack: profiles the plan's problem, or leaves it wanted where it can't
// be done now (a capture, another profile under way, a variant pack that was not watched).
void profile_plan(const Library&, cudnnHandle_t, cudnnBackendDescriptor_t plan, PlanNode&,
                  cudnnBackendDescriptor_t variant_pack);

}  // namespace convpin::graph
