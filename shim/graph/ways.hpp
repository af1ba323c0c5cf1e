// What runs when the program executes a plan: the plan itself, or one of ours in its place.
#pragma once

#include <memory>
#include <optional>

#include "shim/graph/mirror.hpp"

namespace convpin::graph {

// The program's own plan, as read back after its Finalize.
std::unique_ptr<Way> own_way(const Library&, cudnnBackendDescriptor_t plan);

// Finds the way that the rules ask for, where they changed since the plan's was chosen. A plan that was built under other
// rules stays the program's: ours for the same graph runs in its place, on a workspace of ours where it needs more. Inside
// a capture the program's own runs. Null: the rules make this execution fail. Never throws.
Way* reconsider(const Library&, cudnnHandle_t, cudnnBackendDescriptor_t plan, PlanNode&) noexcept;

// Says why and gives the status of an execution that the rules make fail.
cudnnStatus_t fail(const Library&, PlanNode&) noexcept;

// Executes the plan's way. One that was chosen while the program ran, and needs data that was not seen, finds a capture
// under way or fails, leaves the program its own plan: `way` then says so.
cudnnStatus_t run(const Library&, cudnnHandle_t, cudnnBackendDescriptor_t plan, PlanNode&, cudnnBackendDescriptor_t variant_pack,
                  Way*& way) noexcept;

// The program puts its plan into a CUDA graph: notes it where the rules ask for another. Whether they make that fail.
bool refused_in_cuda_graph(PlanNode&, const Library&);

// After a failed first execution of a pin's plan: builds the framework's own choice, in the workspace that the program
// gave for the pin, and puts it into the pin's place. Not every framework turns to its next plan by itself. Null: there is none.
Way* replace_failed_pin(const Library&, cudnnHandle_t, cudnnBackendDescriptor_t plan, PlanNode&);

// Adds the calls since the last time to the problem.
void flush(PlanNode&);

}  // namespace convpin::graph
