// The C API: too thin to be wrong. No exception leaves it, and no state of the program's changes (errno).
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "shim/api/convpin.h"
#include "shim/api/live.hpp"
#include "shim/process/labels.hpp"

namespace {

thread_local char message[4096] __attribute__((tls_model("initial-exec")));

// The error that `set` gives, kept for this thread; null for none.
template <typename Set>
const char* said(Set&& set) noexcept {
  const int saved_errno = errno;
  const char* result = message;
  try {
    const std::string error = set();
    message[error.copy(message, sizeof message - 1)] = '\0';
    if (error.empty()) result = nullptr;
  } catch (const std::exception& e) {
    std::strncpy(message, e.what(), sizeof message - 1);
  } catch (...) {
    std::strncpy(message, "it could not be done", sizeof message - 1);
  }
  errno = saved_errno;
  return result;
}

std::string text_of(const char* text) { return text ? text : ""; }

}  // namespace

// As CONVPIN_API in the header, and visible: the version script lists them from it.
#define CONVPIN_EXPORT extern "C" __attribute__((visibility("default")))

CONVPIN_EXPORT const char* convpin_version(void) { return CONVPIN_VERSION; }

CONVPIN_EXPORT void convpin_enable(void) {
  said([] { return convpin::enable() ? "" : "disabled"; });
}

CONVPIN_EXPORT const char* convpin_set_algo(const char* operation, const char* text) {
  return said([&] { return convpin::set_algorithm(text_of(operation), text_of(text)); });
}

CONVPIN_EXPORT const char* convpin_set_rules(const char* toml) {
  return said([&] { return convpin::set_rules(text_of(toml)); });
}

CONVPIN_EXPORT const char* convpin_clear(const char* operation) {
  return said([&] { return operation ? convpin::clear_algorithm(operation) : convpin::clear_everything(); });
}

CONVPIN_EXPORT void convpin_label(const char* name) {
  said([&] {
    if (!name || convpin::enable()) convpin::set_label(name);
    return "";
  });
}

CONVPIN_EXPORT char* convpin_problems(void) {
  char* result = nullptr;
  said([&] {
    convpin::enable();
    result = strdup(convpin::problems_json().c_str());
    return "";
  });
  return result;
}

CONVPIN_EXPORT void convpin_free(char* text) { std::free(text); }
