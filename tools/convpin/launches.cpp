#include "tools/convpin/launches.hpp"

namespace convpin::cli {

LaunchGraph LaunchGraph::capture(const Cuda& cuda, CUstream stream, int count, const std::function<bool()>& launch) {
  LaunchGraph made;
  // Relaxed: an engine may allocate or look something up at its launch.
  if (!cuda.complete || cuda.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS) return made;
  bool good = true;
  for (int i = 0; i < count && good; ++i) good = launch();
  CUgraph graph = nullptr;
  good = cuda.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS && graph && good;
  CUgraphExec executable = nullptr;
  if (good && cuda.cuGraphInstantiate(&executable, graph, 0) == CUDA_SUCCESS) {
    made.cuda_ = &cuda;
    made.executable_ = executable;
    made.count_ = count;
  }
  if (graph) cuda.cuGraphDestroy(graph);
  return made;
}

LaunchGraph::~LaunchGraph() {
  if (executable_) cuda_->cuGraphExecDestroy(executable_);
}

bool LaunchGraph::launch(CUstream stream) const { return cuda_->cuGraphLaunch(executable_, stream) == CUDA_SUCCESS; }

}  // namespace convpin::cli
