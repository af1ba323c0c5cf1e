#include "shim/graph/adapter.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>

#include "shim/graph/answer.hpp"
#include "shim/graph/mirror.hpp"
#include "shim/graph/profile.hpp"
#include "shim/hooks/reason.hpp"
#include "shim/hooks/trouble.hpp"

namespace convpin::graph {
namespace {

bool of_variant_pack(cudnnBackendAttributeName_t name) {
  return name >= CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS && name < CUDNN_ATTR_LAYOUT_INFO_TENSOR_UID;
}

// Adds the plan's calls since the last time to its problem.
void flush(PlanNode& plan) {
  if (!plan.state) return;
  std::lock_guard hold(plan.state->lock);
  const auto calls = plan.calls.load(std::memory_order_relaxed);
  const auto fresh = calls - plan.flushed;
  plan.flushed = calls;
  plan.state->calls += fresh;
  for (auto& ran : plan.state->ran)
    if (ran.what == plan.ran) ran.calls += fresh;
}

cudnnStatus_t fail_for_settings(const Library& library) noexcept {
  char text[256];
  std::snprintf(text, sizeof text, "convpin: %s", runtime().settings.errors.front().c_str());
  set_last_error(text);
  return library.bad_param();
}

// Everything that is not routine after an execution: the first one, a failure, a count to write down.
void after_execute(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t descriptor, PlanNode& plan,
                   cudnnBackendDescriptor_t variant_pack, cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) {
    plan.calls.fetch_sub(1, std::memory_order_relaxed);
    plan_failed(plan);
    return;
  }
  if (!plan.look.load(std::memory_order_relaxed)) {  // routine, at a round number of calls
    flush(plan);
    log_counts();
    return;
  }
  ProblemState& state = *plan.state;
  if (!plan.reported.exchange(true)) plan_ran(plan);
  if (state.profile.load() == ProfileState::Wanted) profile_plan(library, handle, descriptor, plan, variant_pack);
  report_choice(state, choice_of(library, plan), candidate_of(library, plan), library);
  plan.look = state.profile.load() == ProfileState::Wanted;
}

cudnnStatus_t finalize_node(const Library& library, cudnnBackendDescriptor_t d, Node& node, bool& finalized) {
  if (node.plan) {
    if (!node.plan->graph) return library.cudnnBackendFinalize(d);
    if (runtime().fail) return fail_for_settings(library);
    return finalize_plan(library, d, *node.plan, finalized);
  }
  const cudnnStatus_t status = library.cudnnBackendFinalize(d);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  finalized = true;
  if (auto* graph = std::get_if<GraphNode>(&node.what)) {
    graph->graph = describe(library, *graph);
    if (graph->graph && !runtime().settings.errors.empty()) meet(graph->graph->problem, Api::Graph, library);  // says them
  }
  return status;
}

}  // namespace

cudnnStatus_t create(const Library& library, cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* out) noexcept {
  const cudnnStatus_t status = library.cudnnBackendCreateDescriptor(type, out);
  if (status != CUDNN_STATUS_SUCCESS || !out || !mirrored(type)) return status;
  try {
    add(*out, type);
  } catch (...) {
    in_trouble("noting a descriptor");
  }
  return status;
}

cudnnStatus_t destroy(const Library& library, cudnnBackendDescriptor_t d) noexcept {
  if (find(d)) {
    try {
      const auto node = remove(d);
      if (node && node->plan) {
        flush(*node->plan);
      } else if (node) {
        if (const auto* config = std::get_if<ConfigNode>(&node->what)) config_destroyed(*config);
      }
    } catch (...) {
      in_trouble("forgetting a descriptor");
    }
  } else if (runtime().wanted_profiles.load(std::memory_order_relaxed) > 0) {
    forget_variant_pack(d);
  }
  return library.cudnnBackendDestroyDescriptor(d);
}

cudnnStatus_t set_attribute(const Library& library, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type, std::int64_t count, const void* values) noexcept {
  const cudnnStatus_t status = library.cudnnBackendSetAttribute(d, name, type, count, values);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (of_variant_pack(name)) {
    if (runtime().wanted_profiles.load(std::memory_order_relaxed) > 0) note_variant_pack(d, name, count, values);
    return status;
  }
  if (Node* node = find(d)) {
    try {
      note_attribute(*node, name, type, count, values);
      if (auto* heuristics = std::get_if<HeuristicsNode>(&node->what);
          heuristics && name == CUDNN_ATTR_ENGINEHEUR_DEVICEPROP && count == 1 && values)
        heuristics->device_prop = std::make_shared<Descriptor>(
            copy_of_properties(library, *static_cast<const cudnnBackendDescriptor_t*>(values)));
    } catch (...) {
      in_trouble("noting an attribute");
    }
  }
  return status;
}

cudnnStatus_t get_attribute(const Library& library, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type, std::int64_t requested, std::int64_t* count,
                            void* values) noexcept {
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    auto* heuristics = find_as<HeuristicsNode>(d);
    if (heuristics && heuristics->graph) {
      if (runtime().fail) return fail_for_settings(library);
      try {
        return answer_query(library, d, *heuristics, requested, count, static_cast<cudnnBackendDescriptor_t*>(values));
      } catch (...) {
        in_trouble("answering the heuristics' query");
      }
    }
  }
  return library.cudnnBackendGetAttribute(d, name, type, requested, count, values);
}

cudnnStatus_t finalize(const Library& library, cudnnBackendDescriptor_t d) noexcept {
  Node* node = find(d);
  if (!node) return library.cudnnBackendFinalize(d);
  bool finalized = false;  // the real call must not be made twice
  try {
    return finalize_node(library, d, *node, finalized);
  } catch (...) {
    in_trouble("finishing a descriptor");
    return finalized ? CUDNN_STATUS_SUCCESS : library.cudnnBackendFinalize(d);
  }
}

cudnnStatus_t execute(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t descriptor,
                      cudnnBackendDescriptor_t variant_pack) noexcept {
  Node* node = find(descriptor);
  if (!node || !node->plan || !node->plan->state) return library.cudnnBackendExecute(handle, descriptor, variant_pack);
  PlanNode& plan = *node->plan;
  const bool first = plan.look.load(std::memory_order_relaxed) && !plan.reported.load(std::memory_order_relaxed);
  // A program that times all plans finds that only the pin's run. Not at Finalize: what was built before the pin ran is
  // what the program turns to where the pin does not fit its memory, or fails.
  if (first && stands_back(plan)) {
    set_last_error("convpin: not run, because the requested configuration runs");
    return library.not_supported();
  }
  const cudnnBackendDescriptor_t replacement = plan.replacement.load(std::memory_order_acquire);
  cudnnStatus_t status = library.cudnnBackendExecute(handle, replacement ? replacement : descriptor, variant_pack);
  constexpr std::uint64_t kCountEvery = 1 << 14;
  const std::uint64_t calls = plan.calls.fetch_add(1, std::memory_order_relaxed) + 1;
  if (status == CUDNN_STATUS_SUCCESS && !plan.look.load(std::memory_order_relaxed) && calls % kCountEvery != 0) return status;
  try {
    if (status != CUDNN_STATUS_SUCCESS && first && replace_failed_pin(library, handle, descriptor, plan)) {
      const cudnnStatus_t again = library.cudnnBackendExecute(handle, plan.replacement, variant_pack);
      if (again == CUDNN_STATUS_SUCCESS) status = again;
    }
    after_execute(library, handle, descriptor, plan, variant_pack, status);
  } catch (...) {
    plan.look = false;
    in_trouble("reporting an execution");
  }
  return status;
}

void flush_live_plans() {
  each_plan([](PlanNode& plan) { flush(plan); });
}

}  // namespace convpin::graph
