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
// a capture everything stays as it is. Never throws.
void reconsider(const Library&, cudnnHandle_t, cudnnBackendDescriptor_t plan, PlanNode&) noexcept;

// Executes the plan's way. One that needs data that was not seen, or that was chosen while the program ran and finds a
// capture under way, leaves the program its own plan: `way` then says so.
cudnnStatus_t run(const Library&, cudnnHandle_t, cudnnBackendDescriptor_t plan, PlanNode&, cudnnBackendDescriptor_t variant_pack,
                  Way*& way) noexcept;

// After a failed first execution of a pin's plan: builds the framework's own choice, in the workspace that the program
// gave for the pin, and puts it into the pin's place. Not every framework turns to its next plan by itself. Null: there is none.
Way* replace_failed_pin(const Library&, cudnnHandle_t, cudnnBackendDescriptor_t plan, PlanNode&);

// Adds the calls since the last time to the problem.
void flush(PlanNode&);

}  // namespace convpin::graph
