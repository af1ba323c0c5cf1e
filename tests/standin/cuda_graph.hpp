// CUDA graphs on the host: lists of things to do, made and launched by the driver table's functions
// (cudnnStandinDriver).
#pragma once

#include <cuda.h>
#include <driver_types.h>

#include <functional>

namespace standin {

using GraphNode = std::function<bool()>;  // false: it failed

// Nothing happens to a graph that is not one of the driver table's.
void add_node(cudaGraph_t, GraphNode);
void replace_nodes(cudaGraph_t, GraphNode);  // with one, as updating a graph that holds one plan does

// The graph that this thread captures the stream into; null where it doesn't.
cudaGraph_t captured_into(CUstream);
CUresult begin_capture(CUstream, CUstreamCaptureMode);  // one at a time in a thread
CUresult end_capture(CUstream, CUgraph*);

CUresult graph_create(CUgraph*, unsigned flags);
CUresult graph_destroy(CUgraph);
CUresult graph_instantiate(CUgraphExec*, CUgraph, unsigned long long flags);
CUresult graph_exec_destroy(CUgraphExec);
CUresult graph_launch(CUgraphExec, CUstream);

}  // namespace standin
