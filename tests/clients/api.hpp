// convpin's C API as a program finds it: looked up, and null where the library is not preloaded.
#pragma once

#include <dlfcn.h>

#include "shim/api/convpin.h"

namespace clients {

#define CLIENTS_API(name) \
  inline decltype(&::convpin_##name) name() { return reinterpret_cast<decltype(&::convpin_##name)>(dlsym(RTLD_DEFAULT, "convpin_" #name)); }
CLIENTS_API(enable)
CLIENTS_API(set_algo)
CLIENTS_API(set_rules)
CLIENTS_API(clear)
CLIENTS_API(label)
CLIENTS_API(problems)
CLIENTS_API(free)
#undef CLIENTS_API

}  // namespace clients
