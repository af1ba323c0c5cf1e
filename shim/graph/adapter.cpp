#include "shim/graph/adapter.hpp"

#include <algorithm>
#include <exception>

#include "shim/graph/answer.hpp"
#include "shim/graph/decide.hpp"
#include "shim/graph/fate.hpp"
#include "shim/graph/mirror.hpp"
#include "shim/graph/packs.hpp"
#include "shim/graph/profile.hpp"
#include "shim/graph/ways.hpp"
#include "shim/hooks/reason.hpp"
#include "shim/hooks/trouble.hpp"
#include "shim/process/report.hpp"
#include "shim/process/rules.hpp"

namespace convpin::graph {
namespace {

bool of_variant_pack(cudnnBackendAttributeName_t name) {
  return name >= CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS && name < CUDNN_ATTR_LAYOUT_INFO_TENSOR_UID;
}

// Everything that is not routine after an execution: the first one, a failure, a count to write down. `variant_pack` null:
// nothing was launched that could be profiled.
void after_execute(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t descriptor, PlanNode& plan, Way& way,
                   cudnnBackendDescriptor_t variant_pack, cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) {
    way.calls.fetch_sub(1, std::memory_order_relaxed);
    if (&way == &plan.own()) plan_failed(plan);
    return;
  }
  if (!way.look.load(std::memory_order_relaxed)) {  // routine, at a round number of calls
    flush(plan);
    log_counts();
    return;
  }
  ProblemState& state = *plan.state;
  if (!way.reported.exchange(true)) plan_ran(plan);
  if (variant_pack && state.profile.load() == ProfileState::Wanted) profile_plan(library, handle, descriptor, plan, way, variant_pack);
  report_choice(state, choice_of(library, plan, way), candidate_of(library, plan, way), library);
  way.look = state.profile.load() == ProfileState::Wanted;
}

// A device description, which a heuristics' query or an engine refers to.
void note_device(const Library& library, Node& node, cudnnBackendAttributeName_t name, std::int64_t count, const void* values) {
  if ((name != CUDNN_ATTR_ENGINEHEUR_DEVICEPROP && name != CUDNN_ATTR_ENGINE_DEVICEPROP) || count != 1 || !values) return;
  auto copy = std::make_shared<Descriptor>(copy_of_properties(library, *static_cast<const cudnnBackendDescriptor_t*>(values)));
  if (auto* heuristics = std::get_if<HeuristicsNode>(&node.what)) heuristics->device_prop = copy;
  if (auto* engine = std::get_if<EngineNode>(&node.what)) engine->device_prop = copy;
}

// Apart from set_attribute, which the variant packs of every execution pass.
[[gnu::noinline]] void note_set(const Library& library, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                cudnnBackendAttributeType_t type, std::int64_t count, const void* values) noexcept {
  Node* node = find(d);
  if (!node) return;
  try {
    note_attribute(*node, name, type, count, values);
    note_device(library, *node, name, count, values);
  } catch (...) {
    in_trouble("noting an attribute");
  }
}

// EXECUTION_PLAN_ENGINE_CONFIG: the program's configuration, or the one that a rule asks for where it built its own.
cudnnStatus_t give_config(const Library& library, cudnnBackendDescriptor_t d, cudnnBackendAttributeType_t type, std::int64_t count,
                          const void* values) noexcept {
  constexpr auto name = CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG;
  Node* node = find(d);
  const auto* config = count == 1 && values ? static_cast<const cudnnBackendDescriptor_t*>(values) : nullptr;
  try {
    const ConfigNode* built = node && node->plan && config ? find_as<ConfigNode>(*config) : nullptr;
    if (built && !runtime().fail) {
      if (Descriptor ours = swap_config(library, *config, *built, *node->plan)) {
        const cudnnBackendDescriptor_t raw = ours.get();
        const cudnnStatus_t status = library.cudnnBackendSetAttribute(d, name, type, 1, &raw);
        if (status != CUDNN_STATUS_SUCCESS) return library.cudnnBackendSetAttribute(d, name, type, count, values);
        node->plan->swapped = std::move(ours);
        note_attribute(*node, name, type, count, values);
        return status;
      }
    }
  } catch (...) {
    in_trouble("choosing a plan's configuration");
  }
  const cudnnStatus_t status = library.cudnnBackendSetAttribute(d, name, type, count, values);
  if (status == CUDNN_STATUS_SUCCESS && node) note_attribute(*node, name, type, count, values);
  return status;
}

// The problem's state, for what is said of it; null: it is not known.
ProblemState* state_of(const Library& library, const GraphPointer& graph) noexcept {
  try {
    return graph ? meet(graph->problem, Api::Graph, library) : nullptr;
  } catch (...) {
    in_trouble("noting a convolution");
    return nullptr;
  }
}

cudnnStatus_t finalize_node(const Library& library, cudnnBackendDescriptor_t d, Node& node, bool& finalized) {
  if (node.plan) {
    if (!node.plan->graph && node.plan->json.empty()) return library.cudnnBackendFinalize(d);
    if (runtime().fail)
      return fail_for_settings(library, state_of(library, node.plan->graph ? node.plan->graph : describe_json(library, node.plan->json)));
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
        if (node->plan->state) plan_destroyed(*node->plan);
      } else if (node) {
        if (const auto* config = std::get_if<ConfigNode>(&node->what)) config_destroyed(*config);
      }
    } catch (...) {
      in_trouble("forgetting a descriptor");
    }
  } else if (runtime().pack_watchers.load(std::memory_order_relaxed) > 0) {
    forget_variant_pack(d);
  }
  return library.cudnnBackendDestroyDescriptor(d);
}

cudnnStatus_t set_attribute(const Library& library, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type, std::int64_t count, const void* values) noexcept {
  if (name == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) return give_config(library, d, type, count, values);
  const cudnnStatus_t status = library.cudnnBackendSetAttribute(d, name, type, count, values);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (!of_variant_pack(name)) {
    note_set(library, d, name, type, count, values);
  } else if (runtime().pack_watchers.load(std::memory_order_relaxed) > 0) {
    note_variant_pack(d, name, count, values);
  }
  return status;
}

cudnnStatus_t get_attribute(const Library& library, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type, std::int64_t requested, std::int64_t* count,
                            void* values) noexcept {
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    auto* heuristics = find_as<HeuristicsNode>(d);
    if (heuristics && heuristics->graph) {
      if (runtime().fail) return fail_for_settings(library, state_of(library, heuristics->graph));
      try {
        return answer_query(library, d, *heuristics, requested, count, static_cast<cudnnBackendDescriptor_t*>(values));
      } catch (...) {
        in_trouble("answering the heuristics' query");
      }
    }
  }
  const cudnnStatus_t status = library.cudnnBackendGetAttribute(d, name, type, requested, count, values);
  if (name == CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION && status == CUDNN_STATUS_SUCCESS)
    if (const Node* node = find(d); node && node->plan) node->plan->used = true;  // it lives on in its text
  return status;
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
  Way* way = plan.generation.load(std::memory_order_acquire) == rules_generation() ? plan.way.load(std::memory_order_acquire)
                                                                                   : reconsider(library, handle, descriptor, plan);
  if (!way) return fail(library, plan);
  const bool first = way->look.load(std::memory_order_relaxed) && !way->reported.load(std::memory_order_relaxed);
  // A program that times all plans finds that only the pin's run. Not at Finalize: what was built before the pin ran is
  // what the program turns to where the pin does not fit its memory, or fails.
  if (first && stands_back(plan)) {
    set_last_error("convpin: not run, because the requested configuration runs");
    return library.not_supported();
  }
  cudnnStatus_t status = run(library, handle, descriptor, plan, variant_pack, way);
  constexpr std::uint64_t kCountEvery = 1 << 14;
  const std::uint64_t calls = way->calls.fetch_add(1, std::memory_order_relaxed) + 1;
  if (observing(kLabels) && status == CUDNN_STATUS_SUCCESS) attach_label(*plan.state);
  if (status == CUDNN_STATUS_SUCCESS && !way->look.load(std::memory_order_relaxed) && calls % kCountEvery != 0) return status;
  try {
    if (status != CUDNN_STATUS_SUCCESS && first && !way->live) {
      if (Way* other = replace_failed_pin(library, handle, descriptor, plan)) {
        const NvtxRange range(other->ranges, plan.state->problem, [&] { return other->ran; });
        const cudnnStatus_t again = library.cudnnBackendExecute(handle, other->plan.get(), variant_pack);
        if (again == CUDNN_STATUS_SUCCESS) {
          status = again;
          way->calls.fetch_sub(1, std::memory_order_relaxed);
          way = other;
          way->calls.fetch_add(1, std::memory_order_relaxed);
        }
      }
    }
    after_execute(library, handle, descriptor, plan, *way, variant_pack, status);
  } catch (...) {
    way->look = false;
    in_trouble("reporting an execution");
  }
  return status;
}

// The plan as part of a CUDA graph that the program makes: it launches it later, and as often as it likes.
template <typename Call>
cudnnStatus_t graph_call(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t descriptor, Call&& call) noexcept {
  Node* node = find(descriptor);
  PlanNode* plan = node && node->plan && node->plan->state ? node->plan.get() : nullptr;
  try {
    if (plan && refused_in_cuda_graph(*plan, library)) return fail(library, *plan);
  } catch (...) {
    in_trouble("noting a plan in a CUDA graph");
  }
  const cudnnStatus_t status = call();
  if (!plan || status != CUDNN_STATUS_SUCCESS) return status;
  if (observing(kLabels)) attach_label(*plan->state);
  Way& way = plan->own();
  way.calls.fetch_add(1, std::memory_order_relaxed);
  try {
    if (way.look.load(std::memory_order_relaxed)) after_execute(library, handle, descriptor, *plan, way, nullptr, status);
  } catch (...) {
    way.look = false;
    in_trouble("noting a plan in a CUDA graph");
  }
  return status;
}

cudnnStatus_t populate_cuda_graph(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t variant_pack, cudaGraph_t graph) noexcept {
  return graph_call(library, handle, plan, [&] { return library.cudnnBackendPopulateCudaGraph(handle, plan, variant_pack, graph); });
}

cudnnStatus_t update_cuda_graph(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                cudnnBackendDescriptor_t variant_pack, cudaGraph_t graph) noexcept {
  return graph_call(library, handle, plan, [&] { return library.cudnnBackendUpdateCudaGraph(handle, plan, variant_pack, graph); });
}

void flush_live_plans() {
  each_plan([](PlanNode& plan) { flush(plan); });
}

}  // namespace convpin::graph
