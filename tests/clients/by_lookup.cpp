// Instead of linking libcudnn: every function of cuDNN that a client calls, passed on to what dlopen and dlsym find, as in
// JAX, TensorFlow and Paddle. A client that is linked with this file has the same source as one that is linked to cuDNN.
//
// CLIENT_CUDNN names the library; libcudnn.so.9 where it is unset. It is opened RTLD_LOCAL, before the client's constructors.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "tests/standin/forward.hpp"

namespace {

void* library() {
  const char* named = std::getenv("CLIENT_CUDNN");
  static void* const opened = dlopen(named ? named : "libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  return opened;
}

void* find(const char* name) {
  void* volatile found = library() ? dlsym(library(), name) : nullptr;
  if (!found) std::fprintf(stderr, "by_lookup: %s\n", dlerror());
  return found;
}

__attribute__((constructor(101))) void at_start() { library(); }

}  // namespace

// Hidden: in a shared object these must not stand in a preloaded library's place, nor it in theirs.
#define STANDIN(name, count, home)                                                                           \
  extern "C" __attribute__((visibility("hidden"))) convpin::Signature<decltype(name)>::Result name(          \
      CONVPIN_PARAMETERS_##count(name)) {                                                                    \
    static constinit standin::Lazy<decltype(name)> function(#name, find);                                    \
    return function(CONVPIN_ARGUMENTS_##count);                                                              \
  }
#include "tests/standin/standin.def"
