#include "shim/legacy/pin.hpp"

#include <algorithm>
#include <vector>

#include "shim/hooks/reason.hpp"
#include "shim/legacy/profile.hpp"
#include "shim/model/policy.hpp"
#include "shim/model/text.hpp"
#include "shim/process/denials.hpp"
#include "shim/process/rules.hpp"

namespace convpin::legacy {
namespace {

// ProblemState::pin_workspace: known (1 bit), refused (1), math type (6), algorithm (4), generation of the rules, its last
// bits (10), bytes (42). The generation, since another thread may write what it found out for rules that are gone.
constexpr std::uint64_t kKnown = 1ull << 63, kRefused = 1ull << 62, kBytes = (1ull << 42) - 1;
constexpr int kMathShift = 56, kAlgorithmShift = 52, kGenerationShift = 42;
constexpr std::uint64_t kKey = kKnown | 63ull << kMathShift | 1023ull << kGenerationShift;

bool names(const Rule& rule, int algorithm) {
  return std::any_of(rule.requests.begin(), rule.requests.end(), [&](const Request& request) {
    return request.kind == Request::Kind::Algorithm && request.algorithm == algorithm;
  });
}

// The algorithms to try, in order; `reason` where there are none. Nothing: it can't be told now.
std::optional<std::vector<int>> wanted(const Library& library, const Descriptors& d, ProblemState& state, const Rule& rule,
                                       std::string& reason) {
  std::vector<int> out;
  if (rule.policy != PolicyKind::None) {
    const auto decided = decided_by_policy(library, d, state, rule, reason);
    if (!decided) return std::nullopt;
    for (const Candidate& c : *decided) out.push_back(c.algorithm);
    return out;
  }
  for (const Request& request : rule.requests)
    if (request.kind == Request::Kind::Algorithm) out.push_back(request.algorithm);
  if (out.empty()) reason = "it names an engine of the graph API, and this program calls the legacy API, which takes algorithms";
  return out;
}

// What the rule requires and this algorithm lacks.
std::string lacks(const Rule& rule, Operation operation, int algorithm, int math_type) {
  Candidate candidate;
  candidate.operation = operation;
  candidate.algorithm = algorithm;
  candidate.math_type = math_type;
  return unmet(candidate, rule.require);
}

// Why this algorithm can't be the pin; empty, with its workspace, if it can.
std::string refusal(const Library& library, const Descriptors& d, const ProblemState& state, const Rule& rule, int algorithm, std::int64_t& bytes) {
  if (const Denial* denial = denied_algorithm(state, algorithm)) return "it is " + denial_text(*denial);
  if (std::string against = lacks(rule, d.operation, algorithm, math_type(library, d)); !against.empty()) return against;
  const auto need = needed(library, d, algorithm, nullptr);
  if (!need) {
    std::string reason;
    needed(library, d, algorithm, &reason);  // again, to hear why
    return reason.empty() ? "not supported" : reason;
  }
  bytes = *need;
  const std::int64_t limit = workspace_limit_of(&rule);
  if (limit < 0 || bytes <= limit) return {};
  return "it needs a workspace of " + std::to_string(bytes) + " bytes, more than the limit of " + std::to_string(limit);
}

}  // namespace

bool asks(ProblemState& state) {
  const Rule* rule = rule_of(state);
  return rule && rule->asks();
}

bool asked_for(ProblemState& state, int algorithm, int math_type) {
  const Rule* rule = rule_of(state);
  if (!rule) return false;
  if (rule->policy == PolicyKind::None) return (names(*rule, algorithm) && lacks(*rule, state.problem.operation, algorithm, math_type).empty()) || left_to_framework(state);
  std::lock_guard hold(state.lock);
  if (state.decided_for != rule) return false;
  if (state.decided.empty()) return state.decided_met;  // the framework's own choice is what the policy leaves
  return std::any_of(state.decided.begin(), state.decided.end(), [&](const Candidate& c) { return c.algorithm == algorithm; });
}

cudnnStatus_t workspace_of(const Library& library, const Descriptors& d, int algorithm, std::size_t* bytes) {
  const auto ask = [&](auto* real, auto... arguments) { return real ? real(arguments...) : library.not_supported(); };
  switch (d.operation) {
    case Operation::Forward:
      return ask(library.cudnnGetConvolutionForwardWorkspaceSize, d.handle, d.x, d.w, d.convolution, d.y,
                                                             static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), bytes);
    case Operation::BackwardData:
      return ask(library.cudnnGetConvolutionBackwardDataWorkspaceSize, d.handle, d.w, d.y, d.convolution, d.x,
                                                                  static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm), bytes);
    case Operation::BackwardFilter:
      return ask(library.cudnnGetConvolutionBackwardFilterWorkspaceSize, d.handle, d.x, d.y, d.convolution, d.w,
                                                                    static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm), bytes);
  }
  return library.not_supported();
}

int math_type(const Library& library, const Descriptors& d) {
  cudnnMathType_t type = CUDNN_DEFAULT_MATH;
  if (library.cudnnGetConvolutionMathType) library.cudnnGetConvolutionMathType(d.convolution, &type);
  return static_cast<int>(type);
}

std::optional<std::int64_t> needed(const Library& library, const Descriptors& d, int algorithm, std::string* reason) {
  const ReasonScope words(library, reason ? Listen::Yes : Listen::No);
  std::size_t bytes = 0;
  const auto status = workspace_of(library, d, algorithm, &bytes);
  if (status == CUDNN_STATUS_SUCCESS) return static_cast<std::int64_t>(bytes);
  if (reason) *reason = words.text(status);
  return std::nullopt;
}

std::optional<Pin> pin_for(const Library& library, const Descriptors& d, ProblemState& state) {
  const std::uint64_t generation = rules_generation();  // before the rule: it is at least that new
  const Rule* rule = rule_of(state);
  if (!rule || !asks(state)) return std::nullopt;
  const std::uint64_t key = kKnown | static_cast<std::uint64_t>(math_type(library, d) & 63) << kMathShift | (generation & 1023) << kGenerationShift;
  const std::uint64_t cached = state.pin_workspace.load(std::memory_order_relaxed);
  if ((cached & kKey) == key) {
    if (cached & kRefused) return std::nullopt;
    return Pin{static_cast<int>(cached >> kAlgorithmShift & 15), static_cast<std::int64_t>(cached & kBytes)};
  }
  std::string reasons;
  const auto algorithms_to_try = wanted(library, d, state, *rule, reasons);
  const bool several = algorithms_to_try && algorithms_to_try->size() > 1;
  for (const int algorithm : algorithms_to_try.value_or(std::vector<int>())) {
    std::int64_t bytes = 0;
    const std::string reason = refusal(library, d, state, *rule, algorithm, bytes);
    if (reason.empty()) {
      state.pin_workspace = key | static_cast<std::uint64_t>(algorithm) << kAlgorithmShift | (static_cast<std::uint64_t>(bytes) & kBytes);
      return Pin{algorithm, bytes};
    }
    const std::string of = several ? std::to_string(algorithm) + " (" + algorithm_name(d.operation, algorithm) + "): " : "";
    reasons = joined(reasons, of + reason);
  }
  const bool leave = rule->leaves_at_last();
  state.left_for = leave ? rule : nullptr;
  {
    std::lock_guard hold(state.lock);
    state.unsupported_reason = leave ? "" : reasons;
  }
  if (algorithms_to_try) state.pin_workspace = key | kRefused;
  return std::nullopt;
}

void refuse_pin(ProblemState& state, const Pin& pin) {
  std::uint64_t cached = state.pin_workspace;
  if (static_cast<int>(cached >> kAlgorithmShift & 15) == pin.algorithm) state.pin_workspace.compare_exchange_strong(cached, cached | kRefused);
}

}  // namespace convpin::legacy
