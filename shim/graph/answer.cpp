#include "shim/graph/answer.hpp"

#include <algorithm>

#include "shim/graph/pins.hpp"
#include "shim/hooks/reason.hpp"

namespace convpin::graph {
namespace {

bool asks(const ProblemState* state) {
  return state->rule && state->rule->request();
}

Target target_of(const HeuristicsNode& node) { return {node.graph->handle, node.device_prop ? node.device_prop->get() : nullptr}; }

bool is_fallback(cudnnBackendHeurMode_t mode) { return mode == CUDNN_HEUR_MODE_FALLBACK; }

AnswerPointer prepare(const Library& library, cudnnBackendDescriptor_t heuristics, HeuristicsNode& node) {
  auto answer = std::make_shared<Answer>();
  answer->graph = node.graph;
  answer->state = meet(node.graph->problem, Api::Graph, library);
  const auto real = read_results(library, heuristics);
  const auto listed = read_list(library, real);

  if (asks(answer->state) && !real.empty()) {
    // The application's own graph descriptor may be gone by now; a configuration of the list holds the graph too.
    auto graph = std::make_shared<Descriptor>(graph_of_config(library, real.front().get()));
    if (*graph) {
      // The same pin whichever mode is asked: its configuration is the one of the INSTANT list.
      const auto instant =
          is_fallback(node.mode)
              ? read_list(library, query_heuristics(library, graph->get(), CUDNN_HEUR_MODE_INSTANT, target_of(node)))
              : listed;
      const Pins pins = possible_pins(library, node.graph->problem, *answer->state->rule->request(), graph->get(), target_of(node), instant);
      if (!pins.configs.empty()) node.pinned_graph = graph;
      for (const auto& config : pins.configs) answer->slots.push_back({config, Answer::Role::Pin});
      answer->pins = pins.configs.size();
      std::lock_guard hold(answer->state->lock);
      answer->state->unsupported_reason = pins.configs.empty() ? pins.reason : std::string();
    }
  }
  for (const auto& entry : listed) answer->slots.push_back({entry.config, Answer::Role::Real});
  return answer;
}

// A fresh copy for each time the application fills descriptors: their fates are told apart.
AnswerPointer copy_of(const Answer& prepared) {
  auto copy = std::make_shared<Answer>();
  copy->graph = prepared.graph;
  copy->state = prepared.state;
  copy->slots = prepared.slots;
  copy->pins = prepared.pins;
  return copy;
}

void give(cudnnBackendDescriptor_t config, const AnswerPointer& answer, std::size_t slot) {
  ConfigNode* node = find_as<ConfigNode>(config);
  if (!node) return;
  *node = {answer->graph, answer, slot};
  answer->slots[slot].given = answer->slots[slot].alive = true;
}

}  // namespace

cudnnStatus_t answer_query(const Library& library, cudnnBackendDescriptor_t heuristics, HeuristicsNode& node,
                           std::int64_t requested, std::int64_t* count, cudnnBackendDescriptor_t* values) {
  if (!node.answer) node.answer = prepare(library, heuristics, node);
  const auto pins = static_cast<std::int64_t>(node.answer->pins);
  if (requested <= 0 || !values) {
    const auto status = library.cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, requested, count, values);
    if (status == CUDNN_STATUS_SUCCESS && count) *count += pins;
    return status;
  }

  const AnswerPointer answer = copy_of(*node.answer);
  std::int64_t filled = 0;
  if (pins > 0) {
    const ReasonScope quiet(library);
    for (std::int64_t pin = 0; pin < pins && filled < requested; ++pin) {
      const auto slot = static_cast<std::size_t>(pin);
      if (fill_config(library, values[filled], node.pinned_graph->get(), answer->slots[slot].config, target_of(node)) == CUDNN_STATUS_SUCCESS)
        give(values[filled++], answer, slot);
    }
  }
  std::int64_t real = 0;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  if (requested > filled)
    status = library.cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                              requested - filled, &real, values + filled);
  if (status != CUDNN_STATUS_SUCCESS && filled == 0) return status;
  for (std::int64_t i = 0; i < real; ++i) {
    const auto slot = static_cast<std::size_t>(pins + i);
    if (slot < answer->slots.size()) give(values[filled + i], answer, slot);
  }
  if (count) *count = filled + real;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_plan(const Library& library, cudnnBackendDescriptor_t descriptor, PlanNode& plan, bool& finalized) {
  Answer* answer = plan.answer.get();
  if (answer) {
    std::lock_guard hold(answer->lock);
    if (answer->slots[plan.slot].role == Answer::Role::Real && answer->pin_ran()) {
      set_last_error("convpin: not built, because the requested configuration runs");
      return library.not_supported();
    }
  }
  const cudnnStatus_t status = library.cudnnBackendFinalize(descriptor);
  if (status != CUDNN_STATUS_SUCCESS) {
    plan_failed(plan);
    return status;
  }
  finalized = true;
  plan.workspace_bytes = workspace_of_plan(library, descriptor);
  const std::int64_t limit = runtime().settings.workspace_limit;
  if (answer) {
    std::unique_lock hold(answer->lock);
    Answer::Slot& slot = answer->slots[plan.slot];
    if (slot.role == Answer::Role::Pin && limit >= 0 && plan.workspace_bytes > limit) {
      slot.failed = true;
      set_last_error("convpin: the plan's workspace is over CONVPIN_WORKSPACE_LIMIT");
      return library.not_supported();
    }
    slot.built = true;
  }
  const Descriptor config = config_of_plan(library, descriptor);
  if (config) {
    plan.config = read_config(library, config.get());
    plan.notes = read_notes(library, config.get());
  }
  plan.ran = to_tag(plan.config);
  plan.state = answer ? answer->state : meet(plan.graph->problem, Api::Graph, library);
  plan.own_choice = framework_choice(plan);
  plan.dropped = dropped_by_framework(plan);
  plan.look = true;
  return status;
}

bool stands_back(const PlanNode& plan) {
  if (!plan.answer) return false;
  std::lock_guard hold(plan.answer->lock);
  return plan.answer->slots[plan.slot].role == Answer::Role::Real && plan.answer->pin_ran();
}

bool replace_failed_pin(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t descriptor, PlanNode& plan) {
  if (!plan.answer) return false;
  std::lock_guard hold(plan.answer->lock);
  auto& slots = plan.answer->slots;
  if (plan.replacement) return true;  // another thread was quicker
  if (slots[plan.slot].role != Answer::Role::Pin || plan.reported) return false;
  char said[256] = {};  // the program's to read: our scratch plans empty it
  if (library.cudnnGetLastErrorString) library.cudnnGetLastErrorString(said, sizeof said);
  slots[plan.slot].failed = true;
  const Descriptor config = config_of_plan(library, descriptor);
  const Descriptor graph = config ? graph_of_config(library, config.get()) : Descriptor();
  if (!graph) return set_last_error(said), false;
  for (const auto& slot : slots) {
    if (slot.role != Answer::Role::Real || !slot.given || std::find(plan.dropped.begin(), plan.dropped.end(), slot.config) != plan.dropped.end())
      continue;
    Plan own = build_plan(library, graph.get(), slot.config, {handle, nullptr});
    if (own.status != CUDNN_STATUS_SUCCESS || own.workspace_bytes > plan.workspace_bytes) continue;
    const Descriptor own_config = config_of_plan(library, own.descriptor.get());
    plan.config = slot.config;
    plan.notes = read_notes(library, own_config.get());
    plan.ran = to_tag(plan.config);
    plan.workspace_bytes = own.workspace_bytes;
    plan.replacement_owner = std::move(own.descriptor);
    plan.replacement = plan.replacement_owner.get();
    return true;
  }
  set_last_error(said);
  return false;
}

void config_destroyed(const ConfigNode& node) {
  if (!node.answer) return;
  std::lock_guard hold(node.answer->lock);
  node.answer->slots[node.slot].alive = false;
}

void plan_failed(PlanNode& plan) {
  if (!plan.answer) return;
  std::lock_guard hold(plan.answer->lock);
  plan.answer->slots[plan.slot].failed = true;
}

void plan_ran(PlanNode& plan) {
  if (!plan.answer) return;
  std::lock_guard hold(plan.answer->lock);
  if (!plan.replacement) plan.answer->slots[plan.slot].ran = true;
}

std::optional<EngineConfig> framework_choice(const PlanNode& plan) {
  if (!plan.answer) return plan.config;
  std::lock_guard hold(plan.answer->lock);
  const auto& slots = plan.answer->slots;
  if (slots[plan.slot].role == Answer::Role::Real) return plan.config;
  for (const auto& slot : slots)
    if (slot.role == Answer::Role::Real && slot.given && slot.alive) return slot.config;
  return std::nullopt;
}

std::vector<EngineConfig> dropped_by_framework(const PlanNode& plan) {
  std::vector<EngineConfig> out;
  if (!plan.answer) return out;
  std::lock_guard hold(plan.answer->lock);
  const auto& slots = plan.answer->slots;
  const bool any_alive = std::any_of(slots.begin(), slots.end(), [](const auto& s) { return s.alive; });
  if (!any_alive) return out;  // a framework that copied what it needs and let all go: nothing can be told
  for (const auto& slot : slots)
    if (slot.given && !slot.alive && !slot.built) out.push_back(slot.config);
  return out;
}

Candidate candidate_of(const Library& library, const PlanNode& plan) {
  Candidate c;
  c.operation = plan.graph->problem.operation;
  c.algorithm = algorithm_in(plan.graph->problem, library.version, plan.config.engine);
  c.engine = plan.config;
  c.status = CandidateStatus::Ok;
  c.workspace_bytes = plan.workspace_bytes;
  c.numerical_notes = plan.notes.numerical;
  c.behavior_notes = plan.notes.behavior;
  c.deterministic = !plan.notes.has_numerical(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  c.framework_choice = plan.own_choice && *plan.own_choice == plan.config;
  return c;
}

Choice choice_of(const Library& library, const PlanNode& plan) {
  Choice choice;
  choice.api = name_of(Api::Graph);
  choice.ran = plan.ran;
  const ProblemState& state = *plan.state;
  if (!state.rule) return choice;
  choice.rule = state.rule->label();
  if (!asks(&state)) return choice;
  const Request& request = *state.rule->request();
  choice.requested = request.to_text();
  if (satisfies(request, state.problem, library.version, plan.config)) {
    choice.kind = ChoiceKind::Set;
    return choice;
  }
  choice.kind = ChoiceKind::Unsupported;
  {
    std::lock_guard hold(plan.state->lock);
    choice.reason = state.unsupported_reason;
  }
  if (!choice.reason.empty()) return choice;

  choice.kind = ChoiceKind::Refused;
  if (!plan.answer) {
    choice.reason = "the program builds its own engine configuration";
    return choice;
  }
  std::lock_guard hold(plan.answer->lock);
  const Answer& answer = *plan.answer;
  const auto begin = answer.slots.begin(), end = begin + static_cast<std::ptrdiff_t>(answer.pins);
  const std::string first = begin == end ? "it" : to_tag(begin->config);
  if (const auto at = std::find_if(begin, end, [](const auto& s) { return s.failed; }); at != end)
    choice.reason = to_tag(at->config) + (at->built ? " was built, but failed to run" : " could not be built, or needs more workspace than the limit");
  else if (std::any_of(begin, end, [](const auto& s) { return s.built; }))
    choice.reason = first + " was built and then dropped by the program (it may need more workspace than there is memory)";
  else if (std::any_of(begin, end, [](const auto& s) { return s.given; }))
    choice.reason = first + " was dropped by the program itself (its filter on numerical notes, such as TF32 or determinism, "
                            "or on memory)";
  else
    choice.reason = "the program did not take " + first;
  return choice;
}

}  // namespace convpin::graph
