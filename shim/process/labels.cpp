#include "shim/process/labels.hpp"

#include <mutex>
#include <new>
#include <unordered_map>

#include "shim/model/text.hpp"
#include "shim/process/report.hpp"

namespace convpin {
namespace {

constexpr std::size_t kLongest = 200;
constexpr std::size_t kMostLabels = 1 << 16;   // a program that makes up a new name for each call

thread_local const Label* current __attribute__((tls_model("initial-exec"))) = nullptr;

std::mutex lock;
std::unordered_map<std::string, Label>* known = nullptr;  // under lock

}  // namespace

void set_label(const char* name) {
  current = nullptr;
  if (!name || !*name) return;
  const std::string text = one_line(name, kLongest);
  std::lock_guard hold(lock);
  if (!known) known = new std::unordered_map<std::string, Label>;
  const auto found = known->find(text);
  if (found != known->end()) {
    current = &found->second;
  } else if (known->size() < kMostLabels) {
    current = &known->emplace(text, Label{text}).first->second;
  }
  observing_.fetch_or(kLabels, std::memory_order_relaxed);
}

const Label* label_of_thread() noexcept { return current; }

const std::string& current_label() noexcept {
  static const Label none;
  return current ? current->name : none.name;
}

void attach_label(ProblemState& state) noexcept {
  const Label* label = current;
  if (!label) return;
  for (auto& slot : state.labels) {
    const Label* at = slot.load(std::memory_order_acquire);
    if (!at && slot.compare_exchange_strong(at, label)) {
      try {
        announce(state);
        record(label_record(state.id, label->name));
      } catch (...) {  // out of memory: the log lacks a line
      }
      return;
    }
    if (at == label) return;
  }
}

std::vector<std::string> labels_of(const ProblemState& state) {
  std::vector<std::string> names;
  for (const auto& slot : state.labels)
    if (const Label* label = slot.load(std::memory_order_acquire)) names.push_back(label->name);
  return names;
}

void renew_labels_in_child() noexcept { new (&lock) std::mutex; }

}  // namespace convpin
