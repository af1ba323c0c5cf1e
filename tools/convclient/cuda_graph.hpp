// A CUDA graph that holds one execution of a plan, put there by cudnnBackendPopulateCudaGraph instead of by
// capturing a stream.
#pragma once

#include <cuda.h>

#include <functional>
#include <string>
#include <utility>

#include "tools/convclient/memory.hpp"

namespace convclient {

struct GraphFunctions;  // the driver's, or those of the stand-in's own driver

class CudaGraph {
 public:
  // An empty one.
  static convpin::Parsed<CudaGraph> make(const Device&);
  CudaGraph(CudaGraph&& other) noexcept
      : functions_(std::exchange(other.functions_, nullptr)),
        graph_(std::exchange(other.graph_, nullptr)),
        executable_(std::exchange(other.executable_, nullptr)) {}
  ~CudaGraph();

  CUgraph get() const { return graph_; }
  // Instantiates the graph as it is now and puts it on the stream. Gives back what went wrong, empty for
  // nothing.
  std::string launch(const Device&);

 private:
  CudaGraph(const GraphFunctions* functions, CUgraph graph) : functions_(functions), graph_(graph) {}
  const GraphFunctions* functions_;
  CUgraph graph_;
  CUgraphExec executable_ = nullptr;  // of the last launch: it may still run
};

}  // namespace convclient
