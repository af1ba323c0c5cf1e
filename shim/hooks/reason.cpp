#include "shim/hooks/reason.hpp"

#include <atomic>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace convpin {
namespace {

// Where the callback puts this thread's messages; null: not ours. cuDNN calls back on the thread that it
// reports on (measured, 9.19), so that other threads' messages find null.
thread_local std::string* collecting __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local char own_error[256] __attribute__((tls_model("initial-exec"))) = {};
thread_local bool failed_by_us __attribute__((tls_model("initial-exec"))) = false;  // the call that is under way

// cuDNN's text, taken out by keep_last_error. Threads end with texts that nobody has read.
struct KeptError {
  char* text = nullptr;
  void put(char* other) { std::free(std::exchange(text, other)); }
  ~KeptError() { put(nullptr); }
};
thread_local KeptError kept_error;
thread_local bool kept_of_this_call __attribute__((tls_model("initial-exec"))) = false;  // put back while the call is under way

std::atomic<bool> application_has_callback{false};
std::atomic<bool> installed{false};  // our function is cuDNN's callback: the application must not see it

void collect(cudnnSeverity_t, void*, const cudnnDebug_t*, const char* message) noexcept {
  if (!collecting || !message) return;
  try {  // several NUL-separated lines, ended by an empty one
    for (const char* line = message; *line && collecting->size() < 8192; line += std::strlen(line) + 1)
      collecting->append(line).push_back('\n');
  } catch (...) {  // out of memory: the reason stays shorter
  }
}

// The user reads cuDNN's own log: leave its settings alone. A callback would take the log over.
bool user_logs() {
  static const bool logs = [] {
    for (const char* name : {"CUDNN_LOGLEVEL_DBG", "CUDNN_LOGDEST_DBG", "CUDNN_LOGINFO_DBG", "CUDNN_LOGWARN_DBG", "CUDNN_LOGERR_DBG"})
      if (secure_getenv(name)) return true;
    return false;
  }();
  return logs;
}

bool may_collect(const Library& library) {
  if (!library.cudnnSetCallback || !library.cudnnGetCallback || user_logs() || application_has_callback) return false;
  if (installed) return true;
  unsigned mask = 0;
  void* data = nullptr;
  cudnnCallback_t function = nullptr;
  if (library.cudnnGetCallback(&mask, &data, &function) != CUDNN_STATUS_SUCCESS || function) {
    application_has_callback = true;
    return false;
  }
  return true;
}

std::string status_in_words(const Library& library, cudnnStatus_t status) {
  std::string words = library.cudnnGetErrorString ? library.cudnnGetErrorString(status) : "status " + std::to_string(status);
  constexpr std::string_view prefix = "CUDNN_STATUS_", group = "NOT_SUPPORTED_";
  if (words.starts_with(prefix)) words.erase(0, prefix.size());
  const bool detailed = words.starts_with(group);
  if (detailed) words.erase(0, group.size());
  for (char& c : words) c = c == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return detailed ? "not supported: " + words : words;
}

std::string explained(const Library& library, cudnnStatus_t status, const std::string& collected, const std::string& last_error) {
  const std::string in_words = status_in_words(library, status);
  std::string reason = best_reason(collected);
  if (reason.empty()) reason = best_reason("Reason: " + last_error);
  return reason.empty() || reason == in_words ? in_words : in_words + " (" + reason + ")";
}

}  // namespace

std::string explained(const Library& library, cudnnStatus_t status, const std::string& last_error) {
  return explained(library, status, {}, last_error);
}

std::string best_reason(const std::string& lines) {
  // "Warning: CUDNN_STATUS_NOT_SUPPORTED_SHAPE; Reason: 'c' per group must be 1 at: wDesc->dimA[1] != 1". The
  // innermost frame comes first; frames that only pass a status on ("core_engine.getStatus()") say nothing.
  constexpr std::string_view key = "Reason: ";
  for (std::size_t at = lines.find(key); at != std::string::npos; at = lines.find(key, at + 1)) {
    const std::size_t begin = at + key.size();
    std::string reason = lines.substr(begin, lines.find('\n', begin) - begin);
    const bool calls_on = reason.ends_with(")") && reason.find(' ') == std::string::npos;
    const bool words = reason.find(' ') != std::string::npos || reason.find("::") == std::string::npos;
    const bool addresses = reason.find("0x") != std::string::npos;
    if (!calls_on && words && !addresses && reason.find("tatus()") == std::string::npos && reason != "status") return reason.substr(0, 200);
  }
  return {};
}

ReasonScope::ReasonScope(const Library& library, Listen listen) : library_(library), outer_(collecting) {
  collecting = &collected_;
  if (listen == Listen::No || !may_collect(library)) return;
  installed = true;
  switched_on_ = library.cudnnSetCallback(CUDNN_SEV_WARNING_EN | CUDNN_SEV_ERROR_EN, nullptr, collect) == CUDNN_STATUS_SUCCESS;
}

ReasonScope::~ReasonScope() {
  collecting = outer_;
  // Mask 0 with our function, not the initial (0, null): that switches on cuDNN's own printing to stderr.
  if (switched_on_ && !application_has_callback) library_.cudnnSetCallback(0, nullptr, collect);
  if (!outer_ && library_.cudnnGetLastErrorString) {
    char drained[8];  // reading empties it
    library_.cudnnGetLastErrorString(drained, sizeof drained);
  }
}

std::string ReasonScope::text(cudnnStatus_t status) const {
  char message[512] = {};
  if (library_.cudnnGetLastErrorString) library_.cudnnGetLastErrorString(message, sizeof message);
  return explained(library_, status, collected_, message);
}

cudnnStatus_t set_callback(const Library& library, unsigned mask, void* data, cudnnCallback_t function) noexcept {
  application_has_callback = function != nullptr || mask != 0;
  return library.cudnnSetCallback(mask, data, function);
}

cudnnStatus_t get_callback(const Library& library, unsigned* mask, void** data, cudnnCallback_t* function) noexcept {
  const cudnnStatus_t status = library.cudnnGetCallback(mask, data, function);
  if (status == CUDNN_STATUS_SUCCESS && function && *function == collect) {
    *function = nullptr;
    if (mask) *mask = 0;
  }
  return status;
}

void get_last_error(const Library& library, char* message, std::size_t size) noexcept {
  library.cudnnGetLastErrorString(message, size);
  const char* instead = kept_error.text ? kept_error.text : own_error;
  if (message && size > 0 && message[0] == '\0' && instead[0] != '\0') {
    std::strncpy(message, instead, size - 1);
    message[size - 1] = '\0';
  }
  own_error[0] = '\0';
  kept_error.put(nullptr);
}

std::string take_last_error(const Library& library) {
  constexpr std::size_t kWhole = 32768;  // cudnn-frontend reads as much; it is a text for each frame of cuDNN's that failed
  std::string text(kWhole, '\0');
  if (library.cudnnGetLastErrorString) library.cudnnGetLastErrorString(text.data(), text.size());
  text.back() = '\0';
  text.resize(std::strlen(text.data()));
  return text;
}

void put_last_error_back(const std::string& text) noexcept {
  if (text.empty()) return;  // then an earlier failure's is still the last, as in cuDNN itself
  kept_of_this_call = true;
  own_error[0] = '\0';
  kept_error.put(strdup(text.c_str()));
}

std::optional<std::string> keep_last_error(const Library& library) noexcept {
  if (std::exchange(failed_by_us, false)) return std::nullopt;
  constexpr std::size_t kNoted = 2047;
  try {
    std::string text = take_last_error(library);
    const bool put_back = std::exchange(kept_of_this_call, false);
    if (text.empty() && put_back && kept_error.text) text = kept_error.text;
    put_last_error_back(text);
    kept_of_this_call = false;
    return text.substr(0, kNoted);
  } catch (...) {
    return std::nullopt;
  }
}

void goes_on() noexcept { failed_by_us = false; }

void set_last_error(std::string_view text) noexcept {
  const std::size_t length = text.copy(own_error, sizeof own_error - 1);
  own_error[length] = '\0';
  failed_by_us = true;
  kept_error.put(nullptr);  // of an earlier failure
}

}  // namespace convpin
