// libcudnn.so.9: as thin as the real one, and with its traps. Each exported function looks its
// implementation up at its first call, by dlopen and `dlsym(handle, "<its own name>")`, so that whoever
// redirects dlsym by name, without looking at who asks, sends this library back to itself for ever.
#include <dlfcn.h>

#include <cstdio>

#include "tests/standin/forward.hpp"

namespace {

void* find(const char* name) {
  // Found through this library's RUNPATH ($ORIGIN). Opened again for each function: the loader counts.
  void* library = dlopen("libcudnn_standin.so.9", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "cuDNN stand-in: %s\n", dlerror());
    return nullptr;
  }
  // Not returned directly: a function that ends in dlsym is compiled to a jump, and the loader would
  // then take the caller's library for the one that asks.
  void* volatile symbol = dlsym(library, name);
  return symbol;
}

}  // namespace

#define STANDIN(name, count, home) STANDIN_FORWARD(name, count, find)
#include "tests/standin/standin.def"
