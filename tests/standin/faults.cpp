#include "tests/standin/faults.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "tests/standin/real.hpp"

namespace standin {
namespace {

thread_local std::string last_error;

// Calls `use` with each element of the variable's list until it returns true.
template <typename Use>
bool any_of(const char* variable, Use use) {
  const char* value = std::getenv(variable);
  std::string_view rest = value != nullptr ? value : "";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    if (use(rest.substr(0, end))) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

bool names(std::string_view element, Operation operation, std::string_view what) {
  const std::size_t slash = element.find('/');
  if (slash == element.npos) return element == what;
  return element.substr(0, slash) == name_of(operation) && element.substr(slash + 1) == what;
}

// What this thread's executions have taken by what STANDIN_SLOW says, each half a millisecond besides.
thread_local std::chrono::steady_clock::duration launched{};

// To the file that the variable names, if it does.
void add_line(const char* variable, const std::string& line) {
  const char* path = std::getenv(variable);
  if (path == nullptr) return;
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = write(file, line.data(), line.size());
  close(file);
}

}  // namespace

cudnnStatus_t refuse(cudnnStatus_t status, const std::string& reason) {
  last_error = "stand-in: " + reason;
  if (const char* bytes = std::getenv("STANDIN_REASON_BYTES"))
    last_error.resize(std::max<std::size_t>(last_error.size(), std::strtoul(bytes, nullptr, 10)), '.');
  return status;
}

bool named_in(const char* variable, Operation operation, const std::string& what) {
  return any_of(variable, [&](std::string_view element) { return names(element, operation, what); });
}

std::chrono::steady_clock::time_point device_now() {
  return std::getenv("STANDIN_SLOW") ? std::chrono::steady_clock::time_point(launched) : std::chrono::steady_clock::now();
}

cudnnStatus_t injected_fault(Operation operation, const std::string& what) {
  launched += std::chrono::microseconds(500);
  any_of("STANDIN_SLOW", [&](std::string_view element) {  // eng28:50 (milliseconds)
    const std::size_t colon = element.find(':');
    if (colon == element.npos || !names(element.substr(0, colon), operation, what)) return false;
    const int milliseconds = std::atoi(std::string(element.substr(colon + 1)).c_str());
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    launched += std::chrono::milliseconds(milliseconds);
    return true;
  });
  if (named_in("STANDIN_CRASH", operation, what)) std::raise(SIGKILL);
  if (named_in("STANDIN_FAIL_EXECUTE", operation, what))
    return refuse(CUDNN_STATUS_EXECUTION_FAILED, "STANDIN_FAIL_EXECUTE");
  return CUDNN_STATUS_SUCCESS;
}

void trace(const std::string& api, Operation operation, const std::string& what, const char* how) {
  const std::string suffix = operation == Operation::Forward ? "" : std::string("/") + name_of(operation);
  add_line("STANDIN_TRACE", api + suffix + " " + what + " " + how + "\n");
}

void trace_plan(const std::string& engine) { add_line("STANDIN_TRACE_PLANS", engine + "\n"); }

}  // namespace standin

// As in the real library, reading it empties it.
STANDIN_EXPORT void cudnnGetLastErrorString(char* message, size_t max_size) {
  using standin::last_error;
  if (message == nullptr || max_size == 0) return;
  if (last_error.empty()) {
    standin::real::cudnnGetLastErrorString(message, max_size);
    return;
  }
  const std::size_t length = std::min(last_error.size(), max_size - 1);
  std::memcpy(message, last_error.data(), length);
  message[length] = '\0';
  last_error.clear();
}

STANDIN_EXPORT unsigned long long cudnnStandinMultiplies() { return standin::multiplies_so_far(); }

STANDIN_EXPORT unsigned long long cudnnStandinRuns(const char* name) {
  unsigned long long sum = 0;
  for (int i = 0; i < standin::operation_count * standin::algorithm_count; ++i) {
    const auto operation = static_cast<standin::Operation>(i / standin::algorithm_count);
    const auto algorithm = static_cast<standin::Algorithm>(i % standin::algorithm_count);
    if (name == nullptr || standin::names(name, operation, standin::name_of(algorithm)))
      sum += standin::runs_of(operation, algorithm);
  }
  return sum;
}
