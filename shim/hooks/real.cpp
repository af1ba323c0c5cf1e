#include "shim/hooks/real.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <mutex>
#include <new>

#include "shim/hooks/lookup.hpp"

namespace convpin {
namespace {

// Address ranges of modules that called us. Appended, never removed: a few per process.
struct Range {
  std::uintptr_t low, high;
  Caller caller;
  Range* next;
};
std::atomic<Range*> ranges{nullptr};
std::atomic<Library*> libraries[16];   // one per copy; more copies than that are served, but not remembered
std::atomic<const Library*> looked_up[kLookedUpCopies];  // the same, from the first call of a function looked up there
std::mutex append_lock;                // guards appending only; nothing of the loader is called under it

struct Module {
  std::uintptr_t low = 0, high = 0;
  const char* path = "";
};

// The mapped extent of the module around `address`. dladdr knows the module but not where it ends.
bool find_module(const void* address, Module& out) {
  struct Search {
    std::uintptr_t address;
    Module* out;
    bool found;
  } search{reinterpret_cast<std::uintptr_t>(address), &out, false};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        std::uintptr_t low = UINTPTR_MAX, high = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          const auto begin = info->dlpi_addr + segment.p_vaddr;
          if (begin < low) low = begin;
          if (begin + segment.p_memsz > high) high = begin + segment.p_memsz;
        }
        if (s.address < low || s.address >= high) return 0;
        *s.out = {low, high, info->dlpi_name ? info->dlpi_name : ""};
        s.found = true;
        return 1;
      },
      &search);
  return search.found;
}

const char* base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

bool is_cudnn(const char* path) { return std::strncmp(base_name(path), "libcudnn", 8) == 0; }

const void* base_of(const void* address) {
  Dl_info info{};
  return address && dladdr(address, &info) ? info.dli_fbase : nullptr;
}

bool is_ours(const void* address) {
  static const void* const own = base_of(reinterpret_cast<const void*>(&caller_at));
  return base_of(address) == own;
}

// Our own export must never pass for the real function: that would recurse.
void* real_symbol(void* handle, const char* name) {
  void* found = symbol_in(handle, name);
  return found && !is_ours(found) ? found : nullptr;
}

bool resolve(void* handle, Library& library) {
  bool any = false;
#define CONVPIN_HOOK(name, ...)                                                             \
  library.name = reinterpret_cast<decltype(library.name)>(real_symbol(handle, #name)); \
  if (library.name && !library.base) library.base = base_of(reinterpret_cast<void*>(library.name)); \
  any = any || library.name;
#define CONVPIN_USED(name) library.name = reinterpret_cast<decltype(library.name)>(real_symbol(handle, #name));
#include "shim/hooks/functions.def"
#undef CONVPIN_HOOK
#undef CONVPIN_USED
  library.handle = handle;
  return any;
}

// In order of exactness (facts of the loader: dlsym on a module's own handle searches what it was linked to;
// RTLD_NEXT searches the program's scope, which is right for the program and its own dependencies; a library
// that Python opened RTLD_LOCAL is in neither, but NOLOAD finds it by its SONAME).
bool find_library(const Module& module, Library& out) {
  if (module.path[0] != '\0') {
    if (void* own = dlopen(module.path, RTLD_LAZY | RTLD_NOLOAD))
      if (resolve(own, out)) return true;
  }
  if (resolve(RTLD_NEXT, out)) return true;
  for (const char* soname : {"libcudnn.so.9", "libcudnn.so.8", "libcudnn_graph.so.9", "libcudnn_cnn.so.9",
                             "libcudnn_cnn_infer.so.8", "libcudnn_cnn_train.so.8"}) {
    if (void* loaded = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD))
      if (resolve(loaded, out)) return true;
  }
  return false;
}

int number_of(const void* base) {
  for (int i = 0; i < static_cast<int>(std::size(libraries)); ++i)
    if (const Library* known = libraries[i].load(std::memory_order_acquire); known && known->base == base) return i;
  return -1;
}

// One Library for each copy, shared by all its callers.
Library* remember(const Library& found) {
  std::lock_guard hold(append_lock);
  if (const int known = number_of(found.base); known >= 0) return libraries[known];
  auto* added = new (std::nothrow) Library(found);
  for (auto& slot : libraries) {
    if (slot.load(std::memory_order_relaxed)) continue;
    slot.store(added, std::memory_order_release);
    break;
  }
  return added;
}

// Not while a program looks something up: cuDNN loads its other libraries to answer.
void ask_version(Library& library) {
  const std::size_t version = library.cudnnGetVersion ? library.cudnnGetVersion() : 0;
  std::lock_guard hold(append_lock);
  if (library.version == 0) library.version = version;
}

Caller meet(const void* return_address) noexcept {
  const int saved_errno = errno;
  Module module;
  Caller caller;
  Library found;
  // Code that no module holds (a JIT's) is served like the program itself, but not remembered: it may go.
  const bool known_module = find_module(return_address, module);
  if (find_library(module, found)) {
    Library* const library = remember(found);
    if (library) ask_version(*library);
    caller.library = library;
    caller.inside_cudnn = is_cudnn(module.path);
    if (auto* range = known_module ? new (std::nothrow) Range{module.low, module.high, caller, nullptr} : nullptr) {
      std::lock_guard hold(append_lock);
      range->next = ranges.load(std::memory_order_relaxed);
      ranges.store(range, std::memory_order_release);
    }
  }
  dlerror();  // what our look-ups left there is not the application's
  errno = saved_errno;
  return caller;
}

}  // namespace

cudnnStatus_t Library::not_supported() const {
  return version != 0 && version < 90000 ? static_cast<cudnnStatus_t>(9) : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t Library::bad_param() const {
  return version != 0 && version < 90000 ? static_cast<cudnnStatus_t>(3) : CUDNN_STATUS_BAD_PARAM;
}

void renew_lock_in_child() noexcept { new (&append_lock) std::mutex; }

Caller caller_at(const void* return_address) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(return_address);
  for (const Range* r = ranges.load(std::memory_order_acquire); r; r = r->next)
    if (address - r->low < r->high - r->low) return r->caller;
  return meet(return_address);
}

int copy_of(const void* function) noexcept {
  const void* const base = base_of(function);
  if (!base || is_ours(function)) return -1;
  if (const int known = number_of(base); known >= 0) return known;
  Module module;
  Library found;
  // By its own handle, which finds its own functions first, and keeps it loaded. The program has no path.
  void* own = find_module(function, module) ? dlopen(module.path[0] ? module.path : nullptr, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  const bool complete = own && resolve(own, found);
  dlerror();  // what our look-ups left there is not the application's
  if (!complete) return -1;
  found.base = base;
  remember(found);
  return number_of(base);
}

Caller caller_of_copy(int copy) noexcept {
  const Library* known = looked_up[copy].load(std::memory_order_acquire);
  if (known) return {known, false};
  Library* const library = libraries[copy].load(std::memory_order_acquire);
  ask_version(*library);
  looked_up[copy].store(library, std::memory_order_release);
  return {library, false};
}

Side side_of(const void* code) noexcept {
  Module module;
  if (!find_module(code, module)) return Side::Program;  // a JIT's
  return is_cudnn(module.path) ? Side::Cudnn : is_ours(code) ? Side::Convpin : Side::Program;
}

}  // namespace convpin
