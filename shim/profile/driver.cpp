#include "shim/profile/driver.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <new>

#include "shim/hooks/lookup.hpp"

namespace convpin {
namespace {

// cuda.h maps plain names to versioned ones; the table names what is exported.
template <typename LookUp>
bool complete(Driver& out, LookUp look_up) {
  bool all = true;
#define CONVPIN_DRIVER(member, name)                                          \
  out.member = reinterpret_cast<decltype(out.member)>(look_up(#name)); \
  all = all && out.member;
#include "shim/profile/driver.def"
#undef CONVPIN_DRIVER
  return all;
}

bool find_driver(const Library& library, Driver& out) {
  using StandIn = void* (*)(const char*);
  if (library.handle)  // before libcuda: a stand-in's buffers are not the GPU's
    if (auto* stand_in = reinterpret_cast<StandIn>(symbol_in(library.handle, "cudnnStandinDriver")))
      return complete(out, stand_in);
  void* cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return cuda && complete(out, [&](const char* name) { return symbol_in(cuda, name); });
}

// The CUDA runtime keeps a last error of its own (cudaPeekAtLastError): a failed candidate must not leave one. With
// several copies of the runtime only the shared one can be reached; a static one belongs to cuDNN itself.
struct LastError {
  int (*peek)() = nullptr;
  int (*take)() = nullptr;
};
LastError find_last_error() {
  for (const char* name : {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"}) {
    if (void* handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) {
      LastError found{reinterpret_cast<int (*)()>(symbol_in(handle, "cudaPeekAtLastError")),
                      reinterpret_cast<int (*)()>(symbol_in(handle, "cudaGetLastError"))};
      if (found.peek && found.take) return found;  // the handle stays: it can't be unloaded from now on
    }
  }
  return {};
}
LastError runtime_last_error() {
  static std::atomic<const LastError*> known{nullptr};  // not there yet is not remembered
  if (const LastError* found = known.load(std::memory_order_acquire)) return *found;
  const int saved_errno = errno;
  const LastError found = find_last_error();
  if (found.peek)
    if (auto* kept = new (std::nothrow) LastError(found)) known.store(kept, std::memory_order_release);
  dlerror();  // what our look-ups left there is not the application's
  errno = saved_errno;
  return found;
}

}  // namespace

const Driver* driver(const Library& library) noexcept {
  static std::atomic<const Driver*> known{nullptr};
  if (const Driver* d = known.load(std::memory_order_acquire)) return d;
  const int saved_errno = errno;
  Driver found;
  const Driver* result = nullptr;
  if (find_driver(library, found)) {
    result = new (std::nothrow) Driver(found);
    const Driver* none = nullptr;
    if (result && !known.compare_exchange_strong(none, result)) {
      delete result;
      result = none;
    }
  }
  dlerror();
  errno = saved_errno;
  return result;
}

CudaScope::CudaScope(const Driver& d) : driver_(d) {
  exchanged_ = driver_.exchange_capture_mode(&mode_) == CUDA_SUCCESS;
  const LastError last = runtime_last_error();
  had_error_ = last.peek && last.peek() != 0;
}

CudaScope::~CudaScope() {
  const LastError last = runtime_last_error();
  if (!had_error_ && last.peek && last.peek() != 0) last.take();
  if (exchanged_) driver_.exchange_capture_mode(&mode_);
}

}  // namespace convpin
