// The real cuDNN behind our exports: one Library for each copy that is loaded, found by who calls.
#pragma once

#include <cudnn.h>

#include <cstddef>

namespace convpin {

// One loaded copy of cuDNN. A function that this copy lacks is null.
struct Library {
#define CONVPIN_HOOK(name, ...) decltype(&::name) name = nullptr;
#define CONVPIN_USED(name) decltype(&::name) name = nullptr;
#include "shim/hooks/functions.def"
#undef CONVPIN_HOOK
#undef CONVPIN_USED
  std::size_t version = 0;             // cudnnGetVersion(): 91900; 0 if it can't be asked
  void* handle = nullptr;              // for symbol_in; never closed
  const void* base = nullptr;          // where the copy is mapped: its identity

  cudnnStatus_t not_supported() const; // 3000 in cuDNN 9, 9 in cuDNN 8 (facts differ by running version)
  cudnnStatus_t bad_param() const;     // 2000 in cuDNN 9, 3 in cuDNN 8
};

// One function of one copy, to call with the caller's arguments.
template <auto Function>
struct Real {
  const Library& library;
  const char* name;
  operator const Library&() const { return library; }
  template <typename... A>
  auto operator()(A... arguments) const {
    return (library.*Function)(arguments...);
  }
};

struct Caller {
  const Library* library = nullptr;    // null: no cuDNN found for this caller
  bool inside_cudnn = false;           // cuDNN calling itself: always pass on
};

// The copy of cuDNN that the module containing `return_address` is linked to. After a module's first call
// this is two comparisons and no lock. Never throws; a failure to find is not remembered.
Caller caller_at(const void* return_address) noexcept;

// The number of the copy that `function` of cuDNN lies in, as a program looked it up; -1 if it can't be told. The copy
// stays loaded from then on, also if the program closes it: its number is in function pointers that the program holds.
int copy_of(const void* function) noexcept;
inline constexpr int kLookedUpCopies = 4;  // the first so many of them have functions of their own
Caller caller_of_copy(int copy) noexcept;

enum class Side : unsigned char { Program, Cudnn, Convpin };
Side side_of(const void* code) noexcept;   // whose it is

void renew_lock_in_child() noexcept;   // after fork

}  // namespace convpin
