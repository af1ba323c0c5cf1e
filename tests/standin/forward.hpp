// Exports that hand their arguments on to a function found later, by name. Result and parameter types
// are taken from the header's declaration; the table (standin.def) only adds how many there are.
#pragma once

#include <cudnn.h>

#include <atomic>
#include <type_traits>

#include "shim/hooks/signature.hpp"
#include "tests/standin/standin.h"

namespace standin {

// Returns null when there is no such function.
using Find = void* (*)(const char* name);

// A function that is looked up at its first call. Constant-initialised, safe to call from any thread.
template <typename Function>
class Lazy;

template <typename R, typename... A>
class Lazy<R(A...)> {
 public:
  constexpr Lazy(const char* name, Find find) : name_(name), find_(find) {}

  R operator()(A... arguments) {
    auto* function = function_.load(std::memory_order_acquire);
    if (function == nullptr) {
      function = reinterpret_cast<R (*)(A...)>(find_(name_));
      if (function == nullptr) {
        if constexpr (std::is_same_v<R, cudnnStatus_t>)
          return CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED;
        else
          return R();
      }
      function_.store(function, std::memory_order_release);
    }
    return function(arguments...);
  }

 private:
  const char* name_;
  Find find_;
  std::atomic<R (*)(A...)> function_{nullptr};
};

}  // namespace standin

#define STANDIN_EXPORT extern "C" __attribute__((visibility("default")))

// Defines and exports `name`, which calls what `find` finds under that name.
#define STANDIN_FORWARD(name, count, find)                                                           \
  STANDIN_EXPORT convpin::Signature<decltype(name)>::Result name(CONVPIN_PARAMETERS_##count(name)) { \
    static constinit standin::Lazy<decltype(name)> function(#name, find);                            \
    return function(CONVPIN_ARGUMENTS_##count);                                                      \
  }
