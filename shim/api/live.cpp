#include "shim/api/live.hpp"

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <optional>

#include "shim/model/text.hpp"
#include "shim/process/rules.hpp"
#include "shim/process/runtime.hpp"

namespace convpin {
namespace {

using List = const std::vector<Rule>*;

constexpr const char* kDisabled = "CONVPIN_DISABLE is set, so nothing can be changed";
constexpr std::size_t kOfFile = std::size(kOperations);  // the place of convpin_set_rules' list, behind the operations'

std::mutex lock;
LiveRules current{};                                  // under lock: one list for each operation, then the TOML's
std::map<std::string, List>* lists = nullptr;         // under lock: each text's list is made once, and never freed

// The list that was made for this text, or what `make` gives, from then on.
template <typename Make>
List list_for(const std::string& key, Make&& make) {
  if (!lists) lists = new std::map<std::string, List>;
  const auto known = lists->find(key);
  return known != lists->end() ? known->second : lists->emplace(key, new std::vector<Rule>(make())).first->second;
}

std::optional<std::vector<Operation>> operations_from(const std::string& text) {
  if (lower(trim(text)) == "any") return std::vector<Operation>(std::begin(kOperations), std::end(kOperations));
  const auto operation = operation_from(text);
  return operation ? std::optional(std::vector{*operation}) : std::nullopt;
}

std::string unknown_operation(const std::string& text) {
  return quote(text) + " is not an operation: allowed are forward, backward_data, backward_filter (also fwd, dgrad, wgrad), any";
}

Rule rule_for(Operation operation, std::vector<Request> requests) {
  const Settings& settings = runtime().settings;
  Rule rule;
  rule.source = "convpin_set_algo";
  rule.operation = operation;
  rule.requests = std::move(requests);
  rule.on_unsupported = settings.on_unsupported;
  if (settings.workspace_limit >= 0) rule.workspace_limit = settings.workspace_limit;
  return rule;
}

}  // namespace

bool enable() {
  Runtime& r = runtime();
  if (r.settings.disable) return false;
  static std::atomic<bool> watched{false};
  if (!watched.exchange(true)) watch_packs();  // before the first plan is re-pinned, for programs that keep their packs
  r.idle.store(false, std::memory_order_relaxed);
  return true;
}

std::string set_algorithm(const std::string& operation, const std::string& text) {
  if (!enable()) return kDisabled;
  const auto operations = operations_from(operation);
  if (!operations) return unknown_operation(operation);
  std::vector<std::pair<Operation, std::vector<Request>>> wanted;
  std::string wrong;
  for (const Operation each : *operations) {
    auto requests = parse_requests(each, text);
    if (requests) {
      wanted.emplace_back(each, std::move(*requests.value));
    } else {
      wrong += (wrong.empty() ? "" : "; ") + requests.error;
    }
  }
  if (wanted.empty()) return wrong;
  if (wanted.size() > 1)
    for (const Request& request : wanted.front().second)
      if (request.engine.engine >= 0) return quote(text) + " is another engine in each operation: name the operation";
  std::lock_guard hold(lock);
  for (auto& [each, requests] : wanted) {
    const auto key = std::string(name_of(each)) + " " + request_text(rule_for(each, requests));
    current[static_cast<std::size_t>(each)] = list_for(key, [&] { return std::vector{rule_for(each, std::move(requests))}; });
  }
  set_live_rules(current);
  return {};
}

std::string set_rules(const std::string& toml) {
  if (!enable()) return kDisabled;
  auto rules = rules_from_toml(toml, "convpin_set_rules", runtime().settings);
  if (!rules) return rules.error;
  std::lock_guard hold(lock);
  current[kOfFile] = rules.value->empty() ? nullptr : list_for("rules " + toml, [&] { return std::move(*rules.value); });
  set_live_rules(current);
  return {};
}

std::string clear_algorithm(const std::string& operation) {
  if (!enable()) return kDisabled;
  const auto operations = operations_from(operation);
  if (!operations) return unknown_operation(operation);
  std::lock_guard hold(lock);
  for (const Operation each : *operations) current[static_cast<std::size_t>(each)] = nullptr;
  set_live_rules(current);
  return {};
}

std::string clear_everything() {
  if (!enable()) return kDisabled;
  std::lock_guard hold(lock);
  current = {};
  set_live_rules(current);
  return {};
}

void renew_live_in_child() noexcept { new (&lock) std::mutex; }

}  // namespace convpin
