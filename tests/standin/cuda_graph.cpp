#include "tests/standin/cuda_graph.hpp"

#include <map>
#include <mutex>
#include <vector>

namespace standin {
namespace {

// Graphs and executable graphs by their handles, which are numbers. Constructed at the first use and never
// destroyed.
struct Registry {
  std::mutex mutex;
  std::map<void*, std::vector<GraphNode>> graphs;
  std::uintptr_t last = 0xc0de0000;
};
Registry& registry() {
  static auto* const the_registry = new Registry;
  return *the_registry;
}

void* remember(std::vector<GraphNode> nodes) {  // with the mutex held
  Registry& r = registry();
  void* handle = reinterpret_cast<void*>(++r.last);
  r.graphs[handle] = std::move(nodes);
  return handle;
}

CUresult forget_graph(void* handle) {
  const std::lock_guard lock(registry().mutex);
  return registry().graphs.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Empty for a handle that is not known.
template <typename Use>
void with_graph(void* handle, Use use) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().graphs.find(handle);
  if (found != registry().graphs.end()) use(found->second);
}

}  // namespace

void add_node(cudaGraph_t graph, GraphNode node) {
  with_graph(graph, [&](auto& nodes) { nodes.push_back(std::move(node)); });
}

void replace_nodes(cudaGraph_t graph, GraphNode node) {
  with_graph(graph, [&](auto& nodes) { nodes.assign(1, std::move(node)); });
}

CUresult graph_create(CUgraph* graph, unsigned) {
  const std::lock_guard lock(registry().mutex);
  *graph = static_cast<CUgraph>(remember({}));
  return CUDA_SUCCESS;
}

namespace {
struct Capture {
  CUgraph graph = nullptr;  // null: none
  CUstream stream = nullptr;
};
thread_local Capture capture;
}  // namespace

cudaGraph_t captured_into(CUstream stream) { return capture.stream == stream ? capture.graph : nullptr; }

CUresult begin_capture(CUstream stream, CUstreamCaptureMode) {
  if (capture.graph != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  capture.stream = stream;
  return graph_create(&capture.graph, 0);
}

CUresult end_capture(CUstream stream, CUgraph* graph) {
  if (captured_into(stream) == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  *graph = capture.graph;
  capture = {};
  return CUDA_SUCCESS;
}

CUresult graph_destroy(CUgraph graph) { return forget_graph(graph); }

CUresult graph_instantiate(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  with_graph(graph, [&](const auto& nodes) {
    *executable = static_cast<CUgraphExec>(remember(nodes));
    result = CUDA_SUCCESS;
  });
  return result;
}

CUresult graph_exec_destroy(CUgraphExec executable) { return forget_graph(executable); }

CUresult graph_launch(CUgraphExec executable, CUstream) {
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode> nodes;
  with_graph(executable, [&](const auto& known) {
    nodes = known;
    result = CUDA_SUCCESS;
  });
  for (const GraphNode& node : nodes)
    if (!node()) result = CUDA_ERROR_LAUNCH_FAILED;
  return result;
}

}  // namespace standin
