// What was met so far, for the program to read.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "shim/api/live.hpp"
#include "shim/process/rules.hpp"
#include "shim/process/runtime.hpp"

namespace convpin {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json json_of(ProblemState& state) {
  const Rule* rule = rule_of(state);
  std::lock_guard hold(state.lock);
  const Choice* last = state.told.empty() ? nullptr : &state.told.back();
  std::vector<ProblemState::Ran> ran = state.ran;
  std::stable_partition(ran.begin(), ran.end(), [&](const auto& way) { return last && way.what == last->ran; });
  Json ways = Json::array();
  for (const auto& way : ran) ways.push_back({{"what", way.what}, {"calls", way.calls}});
  return {{"id", state.id},
          {"problem", to_text(state.problem)},
          {"api", name_of(state.api)},
          {"operation", name_of(state.problem.operation)},
          {"operations", operations_of(state.problem)},
          {"calls", state.calls.load()},
          {"choice", last ? Json(name_of(last->kind)) : Json(nullptr)},
          {"rule", last ? or_null(last->rule) : rule ? Json(rule->label()) : Json(nullptr)},
          {"requested", last ? or_null(last->requested) : rule ? Json(request_text(*rule)) : Json(nullptr)},
          {"reason", last ? or_null(last->reason) : Json(nullptr)},
          {"ran", ways},
          {"labels", labels_of(state)},
          {"device", or_null(state.place.device)},
          {"cudnn", or_null(state.place.cudnn_version ? version_text(state.place.cudnn_version) : "")}};
}

}  // namespace

std::string problems_json() {
  for (const AtEnd& hook : at_end_hooks)
    if (hook.flush) hook.flush();
  std::vector<ProblemState*> states;
  each_problem([&](ProblemState& state) { states.push_back(&state); });
  std::sort(states.begin(), states.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
  Json all = Json::array();
  for (ProblemState* state : states) all.push_back(json_of(*state));
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace convpin
