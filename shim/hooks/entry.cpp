// The exported functions: find the real library behind the caller, then the adapter. Too thin to be wrong, and all made
// from the table (functions.def).
//
// A call passes on untouched where nothing is asked for, where cuDNN calls itself, and where we are already inside.
#include <cudnn.h>

#include <cstring>
#include <type_traits>
#include <utility>

#include "shim/graph/adapter.hpp"
#include "shim/graph/failed.hpp"
#include "shim/graph/mirror.hpp"
#include "shim/hooks/lookup.hpp"
#include "shim/hooks/real.hpp"
#include "shim/hooks/reason.hpp"
#include "shim/hooks/signature.hpp"
#include "shim/hooks/trouble.hpp"
#include "shim/legacy/calls.hpp"
#include "shim/legacy/failed.hpp"
#include "shim/process/failures.hpp"
#include "shim/process/runtime.hpp"
#include "shim/profile/measure.hpp"

namespace convpin {

const AtEnd at_end_hooks[5] = {
    {graph::flush_live_plans, nullptr, graph::renew_in_child},
    {legacy::flush_counts, nullptr, nullptr},
    {nullptr, measuring_summary, renew_measuring_in_child},
    {nullptr, nullptr, renew_lock_in_child},
    {log_failure_counts, failures_summary, renew_failures_in_child},
};

namespace {

// initial-exec: a preloaded library's thread-locals are in the static block, so that this is one instruction.
thread_local int depth __attribute__((tls_model("initial-exec"))) = 0;

struct Inside {
  Inside() { ++depth; }
  ~Inside() { --depth; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

[[gnu::always_inline]] inline bool passes(const Caller& caller) { return depth > 0 || caller.inside_cudnn || runtime().idle; }

// For a function that this cuDNN lacks, and for a caller behind which there is none.
cudnnStatus_t missing(const Caller& caller) {
  return caller.library ? caller.library->not_supported() : CUDNN_STATUS_NOT_INITIALIZED;
}

// A call of the program's has failed. cuDNN's text is taken first: what we ask it then may leave another.
template <typename Hook, typename... A>
[[gnu::cold, gnu::noinline]] void note_failed(const Library& library, cudnnStatus_t status, A... arguments) noexcept {
  using graph::describe_failed;
  using legacy::describe_failed;
  FailedCall call;
  call.call = Hook::name;
  call.status = status;
  if constexpr (requires { describe_failed(library, call, arguments...); }) {
    if (!runtime().log.wanted()) return;
    const auto text = keep_last_error(library);
    if (!text) return;
    try {
      const ReasonScope ours(library);
      describe_failed(library, call, arguments...);
      note_failed_call(library, call, *text);
    } catch (...) {
      in_trouble("noting a call that failed");
    }
  }
}

// `Hook` is one row of the table: the real function, its name, and what we do instead.
template <typename Hook, typename... A>
[[gnu::always_inline]] inline auto enter(const Caller& caller, A... arguments) {
  using Result = decltype((caller.library->*Hook::function)(arguments...));
  if (!caller.library || !(caller.library->*Hook::function)) {
    if constexpr (std::is_void_v<Result>)
      return;
    else
      return missing(caller);
  }
  const Real<Hook::function> real{*caller.library, Hook::name};
  if (passes(caller)) return real(arguments...);
  const Inside inside;
  if constexpr (std::is_same_v<Result, cudnnStatus_t>) {
    const cudnnStatus_t status = Hook::ours(real, arguments...);
    if (status != CUDNN_STATUS_SUCCESS) [[unlikely]] note_failed<Hook>(*caller.library, status, arguments...);
    return status;
  } else {
    return Hook::ours(real, arguments...);
  }
}

#define CONVPIN_HOOK(function_, parameters, ...)                          \
  struct Hook_##function_ {                                               \
    static constexpr auto function = &Library::function_;                 \
    static constexpr const char* name = #function_;                       \
    template <typename... A>                                              \
    [[gnu::always_inline]] static auto ours(const Real<function>& real, A... arguments) { \
      return __VA_ARGS__(real, arguments...);                             \
    }                                                                     \
  };
#define CONVPIN_USED(name)
#include "shim/hooks/functions.def"
#undef CONVPIN_HOOK

// What programs are given that look the function up: it knows its copy, since the return address of such a call may lie
// anywhere (libffi's, a JIT's).
template <typename Hook, int copy, typename Function>
struct LookedUp;
template <typename Hook, int copy, typename Result, typename... A>
struct LookedUp<Hook, copy, Result (*)(A...)> {
  static Result call(A... arguments) { return enter<Hook>(caller_of_copy(copy), arguments...); }
};

template <typename Hook, int... copies>
void* looked_up(int copy, std::integer_sequence<int, copies...>) {
  using Function = std::remove_cvref_t<decltype(std::declval<Library>().*Hook::function)>;
  static constexpr Function of_copy[] = {LookedUp<Hook, copies, Function>::call...};
  return reinterpret_cast<void*>(of_copy[copy]);
}

}  // namespace

void* hook_for(const char* name, int copy) noexcept {
#define CONVPIN_HOOK(function, ...) \
  if (!std::strcmp(name, #function)) return looked_up<Hook_##function>(copy, std::make_integer_sequence<int, kLookedUpCopies>());
#include "shim/hooks/functions.def"
#undef CONVPIN_HOOK
  return nullptr;
}

}  // namespace convpin

#define CONVPIN_HOOK(name, parameters, ...)                                                                       \
  extern "C" __attribute__((visibility("default"))) convpin::Signature<decltype(name)>::Result name(             \
      CONVPIN_PARAMETERS_##parameters(name)) {                                                                    \
    const convpin::Caller caller = convpin::caller_at(__builtin_return_address(0));                               \
    return convpin::enter<convpin::Hook_##name>(caller, CONVPIN_ARGUMENTS_##parameters);                          \
  }
#include "shim/hooks/functions.def"
#undef CONVPIN_HOOK
#undef CONVPIN_USED
