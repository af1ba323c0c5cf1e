#include "shim/legacy/adapter.hpp"

#include <cstdlib>
#include <string>

#include "shim/hooks/reason.hpp"
#include "shim/hooks/trouble.hpp"
#include "shim/legacy/describe.hpp"
#include "shim/legacy/pin.hpp"
#include "shim/legacy/profile.hpp"
#include "shim/legacy/state.hpp"
#include "shim/process/report.hpp"
#include "shim/process/rules.hpp"
#include "shim/profile/buffer.hpp"
#include "shim/profile/measure.hpp"

namespace convpin::legacy {
namespace {

Candidate candidate_of(const Execution& e, ProblemState& state, int algorithm) {
  Candidate c;
  c.operation = state.problem.operation;
  c.algorithm = algorithm;
  c.math_type = math_type(e.library, e.descriptors);
  c.status = CandidateStatus::Ok;
  c.workspace_bytes = needed(e.library, e.descriptors, algorithm, nullptr);
  c.requested = asked_for(state, algorithm, c.math_type);
  c.framework_choice = algorithm == state.own_choice;
  return c;
}

std::string too_small(std::size_t bytes) {
  return "the program gave a workspace of " + std::to_string(bytes) + " bytes, and it needs more";
}

Choice choice_of(const Library& library, const Descriptors& d, ProblemState& state, int ran, std::size_t workspace_bytes) {
  Choice choice;
  choice.api = name_of(Api::Legacy);
  choice.ran = algorithm_text(library, state.problem.operation, ran);
  const Rule* rule = rule_of(state);
  if (!rule) return choice;
  choice.rule = rule->label();
  if (!asks(state)) return choice;
  choice.requested = request_text(*rule);
  if (asked_for(state, ran, math_type(library, d))) {
    choice.kind = left_to_framework(state) ? ChoiceKind::LeftAlone : ChoiceKind::Set;
    return choice;
  }
  std::lock_guard hold(state.lock);
  if (rule->leaves_at_last() && state.unsupported_reason.empty() && state.refused_reason.empty()) return choice;
  choice.kind = state.unsupported_reason.empty() ? ChoiceKind::Refused : ChoiceKind::Unsupported;
  choice.reason = !state.unsupported_reason.empty() ? state.unsupported_reason
                  : !state.refused_reason.empty()   ? state.refused_reason
                                                    : too_small(workspace_bytes);
  return choice;
}

cudnnStatus_t run(const Execution& e, ProblemState& state, int algorithm, void* workspace, std::size_t bytes) {
  const NvtxRange range(state.ranges_of[algorithm], state.problem, [&] { return algorithm_text(e.library, state.problem.operation, algorithm); });
  return e.run(algorithm, workspace, bytes, e.beta, e.out);
}

// An algorithm that was chosen while the program ran has no workspace of the program's: on one of ours. Nothing, with the
// reason: that can't be now.
std::optional<cudnnStatus_t> run_live(const Execution& e, ProblemState& state, const Pin& pin, std::string& why) {
  const Driver* cuda = driver(e.library);
  cudaStream_t stream = nullptr;
  if (!cuda || !e.library.cudnnGetStream || e.library.cudnnGetStream(e.descriptors.handle, &stream) || !may_measure(*cuda, stream))
    return why = "the stream is being captured: the program's own algorithm runs", std::nullopt;
  const auto bytes = static_cast<std::size_t>(pin.workspace_bytes);
  if (bytes <= e.workspace_bytes) return run(e, state, pin.algorithm, e.workspace, e.workspace_bytes);
  const CudaScope scope(*cuda);
  const Buffer workspace(*cuda, stream, bytes);
  if (workspace.failed())
    return why = "it needs a workspace of " + std::to_string(bytes) + " bytes, more than the program gives, and there is no memory for it", std::nullopt;
  return run(e, state, pin.algorithm, workspace.pointer(), bytes);
}

// The pinned algorithm where it can run: the net for programs with a fixed algorithm. Nothing: the program's own is to run.
std::optional<cudnnStatus_t> run_pin(const Execution& e, ProblemState& state, const Pin& pin, std::string& why) {
  if (rules_are_live()) {
    const auto status = run_live(e, state, pin, why);
    if (status) return status;
    std::lock_guard hold(state.lock);
    if (state.refused_reason != why) state.seen = 0;  // what runs is told anew, with the reason
    state.refused_reason = why;
    return std::nullopt;
  }
  if (static_cast<std::size_t>(pin.workspace_bytes) > e.workspace_bytes) return why = too_small(e.workspace_bytes), std::nullopt;
  return run(e, state, pin.algorithm, e.workspace, e.workspace_bytes);
}

// A program keeps the algorithm that a query was answered with, though the rule that pinned it is gone: then the framework's
// own choice is right.
std::optional<Pin> choice_without_us(const Execution& e, ProblemState& state) {
  const int own = state.own_choice;
  if (!rules_are_live() || own < 0 || own == e.algorithm || state.offered != e.algorithm || asked_for(state, e.algorithm, math_type(e.library, e.descriptors)))
    return std::nullopt;
  const auto bytes = needed(e.library, e.descriptors, own, nullptr);
  return bytes ? std::optional(Pin{own, *bytes}) : std::nullopt;
}

cudnnStatus_t run_chosen(const Execution& e, ProblemState& state, int& ran) {
  ran = e.algorithm;
  const auto asked = pin_for(e.library, e.descriptors, state);
  const auto pin = asked ? asked : choice_without_us(e, state);
  if (pin && pin->algorithm != e.algorithm) {
    std::string why;
    {
      const ReasonScope words(e.library);
      const auto status = run_pin(e, state, *pin, why);
      if (status && *status == CUDNN_STATUS_SUCCESS) return ran = pin->algorithm, *status;
      if (status) {
        why = words.text(*status);
        std::lock_guard hold(state.lock);
        state.refused_reason = state.unsupported_reason = why;
        refuse_pin(state, *pin);
      }
    }
    why = asked ? failure_by_rule(state, why) : "";
    if (why.empty()) why = denial_of(state, e.algorithm);
    if (!why.empty()) return say_failure(state, why), e.library.not_supported();
  }
  const cudnnStatus_t status = run(e, state, ran, e.workspace, e.workspace_bytes);
  if (status != CUDNN_STATUS_SUCCESS && asked && ran == asked->algorithm && e.library.cudnnGetErrorString) {
    std::lock_guard hold(state.lock);  // no ReasonScope: cuDNN's text is the program's to read
    state.refused_reason = std::string("it was run, and failed with ") + e.library.cudnnGetErrorString(status);
  }
  return status;
}

bool first_time(ProblemState& state, int ran) { return !(state.seen.load(std::memory_order_relaxed) & 1u << ran); }

bool routine(ProblemState& state, int ran) {
  constexpr std::uint64_t kCountEvery = 1 << 14;
  const auto calls = state.calls_of[ran].fetch_add(1, std::memory_order_relaxed) + 1;
  return !first_time(state, ran) && state.profile.load(std::memory_order_relaxed) != ProfileState::Wanted &&
         calls % kCountEvery != 0;
}

void after_execute(const Execution& e, ProblemState& state, int ran) {
  if (state.own_choice < 0) state.own_choice = e.algorithm;
  if (state.profile == ProfileState::Wanted) profile(e, state, ran);
  if (!first_time(state, ran)) {
    if (state.profile != ProfileState::Wanted) flush_counts(), log_counts();
    return;
  }
  state.seen |= 1u << ran;
  report_choice(state, choice_of(e.library, e.descriptors, state, ran, e.workspace_bytes), candidate_of(e, state, ran), e.library);
}

bool known_algorithm(int algorithm) { return algorithm >= 0 && algorithm < ProblemState::kAlgorithms; }

// From "which convolution is it" to "what is noted of it", the same for both execution calls.
template <typename Describe>
cudnnStatus_t run_noted(const Execution& e, Describe&& describe_it) noexcept {
  bool launched = false;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  const auto as_asked = [&] { return e.run(e.algorithm, e.workspace, e.workspace_bytes, e.beta, e.out); };
  try {
    Problem problem;
    if (!known_algorithm(e.algorithm) || !describe_it(problem)) return as_asked();
    ProblemState& state = *state_of(e.library, problem);
    if (runtime().fail) return fail_for_settings(e.library, &state);
    if (fails(e.library, e.descriptors, state, e.algorithm)) return e.library.not_supported();
    int ran = e.algorithm;
    status = run_chosen(e, state, ran);
    launched = true;
    if (observing(kLabels) && status == CUDNN_STATUS_SUCCESS) attach_label(state);
    if (status == CUDNN_STATUS_SUCCESS && !routine(state, ran)) after_execute(e, state, ran);
    return status;
  } catch (...) {
    in_trouble("noting a convolution");
    return launched ? status : as_asked();
  }
}

}  // namespace

void flush_counts() {
  each_problem([](ProblemState& state) {
    if (state.api != Api::Legacy) return;
    std::lock_guard hold(state.lock);
    for (auto& ran : state.ran) {
      const int algorithm = std::atoi(ran.what.c_str());  // "1 IMPLICIT_PRECOMP_GEMM"
      const auto calls = state.calls_of[algorithm].load(std::memory_order_relaxed);
      state.calls += calls - ran.calls;
      ran.calls = calls;
    }
  });
}

cudnnStatus_t convolution(const Execution& e) noexcept {
  return run_noted(e, [&](Problem& p) { return describe(e.library, e.descriptors, p); });
}

cudnnStatus_t fused_convolution(const Execution& e, const Fused& fused) noexcept {
  return run_noted(e, [&](Problem& p) {
    return describe(e.library, e.descriptors, p) && describe_fused(e.library, adds_z(p, fused.alpha2), fused.activation, p);
  });
}

}  // namespace convpin::legacy
