// What runs a plan: cudnnBackendExecute at once, cudnnBackendPopulateCudaGraph as a node of a graph, and so the first while
// its stream is captured.
#include <algorithm>
#include <mutex>

#include "tests/standin/cuda_graph.hpp"
#include "tests/standin/faults.hpp"
#include "tests/standin/forward.hpp"
#include "tests/standin/handle.hpp"
#include "tests/standin/watched.hpp"

namespace standin {
namespace {

// A plan and what it is to run on, taken as they are now.
struct Execution {
  std::shared_ptr<const Plan> plan;
  VariantPack pack;

  std::string engine() const { return "eng" + std::to_string(plan->engine); }
  Algorithm algorithm() const { return algorithm_of_engine(plan->pattern, plan->engine); }
  const char* how() const {
    return plan->graph.has_convolution() ? name_of(algorithm()) : plan->pattern.c_str();
  }
};

cudnnStatus_t prepare(cudnnHandle_t handle, Descriptor descriptor, Descriptor variant_pack,
                      Execution& execution) {
  if (!is_handle(handle)) return refuse(CUDNN_STATUS_BAD_PARAM, "not a handle of cudnnCreate");
  bool plan_finalized = false, pack_finalized = false;
  with_watched(descriptor, [&](const Watched& w) {
    plan_finalized = w.finalized && w.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
    execution.plan = w.plan;
  });
  with_watched(variant_pack, [&](const Watched& w) {
    pack_finalized = w.finalized && w.type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
    execution.pack = *w.pack;
  });
  if (!plan_finalized || !pack_finalized) {
    return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                  "needs a finalized plan and a finalized variant pack");
  }
  if (execution.plan == nullptr) {
    static std::mutex one_at_a_time;  // the real library writes a plan's JSON when it is first asked for, without a lock
    const std::lock_guard hold(one_at_a_time);
    std::string reason;
    std::optional<Plan> read = read_plan(descriptor, reason);
    if (!read) return refuse(CUDNN_STATUS_NOT_SUPPORTED, reason);
    execution.plan = std::make_shared<const Plan>(std::move(*read));
    with_watched(descriptor, [&](Watched& w) { w.plan = execution.plan; });
  }
  if (execution.plan->workspace > 0 && execution.pack.workspace == nullptr)
    return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the plan needs a workspace");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t run(const Execution& execution) {
  const Plan& plan = *execution.plan;
  const VariantPack& pack = execution.pack;
  const Operation operation = plan.graph.operation();
  if (const cudnnStatus_t fault = injected_fault(operation, execution.engine());
      fault != CUDNN_STATUS_SUCCESS)
    return fault;
  const auto memory = [&](std::int64_t id) -> void* {
    for (std::size_t i = 0; i < std::min(pack.ids.size(), pack.pointers.size()); ++i) {
      if (pack.ids[i] == id) return pack.pointers[i];
    }
    return nullptr;
  };
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(plan.workspace, 0));
  const cudnnStatus_t status =
      evaluate(plan.graph, execution.algorithm(), memory, {static_cast<std::byte*>(pack.workspace), size});
  if (status == CUDNN_STATUS_SUCCESS) trace("graph", operation, execution.engine(), execution.how());
  return status;
}

// A graph of the stand-in's driver table gets a node that runs when the graph is launched. Any other pointer
// is an application's that only wants to see its call arrive.
cudnnStatus_t put_into_graph(cudnnHandle_t handle, Descriptor descriptor, Descriptor variant_pack,
                             cudaGraph_t graph, const char* call, void (*put)(cudaGraph_t, GraphNode)) {
  if (graph == nullptr) return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no CUDA graph");
  Execution execution;
  const cudnnStatus_t status = prepare(handle, descriptor, variant_pack, execution);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (put == add_node &&
      named_in("STANDIN_FAIL_CAPTURE", execution.plan->graph.operation(), execution.engine()))
    return refuse(CUDNN_STATUS_EXECUTION_FAILED, "STANDIN_FAIL_CAPTURE names this engine");
  trace(call, execution.plan->graph.operation(), execution.engine(), execution.how());
  put(graph, [execution] { return run(execution) == CUDNN_STATUS_SUCCESS; });
  return status;
}

}  // namespace
}  // namespace standin

using namespace standin;

STANDIN_EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, Descriptor plan,
                                                 Descriptor variant_pack) {
  if (is_handle(handle))
    if (const cudaGraph_t graph = captured_into(handle->stream); graph != nullptr)
      return put_into_graph(handle, plan, variant_pack, graph, "capture", add_node);
  Execution execution;
  const cudnnStatus_t status = prepare(handle, plan, variant_pack, execution);
  return status == CUDNN_STATUS_SUCCESS ? run(execution) : status;
}

STANDIN_EXPORT cudnnStatus_t cudnnBackendPopulateCudaGraph(cudnnHandle_t handle, Descriptor plan,
                                                           Descriptor variant_pack, cudaGraph_t graph) {
  return put_into_graph(handle, plan, variant_pack, graph, "populate", add_node);
}

STANDIN_EXPORT cudnnStatus_t cudnnBackendUpdateCudaGraph(cudnnHandle_t handle, Descriptor plan,
                                                         Descriptor variant_pack, cudaGraph_t graph) {
  return put_into_graph(handle, plan, variant_pack, graph, "update", replace_nodes);
}
