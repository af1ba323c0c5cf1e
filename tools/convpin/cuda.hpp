// The CUDA driver's functions that only the command needs: of the stand-in where that is the cuDNN, since its
// streams are no GPU's. They come by dlopen, so that the command starts anywhere.
#pragma once

#include <cuda.h>

#include "tools/convpin/cudnn.hpp"

namespace convpin::cli {

// cuda.h renames some by macro; the list is expanded before it is turned into text, so that the name looked
// up is the one that the prototype has.
// clang-format off
#define CONVPIN_CUDA_FUNCTIONS(X)                                                            \
  X(cuDeviceGetName) X(cuDeviceGetPCIBusId) X(cuMemsetD8Async)                               \
  X(cuStreamBeginCapture) X(cuStreamEndCapture)                                              \
  X(cuGraphInstantiate) X(cuGraphLaunch) X(cuGraphExecDestroy) X(cuGraphDestroy)
// clang-format on

struct Cuda {
#define CONVPIN_MEMBER(name) decltype(&::name) name = nullptr;
  CONVPIN_CUDA_FUNCTIONS(CONVPIN_MEMBER)
#undef CONVPIN_MEMBER
  bool complete = false;  // where it is not, the ones that are missing are null
};
Cuda cuda_for(const Cudnn&);

}  // namespace convpin::cli
