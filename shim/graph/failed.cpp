#include "shim/graph/failed.hpp"

#include <utility>

#include "shim/graph/mirror.hpp"

namespace convpin::graph {
namespace {

void add(FailedCall& call, const GraphPointer& graph) {
  if (graph) call.problem = graph->problem;
}

// The configuration may be gone, and its address another's: then it is of another graph, or none.
EngineConfig config_of(const Library& library, const PlanNode& plan) {
  if (plan.itself) return plan.own().config;
  if (plan.swapped) return read_config(library, plan.swapped.get());
  const ConfigNode* config = find_as<ConfigNode>(plan.config);
  return config && config->graph == plan.graph ? read_config(library, plan.config) : EngineConfig{};
}

void add(const Library& library, FailedCall& call, const PlanNode& plan) {
  add(call, plan.graph || plan.json.empty() ? plan.graph : describe_json(library, plan.json));
  call.candidate.engine = config_of(library, plan);
}

void add(const Library& library, FailedCall& call, const Node& node) {
  call.descriptor = static_cast<int>(node.type);
  if (node.plan) return add(library, call, *node.plan);
  if (const auto* graph = std::get_if<GraphNode>(&node.what)) add(call, graph->graph ? graph->graph : describe(library, *graph));
  if (const auto* operation = std::get_if<OperationNode>(&node.what)) {
    GraphNode alone;
    alone.operations.push_back(*operation);
    add(call, describe(library, alone));
  }
  if (const auto* heuristics = std::get_if<HeuristicsNode>(&node.what)) add(call, heuristics->graph);
  if (const auto* engine = std::get_if<EngineNode>(&node.what)) {
    add(call, engine->graph);
    call.candidate.engine.engine = static_cast<int>(engine->index);
  }
  if (const auto* config = std::get_if<ConfigNode>(&node.what)) {
    add(call, config->graph);
    call.candidate.engine.engine = static_cast<int>(config->engine);
  }
}

}  // namespace

void describe_failed(const Library&, FailedCall& call, cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t*) {
  call.descriptor = static_cast<int>(type);
}

void describe_failed(const Library& library, FailedCall& call, cudnnBackendDescriptor_t d) {
  if (const Node* node = find(d)) add(library, call, *node);
}

void describe_failed(const Library& library, FailedCall& call, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t, std::int64_t, const void*) {
  call.attribute = static_cast<int>(name);
  describe_failed(library, call, d);
}

void describe_failed(const Library& library, FailedCall& call, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, std::int64_t, const std::int64_t*, const void* values) {
  describe_failed(library, call, d, name, type, 0, values);
}

void describe_failed(const Library& library, FailedCall& call, cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t) {
  describe_failed(library, call, plan);
  const Node* node = find(plan);
  if (!node || !node->plan) return;
  if (const Way* way = node->plan->way.load()) call.candidate.engine = way->config;
}

void describe_failed(const Library& library, FailedCall& call, cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                     cudnnBackendDescriptor_t pack, cudaGraph_t) {
  describe_failed(library, call, handle, plan, pack);
}

}  // namespace convpin::graph
