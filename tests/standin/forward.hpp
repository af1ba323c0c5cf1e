// Exports that hand their arguments on to a function found later, by name. Result and parameter types
// are taken from the header's declaration; the table (standin.def) only adds how many there are.
#pragma once

#include <cudnn.h>

#include <atomic>
#include <cstddef>
#include <tuple>
#include <type_traits>

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

template <typename Function>
struct Signature;

template <typename R, typename... A>
struct Signature<R(A...)> {
  using Result = R;
  template <std::size_t i>
  using Argument = std::tuple_element_t<i, std::tuple<A...>>;
};

}  // namespace standin

#define STANDIN_EXPORT extern "C" __attribute__((visibility("default")))

#define STANDIN_P(f, i) standin::Signature<decltype(f)>::Argument<i> a##i
#define STANDIN_PARAMETERS_0(f)
#define STANDIN_PARAMETERS_1(f) STANDIN_P(f, 0)
#define STANDIN_PARAMETERS_2(f) STANDIN_PARAMETERS_1(f), STANDIN_P(f, 1)
#define STANDIN_PARAMETERS_3(f) STANDIN_PARAMETERS_2(f), STANDIN_P(f, 2)
#define STANDIN_PARAMETERS_4(f) STANDIN_PARAMETERS_3(f), STANDIN_P(f, 3)
#define STANDIN_PARAMETERS_5(f) STANDIN_PARAMETERS_4(f), STANDIN_P(f, 4)
#define STANDIN_PARAMETERS_6(f) STANDIN_PARAMETERS_5(f), STANDIN_P(f, 5)
#define STANDIN_PARAMETERS_7(f) STANDIN_PARAMETERS_6(f), STANDIN_P(f, 6)
#define STANDIN_PARAMETERS_8(f) STANDIN_PARAMETERS_7(f), STANDIN_P(f, 7)
#define STANDIN_PARAMETERS_9(f) STANDIN_PARAMETERS_8(f), STANDIN_P(f, 8)
#define STANDIN_PARAMETERS_10(f) STANDIN_PARAMETERS_9(f), STANDIN_P(f, 9)
#define STANDIN_PARAMETERS_11(f) STANDIN_PARAMETERS_10(f), STANDIN_P(f, 10)
#define STANDIN_PARAMETERS_12(f) STANDIN_PARAMETERS_11(f), STANDIN_P(f, 11)
#define STANDIN_PARAMETERS_13(f) STANDIN_PARAMETERS_12(f), STANDIN_P(f, 12)
#define STANDIN_PARAMETERS_14(f) STANDIN_PARAMETERS_13(f), STANDIN_P(f, 13)
#define STANDIN_PARAMETERS_15(f) STANDIN_PARAMETERS_14(f), STANDIN_P(f, 14)
#define STANDIN_PARAMETERS_16(f) STANDIN_PARAMETERS_15(f), STANDIN_P(f, 15)
#define STANDIN_PARAMETERS_17(f) STANDIN_PARAMETERS_16(f), STANDIN_P(f, 16)
#define STANDIN_PARAMETERS_18(f) STANDIN_PARAMETERS_17(f), STANDIN_P(f, 17)

#define STANDIN_ARGUMENTS_0
#define STANDIN_ARGUMENTS_1 a0
#define STANDIN_ARGUMENTS_2 STANDIN_ARGUMENTS_1, a1
#define STANDIN_ARGUMENTS_3 STANDIN_ARGUMENTS_2, a2
#define STANDIN_ARGUMENTS_4 STANDIN_ARGUMENTS_3, a3
#define STANDIN_ARGUMENTS_5 STANDIN_ARGUMENTS_4, a4
#define STANDIN_ARGUMENTS_6 STANDIN_ARGUMENTS_5, a5
#define STANDIN_ARGUMENTS_7 STANDIN_ARGUMENTS_6, a6
#define STANDIN_ARGUMENTS_8 STANDIN_ARGUMENTS_7, a7
#define STANDIN_ARGUMENTS_9 STANDIN_ARGUMENTS_8, a8
#define STANDIN_ARGUMENTS_10 STANDIN_ARGUMENTS_9, a9
#define STANDIN_ARGUMENTS_11 STANDIN_ARGUMENTS_10, a10
#define STANDIN_ARGUMENTS_12 STANDIN_ARGUMENTS_11, a11
#define STANDIN_ARGUMENTS_13 STANDIN_ARGUMENTS_12, a12
#define STANDIN_ARGUMENTS_14 STANDIN_ARGUMENTS_13, a13
#define STANDIN_ARGUMENTS_15 STANDIN_ARGUMENTS_14, a14
#define STANDIN_ARGUMENTS_16 STANDIN_ARGUMENTS_15, a15
#define STANDIN_ARGUMENTS_17 STANDIN_ARGUMENTS_16, a16
#define STANDIN_ARGUMENTS_18 STANDIN_ARGUMENTS_17, a17

// Defines and exports `name`, which calls what `find` finds under that name.
#define STANDIN_FORWARD(name, count, find)                                                           \
  STANDIN_EXPORT standin::Signature<decltype(name)>::Result name(STANDIN_PARAMETERS_##count(name)) { \
    static constinit standin::Lazy<decltype(name)> function(#name, find);                            \
    return function(STANDIN_ARGUMENTS_##count);                                                      \
  }
