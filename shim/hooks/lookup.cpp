#include "shim/hooks/lookup.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cerrno>

#include "shim/hooks/trouble.hpp"
#include "shim/process/runtime.hpp"

// What dlsym.S calls, and reads.
extern "C" {
using Dlsym = void* (*)(void* handle, const char* name);
constinit std::atomic<Dlsym> convpin_next_dlsym{nullptr};
Dlsym convpin_find_next_dlsym() noexcept;
void* convpin_look_up(void* handle, const char* name, const void* caller) noexcept;
}
static_assert(sizeof convpin_next_dlsym == sizeof(void*) && std::atomic<Dlsym>::is_always_lock_free);

namespace convpin {
namespace {

void* no_dlsym(void*, const char*) { return nullptr; }

// May come before any constructor ran, from within malloc too. So the version that every glibc has is asked for first
// (from 2.34 on under its old name as well): a look-up that fails would allocate.
Dlsym libc_dlsym() noexcept {
  static constinit std::atomic<Dlsym> known{nullptr};
  Dlsym found = known.load(std::memory_order_relaxed);
  if (found) return found;
#ifdef __aarch64__
  constexpr const char* versions[] = {"GLIBC_2.17", "GLIBC_2.34"};
#else
  constexpr const char* versions[] = {"GLIBC_2.2.5", "GLIBC_2.34"};
#endif
  for (const char* version : versions)
    if (!found) found = reinterpret_cast<Dlsym>(dlvsym(RTLD_NEXT, "dlsym", version));
  if (!found) found = no_dlsym;
  known.store(found, std::memory_order_relaxed);
  return found;
}

// A few copies of cuDNN have functions of ours of their own (entry.cpp); nobody was seen with more.
void say_too_many_copies() noexcept {
  static constinit std::atomic<bool> said{false};
  if (said.exchange(true) || runtime().idle) return;
  try {
    say("convpin: warning: this program looks functions up in more than " + std::to_string(kLookedUpCopies) +
        " copies of cuDNN; convolutions in the others are not reached\n");
  } catch (...) {
    in_trouble("counting the copies of cuDNN");
  }
}

// What the program is given for the function that it found.
void* answer(void* found, const char* name, const void* asks) noexcept {
  if (!hook_for(name, 0)) return found;
  // cuDNN's dispatcher finds its own functions by their names, in each of its libraries: ours would take those libraries
  // for further copies, and call it again.
  if (side_of(asks) != Side::Program) return found;
  const int copy = copy_of(found);
  if (copy < 0) return found;
  if (copy < kLookedUpCopies) return hook_for(name, copy);
  say_too_many_copies();
  return found;
}

}  // namespace

void* symbol_in(void* handle, const char* name) noexcept {
  void* volatile found = libc_dlsym()(handle, name);  // volatile: a jump would make our caller the one who asks
  return found;
}

}  // namespace convpin

// The next dlsym after ours, as the loader binds it: another tool's that hooks it too, or libc's.
Dlsym convpin_find_next_dlsym() noexcept {
  const int saved_errno = errno;
  auto next = reinterpret_cast<Dlsym>(convpin::symbol_in(RTLD_NEXT, "dlsym"));
  if (!next) next = convpin::libc_dlsym();
  convpin_next_dlsym.store(next, std::memory_order_relaxed);
  errno = saved_errno;
  return next;
}

// A failed look-up stays as it is: null, with its own dlerror.
void* convpin_look_up(void* handle, const char* name, const void* caller) noexcept {
  void* const found = convpin_next_dlsym.load(std::memory_order_relaxed)(handle, name);
  if (!found) return nullptr;
  const int saved_errno = errno;
  void* const given = convpin::answer(found, name, caller);
  errno = saved_errno;
  return given;
}
