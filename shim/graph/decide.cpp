#include "shim/graph/decide.hpp"

#include <algorithm>
#include <optional>

#include "shim/graph/profile.hpp"
#include "shim/model/policy.hpp"
#include "shim/model/text.hpp"
#include "shim/process/decided.hpp"
#include "shim/process/denials.hpp"
#include "shim/process/rules.hpp"
#include "shim/profile/measure.hpp"

namespace convpin::graph {
namespace {

// What the rule requires and this configuration lacks.
std::string lacks(const Rule& rule, Operation operation, const EngineConfig& config, const Notes& notes) {
  Candidate candidate;
  candidate.operation = operation;
  candidate.engine = config;
  candidate.numerical_notes = notes.numerical;
  return unmet(candidate, rule.require);
}

// What is denied, or against the rule's requirements, goes. Returns by which denials, and why the last of the others went.
std::string keep_allowed(const Library& library, const ProblemState& state, const Rule& rule, cudnnBackendDescriptor_t graph,
                         const Target& target, std::vector<EngineConfig>& configs) {
  std::vector<Offer> offers;
  std::string reason;
  std::erase_if(configs, [&](const EngineConfig& config) {
    if (offers.emplace_back(to_tag(config), denied(state, config)).denial) return true;
    if (rule.require.empty()) return false;
    const Descriptor descriptor(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (fill_config(library, descriptor.get(), graph, config, target)) return false;  // it fails by itself
    const std::string against = lacks(rule, state.problem.operation, config, read_notes(library, descriptor.get()));
    if (!against.empty()) reason = to_tag(config) + ": " + against;
    return !against.empty();
  });
  return joined(denials_text(offers), reason);
}

Decision by_name(const Library& library, ProblemState& state, const Rule& rule, const ConvolutionGraph& graph,
                 cudnnBackendDescriptor_t descriptor, const Target& target, const std::vector<Listed>& heuristics) {
  Decision out;
  for (const Request& request : rule.requests) {
    if (request.kind == Request::Kind::FrameworkChoice) break;
    auto wanted = wanted_configs(request, graph.problem, library.version, heuristics);
    const std::string reason =
        wanted.empty() ? means_nothing(graph.problem) : keep_allowed(library, state, rule, descriptor, target, wanted);
    // Of a pin that must run, a program that finds nothing behind it is told the reason.
    const Compiled compiled = rule.on_unsupported == OnUnsupported::Error ? Compiled::Tried : Compiled::Untried;
    Pins pins = possible_pins(library, descriptor, target, wanted, workspace_limit_of(&rule), compiled);
    for (EngineConfig& config : pins.configs)
      if (std::find(out.configs.begin(), out.configs.end(), config) == out.configs.end()) out.configs.push_back(std::move(config));
    if (pins.configs.empty()) out.reason = joined(out.reason, joined(reason, pins.reason));
  }
  const bool leave = out.configs.empty() && rule.leaves_at_last();
  if (!out.configs.empty() || leave) out.reason.clear();
  state.left_for = leave ? &rule : nullptr;
  return out;
}

Decision from(const Decided& decided) {
  Decision out{{}, decided.reason};
  for (const Candidate& c : decided.candidates) out.configs.push_back(c.engine);
  return out;
}

Decision by_policy(const Library& library, ProblemState& state, const Rule& rule, const ConvolutionGraph& graph,
                   cudnnBackendDescriptor_t descriptor, const Target& target, const std::vector<Listed>& heuristics) {
  if (std::string refused = policy_refused(rule); !refused.empty()) return {{}, std::move(refused)};
  if (const auto known = decided_before(state, rule)) return from(*known);
  std::string why = may_profile(library, target, graph, heuristics);
  if (!why.empty()) return {{}, why};
  MeasuringTurn turn(MeasuringTurn::Wait::Yes);
  if (const auto known = decided_before(state, rule)) return from(*known);  // another thread's work, meanwhile
  std::vector<Candidate> profiled;
  if (why = turn.refused(); why.empty()) profiled = profile_on_own_data(library, state, rule, graph, descriptor, target, heuristics, why);
  if (profiled.empty()) return {{}, why};  // not remembered: the next time may be better
  return from(decide_from(state, rule, profiled));
}

}  // namespace

bool asks(const Rule* rule) { return rule && rule->asks(); }

bool names_configurations(const Rule& rule) {
  using Kind = Request::Kind;
  return rule.policy == PolicyKind::None && std::all_of(rule.requests.begin(), rule.requests.end(), [](const Request& request) {
           return request.kind == Kind::ExactEngine || request.kind == Kind::FrameworkChoice;
         });
}

Decision decide(const Library& library, ProblemState& state, const ConvolutionGraph& graph, cudnnBackendDescriptor_t descriptor,
                const Target& target, const std::vector<Listed>& heuristics) {
  const Rule* rule = rule_of(state);
  if (!asks(rule)) return {};
  return rule->policy == PolicyKind::None ? by_name(library, state, *rule, graph, descriptor, target, heuristics)
                                          : by_policy(library, state, *rule, graph, descriptor, target, heuristics);
}

bool satisfies(ProblemState& state, std::size_t cudnn_version, const EngineConfig& ran, const Notes* notes) {
  const Rule* rule = rule_of(state);
  if (!asks(rule)) return true;
  if (denied(state, ran)) return false;
  if (left_to_framework(state)) return true;
  if (rule->policy != PolicyKind::None) {
    std::lock_guard hold(state.lock);
    if (state.decided_for != rule) return false;
    if (state.decided.empty()) return state.decided_met;  // the framework's own choice is what the policy leaves
    return std::any_of(state.decided.begin(), state.decided.end(), [&](const Candidate& c) { return c.engine == ran; });
  }
  if (notes && !rule->require.empty() && !lacks(*rule, state.problem.operation, ran, *notes).empty()) return false;
  return std::any_of(rule->requests.begin(), rule->requests.end(), [&](const Request& request) {
    return request.kind != Request::Kind::FrameworkChoice && satisfies(request, state.problem, cudnn_version, ran);
  });
}

}  // namespace convpin::graph
