// dlsym, which we export: programs that open cuDNN with dlopen and look its functions up are given ours.
#pragma once

#include "shim/hooks/real.hpp"

namespace convpin {

// libc's dlsym, for all look-ups of our own: the exported one, or another tool's, would take us for the program.
void* symbol_in(void* handle, const char* name) noexcept;

// Our function of that name, which calls into the copy of this number; null if the table has none. In entry.cpp.
void* hook_for(const char* name, int copy) noexcept;

}  // namespace convpin
