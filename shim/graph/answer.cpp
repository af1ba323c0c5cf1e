#include "shim/graph/answer.hpp"

#include <algorithm>

#include "shim/graph/decide.hpp"
#include "shim/hooks/reason.hpp"
#include "shim/process/denials.hpp"
#include "shim/process/rules.hpp"

namespace convpin::graph {
namespace {

Target target_of(const HeuristicsNode& node) { return {node.graph->handle, node.device_prop ? node.device_prop->get() : nullptr}; }

bool is_fallback(cudnnBackendHeurMode_t mode) { return mode == CUDNN_HEUR_MODE_FALLBACK; }

// So many of the real list stand behind pins that needed none: as many as cudnn.benchmark tries. The FALLBACK list is whole.
constexpr std::int64_t kBehindPins = 10;

// A rule that names its configurations needs no list, and making one is most of what a pin costs.
bool needs_list(ProblemState& state) {
  const Rule* rule = rule_of(state);  // once: another thread may take the live rules away
  return !asks(rule) || !names_configurations(*rule) || state.profile.load() == ProfileState::Wanted ||
         !runtime().settings.denials.empty();
}

// The INSTANT list, where it is needed.
std::vector<Listed> instant_list(const Library& library, ProblemState& state, cudnnBackendDescriptor_t graph, const Target& target) {
  if (!needs_list(state)) return {};
  return read_list(library, query_heuristics(library, graph, CUDNN_HEUR_MODE_INSTANT, target));
}

// The pins that the problem's rule takes; what makes the query fail where it takes none.
void add_pins(const Library& library, HeuristicsNode& node, Answer& answer, cudnnBackendDescriptor_t graph, const std::vector<Listed>& listed) {
  ProblemState& state = *answer.state;
  // The same pin whichever mode is asked: its configuration is the one of the INSTANT list.
  const auto instant = is_fallback(node.mode) ? instant_list(library, state, graph, target_of(node)) : listed;
  const Decision decision = decide(library, state, *node.graph, graph, target_of(node), instant);
  for (const auto& config : decision.configs) answer.slots.push_back({config, Answer::Role::Pin});
  answer.pins = decision.configs.size();
  const Rule* rule = rule_of(state);  // null where another thread has just taken the live rules away
  answer.strict = !decision.configs.empty() && rule && rule->on_unsupported == OnUnsupported::Error;
  if (decision.configs.empty() && !decision.reason.empty()) answer.failure = failure_by_rule(state, decision.reason);
  std::lock_guard hold(state.lock);
  state.unsupported_reason = decision.configs.empty() ? decision.reason : std::string();
}

std::vector<Offer> offers_of(const ProblemState& state, const std::vector<Listed>& list) {
  std::vector<Offer> offers;
  for (const Listed& entry : list) offers.push_back({to_tag(entry.config), denied(state, entry.config)});
  return offers;
}

AnswerPointer prepare(const Library& library, cudnnBackendDescriptor_t heuristics, HeuristicsNode& node) {
  auto answer = std::make_shared<Answer>();
  answer->graph = node.graph;
  answer->state = meet(node.graph->problem, Api::Graph, library);
  answer->generation = rules_generation();
  ProblemState& state = *answer->state;
  answer->failure = failure_by_miss(state);
  if (!answer->failure.empty()) return answer;
  answer->listed = needs_list(state);
  const auto real = answer->listed ? read_results(library, heuristics) : read_results(library, heuristics, 1);
  auto listed = answer->listed ? read_list(library, real) : std::vector<Listed>();
  const auto is_denied = [&](const Listed& entry) { return denied(state, entry.config) != nullptr; };
  answer->filtered = std::any_of(listed.begin(), listed.end(), is_denied);
  const auto offers = runtime().settings.denials.empty() ? std::vector<Offer>() : offers_of(state, listed);
  note_list(state, offers);
  if (!real.empty() && (answer->filtered || asks(rule_of(state)))) {
    // The application's own graph descriptor may be gone by now; a configuration of the list holds the graph too.
    auto graph = std::make_shared<Descriptor>(graph_of_config(library, real.front().get()));
    if (*graph) {
      if (asks(rule_of(state))) add_pins(library, node, *answer, graph->get(), listed);
      node.pinned_graph = graph;
    }
  }
  if (answer->strict || !answer->failure.empty()) return answer;
  std::erase_if(listed, is_denied);
  for (const auto& entry : listed) answer->slots.push_back({entry.config, Answer::Role::Real});
  if (answer->filtered && answer->slots.empty()) say_all_denied(state, offers);
  return answer;
}

// A fresh copy for each time the application fills descriptors: their fates are told apart.
AnswerPointer copy_of(const Answer& prepared) {
  auto copy = std::make_shared<Answer>();
  copy->graph = prepared.graph;
  copy->state = prepared.state;
  copy->slots = prepared.slots;
  copy->pins = prepared.pins;
  copy->generation = prepared.generation;
  copy->filtered = prepared.filtered;
  copy->strict = prepared.strict;
  copy->listed = prepared.listed;
  return copy;
}

void give(cudnnBackendDescriptor_t config, const AnswerPointer& answer, std::size_t slot) {
  ConfigNode* node = find_as<ConfigNode>(config);
  if (!node) return;
  *node = {answer->graph, nullptr, answer, slot};
  answer->slots[slot].given = answer->slots[slot].alive = true;
}

}  // namespace

cudnnStatus_t answer_query(const Library& library, cudnnBackendDescriptor_t heuristics, HeuristicsNode& node,
                           std::int64_t requested, std::int64_t* count, cudnnBackendDescriptor_t* values) {
  if (!node.answer) node.answer = prepare(library, heuristics, node);
  if (!node.answer->failure.empty()) {
    say_failure(*node.answer->state, node.answer->failure);
    return library.not_supported();
  }
  const bool ours_alone = node.answer->filtered || node.answer->strict;
  const auto pins = static_cast<std::int64_t>(node.answer->pins);
  const auto of_ours = ours_alone ? static_cast<std::int64_t>(node.answer->slots.size()) : pins;
  const std::int64_t most_real = node.answer->listed || pins == 0 || is_fallback(node.mode) ? INT64_MAX : kBehindPins;
  if (requested <= 0 || !values) {
    if (ours_alone && count) return *count = of_ours, CUDNN_STATUS_SUCCESS;
    const auto status = library.cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, requested, count, values);
    if (status == CUDNN_STATUS_SUCCESS && count) *count = std::min(*count, most_real) + pins;
    return status;
  }

  const AnswerPointer answer = copy_of(*node.answer);
  std::int64_t filled = 0;
  if (of_ours > 0 && node.pinned_graph) {
    const ReasonScope quiet(library);
    for (std::int64_t i = 0; i < of_ours && filled < requested; ++i) {
      const auto slot = static_cast<std::size_t>(i);
      if (fill_config(library, values[filled], node.pinned_graph->get(), answer->slots[slot].config, target_of(node)) == CUDNN_STATUS_SUCCESS)
        give(values[filled++], answer, slot);
    }
  }
  std::int64_t real = 0;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  if (!ours_alone && requested > filled)
    status = library.cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                              std::min(requested - filled, most_real), &real, values + filled);
  if (status != CUDNN_STATUS_SUCCESS && filled == 0) return status;
  for (std::int64_t i = 0; i < real; ++i) {
    const auto slot = static_cast<std::size_t>(pins + i);
    if (slot == answer->slots.size() && !answer->listed)
      answer->slots.push_back({read_config(library, values[filled + i]), Answer::Role::Real});
    if (slot < answer->slots.size()) give(values[filled + i], answer, slot);
  }
  if (count) *count = filled + real;
  return CUDNN_STATUS_SUCCESS;
}

Descriptor swap_config(const Library& library, cudnnBackendDescriptor_t config, const ConfigNode& node, PlanNode& plan) {
  if (!node.graph || node.answer) return {};
  ProblemState& state = *meet(node.graph->problem, Api::Graph, library);
  if (!asks(rule_of(state)) || state.undone_for == rule_of(state)) return {};
  const EngineConfig own = read_config(library, config);
  if (own.engine < 0) return {};
  if (const Notes notes = read_notes(library, config); satisfies(state, library.version, own, &notes)) return {};
  const ReasonScope quiet(library);
  const Descriptor graph = graph_of_config(library, config);
  if (!graph) return {};
  const Target target{node.graph->handle, node.device_prop ? node.device_prop->get() : nullptr};
  const Decision decision = decide(library, state, *node.graph, graph.get(), target, instant_list(library, state, graph.get(), target));
  {
    std::lock_guard hold(state.lock);
    state.unsupported_reason = decision.configs.empty() ? decision.reason : std::string();
  }
  for (const EngineConfig& wanted : decision.configs) {
    Descriptor ours(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (fill_config(library, ours.get(), graph.get(), wanted, target) || build_plan(library, ours.get(), target).status) continue;
    plan.before_swap = own;
    return ours;
  }
  return {};
}

}  // namespace convpin::graph
