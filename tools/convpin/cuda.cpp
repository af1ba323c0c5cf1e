#include "tools/convpin/cuda.hpp"

#include <dlfcn.h>

namespace convpin::cli {

Cuda cuda_for(const Cudnn& cudnn) {
  using StandIn = const void* (*)(const char*);
  const auto stand_in = reinterpret_cast<StandIn>(dlsym(cudnn.library.handle, "cudnnStandinDriver"));
  void* library = stand_in ? nullptr : dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto look_up = [&](const char* name) -> void* {
    if (stand_in) return const_cast<void*>(stand_in(name));
    return library ? dlsym(library, name) : nullptr;
  };
  Cuda cuda;
  cuda.complete = true;
#define CONVPIN_AS_TEXT(name) #name
#define CONVPIN_RESOLVE(name)                                                        \
  cuda.name = reinterpret_cast<decltype(cuda.name)>(look_up(CONVPIN_AS_TEXT(name))); \
  cuda.complete = cuda.complete && cuda.name;
  CONVPIN_CUDA_FUNCTIONS(CONVPIN_RESOLVE)
#undef CONVPIN_RESOLVE
#undef CONVPIN_AS_TEXT
  return cuda;
}

}  // namespace convpin::cli
