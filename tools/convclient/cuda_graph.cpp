#include "tools/convclient/cuda_graph.hpp"

#include <dlfcn.h>

namespace convclient {

using convpin::Parsed;

// As in memory.cpp: cuda.h renames some by macro, and the name looked up is the one that the prototype has.
#define GRAPH_FUNCTIONS(X) \
  X(cuGraphCreate) X(cuGraphInstantiate) X(cuGraphLaunch) X(cuGraphExecDestroy) X(cuGraphDestroy)
#define AS_TEXT(name) #name

struct GraphFunctions {
#define MEMBER(name) decltype(&::name) name = nullptr;
  GRAPH_FUNCTIONS(MEMBER)
#undef MEMBER
  std::string missing;
};

namespace {

GraphFunctions load_functions() {
  GraphFunctions functions;
  using StandinDriver = const void* (*)(const char*);
  const auto standin = reinterpret_cast<StandinDriver>(dlsym(RTLD_DEFAULT, "cudnnStandinDriver"));
  void* library = standin ? nullptr : dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto look_up = [&](const char* name) -> void* {
    if (standin) return const_cast<void*>(standin(name));
    return library ? dlsym(library, name) : nullptr;
  };
#define RESOLVE(name)                                                                  \
  functions.name = reinterpret_cast<decltype(functions.name)>(look_up(AS_TEXT(name))); \
  if (!functions.name) functions.missing = "the CUDA driver has no " AS_TEXT(name);
  GRAPH_FUNCTIONS(RESOLVE)
#undef RESOLVE
  return functions;
}

const GraphFunctions& functions_of_driver() {
  static const GraphFunctions& functions = *new GraphFunctions(load_functions());
  return functions;
}

std::string failed(const char* call, CUresult result) {
  return result == CUDA_SUCCESS
             ? std::string()
             : std::string(call) + ": CUDA error " + std::to_string(static_cast<int>(result));
}

}  // namespace

Parsed<CudaGraph> CudaGraph::make(const Device&) {
  const GraphFunctions& functions = functions_of_driver();
  if (!functions.missing.empty()) return Parsed<CudaGraph>::fail(functions.missing);
  CUgraph graph = nullptr;
  if (std::string why = failed("cuGraphCreate", functions.cuGraphCreate(&graph, 0)); !why.empty())
    return Parsed<CudaGraph>::fail(why);
  return Parsed<CudaGraph>::ok(CudaGraph(&functions, graph));
}

CudaGraph::~CudaGraph() {
  if (executable_) functions_->cuGraphExecDestroy(executable_);
  if (graph_) functions_->cuGraphDestroy(graph_);
}

std::string CudaGraph::launch(const Device& device) {
  if (executable_) {
    if (std::string why = device.synchronize(); !why.empty()) return why;
    functions_->cuGraphExecDestroy(std::exchange(executable_, nullptr));
  }
  std::string why = failed("cuGraphInstantiate", functions_->cuGraphInstantiate(&executable_, graph_, 0));
  return why.empty() ? failed("cuGraphLaunch", functions_->cuGraphLaunch(executable_, device.stream())) : why;
}

}  // namespace convclient
