#include "shim/graph/fate.hpp"

#include <algorithm>

#include "shim/graph/decide.hpp"
#include "shim/graph/ways.hpp"
#include "shim/hooks/reason.hpp"
#include "shim/process/denials.hpp"
#include "shim/process/rules.hpp"

namespace convpin::graph {
namespace {

constexpr const char* kOwnConfiguration = "the program builds its own engine configuration";
constexpr const char* kBuiltAndDropped = " was built and then dropped by the program (it may need more workspace than there is memory)";

// Why a plan that is built must not be used; empty if it may.
std::string forbidden(const Library& library, PlanNode& plan) {
  ProblemState& state = *plan.state;
  const EngineConfig& config = plan.own().config;
  if (const Denial* denial = denied(state, config))
    return to_tag(config) + " is " + denial_text(*denial);
  if (plan.answer) return {};
  if (std::string missed = failure_by_miss(state); !missed.empty()) return missed;
  if (!plan.json.empty() || satisfies(state, library.version, plan.own())) return {};
  std::string reason;
  {
    std::lock_guard hold(state.lock);
    reason = state.unsupported_reason;
  }
  return failure_by_rule(state, reason.empty() ? kOwnConfiguration : reason);
}

// A pin's plan that cuDNN has just refused, with its words, which stay the program's to read.
void plan_refused(const Library& library, PlanNode& plan, cudnnStatus_t status) {
  plan_failed(plan);
  if (!plan.answer || plan.slot >= plan.answer->pins) return;
  const std::string said = take_last_error(library);
  put_last_error_back(said);
  std::lock_guard hold(plan.answer->lock);
  plan.answer->slots[plan.slot].refused = explained(library, status, said);
}

}  // namespace

cudnnStatus_t finalize_plan(const Library& library, cudnnBackendDescriptor_t descriptor, PlanNode& plan, bool& finalized) {
  Answer* answer = plan.answer.get();
  if (answer) {
    std::lock_guard hold(answer->lock);
    if (answer->generation == rules_generation() && answer->slots[plan.slot].role == Answer::Role::Real && answer->pin_ran()) {
      set_last_error("convpin: not built, because the requested configuration runs");
      return library.not_supported();
    }
  }
  const cudnnStatus_t status = library.cudnnBackendFinalize(descriptor);
  if (status != CUDNN_STATUS_SUCCESS) {
    plan_refused(library, plan, status);
    return status;
  }
  finalized = true;
  if (!plan.graph && !plan.json.empty()) plan.graph = describe_json(library, plan.json);
  if (!plan.graph) return status;
  plan.itself = own_way(library, descriptor);
  plan.standing = plan.itself.get();
  plan.way = plan.itself.get();
  plan.state = answer ? answer->state : meet(plan.graph->problem, Api::Graph, library);
  const std::int64_t limit = workspace_limit_of(rule_of(*plan.state));
  if (answer) {
    std::unique_lock hold(answer->lock);
    Answer::Slot& slot = answer->slots[plan.slot];
    if (slot.role == Answer::Role::Pin && limit >= 0 && plan.own().workspace_bytes > limit) {
      slot.failed = true;
      slot.refused = "it needs a workspace of " + std::to_string(plan.own().workspace_bytes) + " bytes, more than the limit of " +
                     std::to_string(limit);
      set_last_error("convpin: not built: " + slot.refused);
      return library.not_supported();
    }
    slot.built = true;
  }
  if (const std::string why = forbidden(library, plan); !why.empty()) {
    say_failure(*plan.state, why);
    return library.not_supported();
  }
  plan.pinned = asks(rule_of(*plan.state)) && satisfies(*plan.state, library.version, plan.own());
  if (plan.pinned) ++plan.state->pinned_plans;
  plan.own_choice = framework_choice(plan);
  plan.dropped = dropped_by_framework(plan);
  // A plan from a text never saw a configuration that could have been another: it is looked at when it runs.
  const bool restored = !plan.json.empty();
  if (restored && asks(rule_of(*plan.state))) watch_packs();
  plan.generation = answer ? answer->generation : restored ? 0 : rules_generation();
  return status;
}

bool stands_back(const PlanNode& plan) {
  if (!plan.answer || plan.answer->generation != rules_generation()) return false;
  std::lock_guard hold(plan.answer->lock);
  return plan.answer->slots[plan.slot].role == Answer::Role::Real && plan.answer->pin_ran();
}

namespace {

bool dropped(const Answer::Slot& slot) { return slot.given && !slot.alive && !slot.built; }

std::string failure_of(const Answer::Slot& pin) { return pin.refused.empty() ? " was built, but failed to run" : ": " + pin.refused; }

// Why none of the pins runs.
std::string fate_of(const Answer& answer) {  // under its lock
  const auto begin = answer.slots.begin(), end = begin + static_cast<std::ptrdiff_t>(answer.pins);
  const std::string first = begin == end ? "it" : to_tag(begin->config);
  if (const auto at = std::find_if(begin, end, [](const auto& s) { return s.failed; }); at != end) return to_tag(at->config) + failure_of(*at);
  if (std::any_of(begin, end, [](const auto& s) { return s.built; })) return first + kBuiltAndDropped;
  if (std::any_of(begin, end, [](const auto& s) { return s.given; }))
    return first + " was dropped by the program itself (its filter on numerical notes, such as TF32 or determinism, or on memory)";
  return "the program did not take " + first;
}

// Where a rule's pins must run and the program is left with none of them, it ends without a convolution: said whose doing it is.
void say_if_none_is_left(const Answer& answer) {  // under its lock
  const auto out = [](const Answer::Slot& s) { return s.failed || s.dropped || dropped(s); };
  if (!answer.strict || answer.state->pinned_plans.load() > 0 || !std::all_of(answer.slots.begin(), answer.slots.end(), out)) return;
  if (const std::string why = failure_by_rule(*answer.state, fate_of(answer)); !why.empty()) {
    say_failure(*answer.state, why);
    goes_on();  // what is under way is a Destroy
  }
}

}  // namespace

void config_destroyed(const ConfigNode& node) {
  if (!node.answer) return;
  std::lock_guard hold(node.answer->lock);
  node.answer->slots[node.slot].alive = false;
  say_if_none_is_left(*node.answer);
}

void plan_destroyed(PlanNode& plan) {
  flush(plan);
  // A plan that needs no memory isn't dropped for that: the program may only have wanted to know something.
  if (!plan.pinned || plan.used || plan.own().workspace_bytes == 0) return;
  ProblemState& state = *plan.state;
  const bool none_left = --state.pinned_plans == 0;
  if (plan.answer) {
    std::lock_guard hold(plan.answer->lock);
    plan.answer->slots[plan.slot].dropped = true;
    say_if_none_is_left(*plan.answer);
  } else if (none_left && plan.json.empty()) {
    // The program's own configurations are its way to what fits into its memory: they are left to it from here on.
    const Rule* rule = rule_of(state);
    if (!rule || rule->on_unsupported == OnUnsupported::Error) return;
    state.undone_for = rule;
    std::lock_guard hold(state.lock);
    state.refused_reason = to_tag(plan.own().config) + kBuiltAndDropped;
  }
}

void plan_failed(PlanNode& plan) {
  if (!plan.answer) return;
  std::lock_guard hold(plan.answer->lock);
  plan.answer->slots[plan.slot].failed = true;
}

void plan_ran(PlanNode& plan) {
  plan.used = true;
  if (!plan.answer || plan.way != &plan.own()) return;
  std::lock_guard hold(plan.answer->lock);
  plan.answer->slots[plan.slot].ran = true;
}

std::optional<EngineConfig> framework_choice(const PlanNode& plan) {
  if (plan.before_swap) return plan.before_swap;
  // A program that rebuilds a configuration from its engine and knobs may have had them from us.
  if (!plan.answer && asks(rule_of(*plan.state))) return std::nullopt;
  if (!plan.answer) return plan.own().config;
  std::lock_guard hold(plan.answer->lock);
  const auto& slots = plan.answer->slots;
  if (slots[plan.slot].role == Answer::Role::Real) return plan.own().config;
  for (const auto& slot : slots)
    if (slot.role == Answer::Role::Real && slot.given && slot.alive) return slot.config;
  return std::nullopt;
}

std::vector<EngineConfig> choices_without_us(const PlanNode& plan) {
  if (plan.own_choice) return {*plan.own_choice};
  if (!plan.answer) return {plan.own().config};
  std::lock_guard hold(plan.answer->lock);
  const auto& slots = plan.answer->slots;
  std::vector<EngineConfig> out;
  for (const auto& slot : slots)
    if (slot.role == Answer::Role::Real && std::find(plan.dropped.begin(), plan.dropped.end(), slot.config) == plan.dropped.end())
      out.push_back(slot.config);
  return out;
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

Candidate candidate_of(const Library& library, const PlanNode& plan, const Way& way) {
  Candidate c;
  c.operation = plan.graph->problem.operation;
  c.algorithm = algorithm_in(plan.graph->problem, library.version, way.config.engine);
  c.engine = way.config;
  c.status = CandidateStatus::Ok;
  c.workspace_bytes = way.workspace_bytes;
  c.numerical_notes = way.notes.numerical;
  c.behavior_notes = way.notes.behavior;
  c.deterministic = !way.notes.has_numerical(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  c.framework_choice = plan.own_choice && *plan.own_choice == way.config;
  return c;
}

Choice choice_of(const Library& library, const PlanNode& plan, const Way& way) {
  Choice choice;
  choice.api = name_of(Api::Graph);
  choice.ran = way.ran;
  ProblemState& state = *plan.state;
  const Rule* rule = rule_of(state);
  if (!rule) return choice;
  choice.rule = rule->label();
  if (!asks(rule)) return choice;
  choice.requested = request_text(*rule);
  if (satisfies(state, library.version, way)) {
    choice.kind = left_to_framework(state) ? ChoiceKind::LeftAlone : ChoiceKind::Set;
    return choice;
  }
  choice.kind = ChoiceKind::Unsupported;
  {
    std::lock_guard hold(state.lock);
    choice.reason = state.unsupported_reason;
    if (choice.reason.empty() && !state.refused_reason.empty()) {
      choice.reason = state.refused_reason;
      choice.kind = ChoiceKind::Refused;
    }
  }
  if (!choice.reason.empty()) return choice;

  const bool of_these_rules = plan.answer && plan.answer->generation == rules_generation();
  if (rule->leaves_at_last() && (!of_these_rules || plan.answer->pins == 0)) return choice.kind = ChoiceKind::LeftAlone, choice;
  choice.kind = ChoiceKind::Refused;
  if (plan.answer && !of_these_rules) {
    choice.reason = "the program keeps a plan of before";
    return choice;
  }
  if (!plan.answer) {
    choice.reason = plan.json.empty() ? kOwnConfiguration : "the program restores its plan from a text";
    return choice;
  }
  std::lock_guard hold(plan.answer->lock);
  choice.reason = fate_of(*plan.answer);
  const auto pins = plan.answer->slots.begin();
  const bool refused = std::any_of(pins, pins + static_cast<std::ptrdiff_t>(plan.answer->pins), [](const auto& s) { return !s.refused.empty(); });
  if (refused) choice.kind = ChoiceKind::Unsupported;
  return choice;
}

}  // namespace convpin::graph
