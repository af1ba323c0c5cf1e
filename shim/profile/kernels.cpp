#include "shim/profile/kernels.hpp"

#include <vector>

namespace convpin {
namespace {

std::optional<int> kernels_in(const Driver& driver, CUgraph graph) {
  std::size_t count = 0;
  if (driver.graph_nodes(graph, nullptr, &count) != CUDA_SUCCESS) return std::nullopt;
  std::vector<CUgraphNode> nodes(count);
  if (count > 0 && driver.graph_nodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return std::nullopt;
  int kernels = 0;
  for (CUgraphNode node : nodes) {
    CUgraphNodeType type{};
    if (driver.node_type(node, &type) != CUDA_SUCCESS) return std::nullopt;
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) ++kernels;
  }
  return kernels;
}

std::optional<int> capture(const Library& library, const Driver& driver, cudnnHandle_t handle, CUstream own,
                           const std::function<cudnnStatus_t()>& call) {
  cudaStream_t before = nullptr;
  if (library.cudnnGetStream(handle, &before) || library.cudnnSetStream(handle, own)) return std::nullopt;
  std::optional<int> kernels;
  CUgraph graph = nullptr;
  if (driver.begin_capture(own, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS) {
    const cudnnStatus_t status = call();
    if (driver.end_capture(own, &graph) == CUDA_SUCCESS && graph) {
      if (status == CUDNN_STATUS_SUCCESS) kernels = kernels_in(driver, graph);
      driver.graph_destroy(graph);
    }
  }
  library.cudnnSetStream(handle, before);
  return kernels;
}

}  // namespace

KernelCounter kernel_counter(const Library& library, const Driver& driver, cudnnHandle_t handle) {
  if (!handle || !library.cudnnGetStream || !library.cudnnSetStream) return {};
  return [&library, &driver, handle](const std::function<cudnnStatus_t()>& call) {
    CUstream own = nullptr;
    if (driver.stream_create(&own, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return std::optional<int>();
    const auto kernels = capture(library, driver, handle, own, call);
    driver.stream_destroy(own);
    return kernels;
  };
}

}  // namespace convpin
