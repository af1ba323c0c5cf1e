#include "shim/legacy/adapter.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "shim/hooks/reason.hpp"
#include "shim/hooks/trouble.hpp"
#include "shim/legacy/describe.hpp"
#include "shim/legacy/profile.hpp"
#include "shim/process/runtime.hpp"

namespace convpin::legacy {
namespace {

constexpr std::uint64_t kPinRefused = 1ull << 62;  // in ProblemState::pin_workspace
constexpr int kMostResults = 64;   // algorithms times math types

const Request* request_of(const ProblemState& state) {
  return state.rule ? state.rule->request() : nullptr;
}

// The pinned algorithm, -1 where the rule names none that this API has.
int pinned(const ProblemState& state) {
  const Request* request = request_of(state);
  return request && request->kind == Request::Kind::Algorithm ? request->algorithm : -1;
}

std::string algorithm_text(const Library& library, int number) {
  for (const Algorithm& a : algorithms(Operation::Forward, library.version))
    if (a.number == number) return std::to_string(number) + " " + a.name;
  return std::to_string(number);
}

int math_type(const Library& library, const Descriptors& d) {
  cudnnMathType_t type = CUDNN_DEFAULT_MATH;
  if (library.cudnnGetConvolutionMathType) library.cudnnGetConvolutionMathType(d.convolution, &type);
  return static_cast<int>(type);
}

// Bytes that `algorithm` needs here, or nothing where cuDNN refuses it; `reason` then says why.
std::optional<std::int64_t> needed(const Library& library, const Descriptors& d, int algorithm, std::string* reason) {
  const ReasonScope words(library, reason ? Listen::Yes : Listen::No);
  std::size_t bytes = 0;
  const auto status = library.cudnnGetConvolutionForwardWorkspaceSize(
      d.handle, d.x, d.w, d.convolution, d.y, static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), &bytes);
  if (status == CUDNN_STATUS_SUCCESS) return static_cast<std::int64_t>(bytes);
  if (reason) *reason = words.text(status);
  return std::nullopt;
}

bool within_limit(std::int64_t bytes) {
  const std::int64_t limit = runtime().settings.workspace_limit;
  return limit < 0 || bytes <= limit;
}

// The same, remembered for the problem and math type: a program with a fixed algorithm asks at every call.
// Packed as known (1 bit), refused (1), math type (6), bytes (56).
std::optional<std::int64_t> needed_by_pin(const Library& library, const Descriptors& d, ProblemState& state) {
  constexpr std::uint64_t known = 1ull << 63, refused = kPinRefused, bytes_mask = (1ull << 56) - 1;
  const std::uint64_t key = known | static_cast<std::uint64_t>(math_type(library, d) & 63) << 56;
  const std::uint64_t cached = state.pin_workspace.load(std::memory_order_relaxed);
  if ((cached & ~refused & ~bytes_mask) == key)
    return cached & refused ? std::nullopt : std::optional(static_cast<std::int64_t>(cached & bytes_mask));
  std::string reason;
  auto bytes = needed(library, d, pinned(state), nullptr);
  if (!bytes) needed(library, d, pinned(state), &reason);  // again, to hear why
  if (bytes && !within_limit(*bytes)) {
    reason = "it needs a workspace of " + std::to_string(*bytes) + " bytes, more than the limit of " +
             std::to_string(runtime().settings.workspace_limit);
    bytes.reset();
  }
  if (!bytes) {
    std::lock_guard hold(state.lock);
    state.unsupported_reason = reason;
  }
  state.pin_workspace = key | (bytes ? static_cast<std::uint64_t>(*bytes) & bytes_mask : refused);
  return bytes;
}

ProblemState* state_of(const Library& library, const Problem& problem) {
  const Problem key = canonical(problem);
  ProblemState* known = find_problem(key, Api::Legacy);
  return known ? known : meet(key, Api::Legacy, library);
}

Candidate candidate_of(const Library& library, const Descriptors& d, ProblemState& state, int algorithm) {
  Candidate c;
  c.algorithm = algorithm;
  c.math_type = math_type(library, d);
  c.status = CandidateStatus::Ok;
  c.workspace_bytes = needed(library, d, algorithm, nullptr);
  c.requested = algorithm == pinned(state);
  c.framework_choice = algorithm == state.own_choice;
  return c;
}

Choice choice_of(const Library& library, const ProblemState& state, int ran, std::size_t workspace_bytes) {
  Choice choice;
  choice.api = name_of(Api::Legacy);
  choice.ran = algorithm_text(library, ran);
  if (state.rule) choice.rule = state.rule->label();
  const Request* request = request_of(state);
  if (!request) return choice;
  choice.requested = request->to_text();
  if (ran == pinned(state)) {
    choice.kind = ChoiceKind::Set;
  } else if (pinned(state) < 0) {
    choice.kind = ChoiceKind::Unsupported;
    choice.reason = "it names an engine of the graph API, and this program calls cudnnConvolutionForward, which takes algorithms 0-7";
  } else if (!state.unsupported_reason.empty()) {
    choice.kind = ChoiceKind::Unsupported;
    choice.reason = state.unsupported_reason;
  } else {
    choice.kind = ChoiceKind::Refused;
    choice.reason = state.refused_reason.empty() ? "the program gave a workspace of " + std::to_string(workspace_bytes) +
                                                       " bytes, and it needs more"
                                                 : state.refused_reason;
  }
  return choice;
}

// What both execution calls share: `run` is the real call with an algorithm.
struct Execution {
  const Library& library;
  const Descriptors& descriptors;
  ProblemState& state;
  int asked;                        // by the program
  std::size_t workspace_bytes;
};

// The pinned algorithm where it can run in the workspace that is there: the net for programs with a fixed algorithm.
int algorithm_to_run(const Execution& e) {
  const int pin = pinned(e.state);
  if (pin < 0 || pin == e.asked) return e.asked;
  const auto bytes = needed_by_pin(e.library, e.descriptors, e.state);
  if (!bytes || static_cast<std::size_t>(*bytes) > e.workspace_bytes) return e.asked;
  return pin;
}

template <typename Run>
cudnnStatus_t execute(const Execution& e, Run&& run, int& ran) {
  ran = algorithm_to_run(e);
  if (ran != e.asked) {
    const ReasonScope words(e.library);
    const cudnnStatus_t status = run(ran);
    if (status == CUDNN_STATUS_SUCCESS) return status;
    std::lock_guard hold(e.state.lock);
    e.state.refused_reason = words.text(status);
    e.state.unsupported_reason = e.state.refused_reason;
    e.state.pin_workspace |= kPinRefused;  // not again at each call
    ran = e.asked;
  }
  const cudnnStatus_t status = run(ran);
  if (status != CUDNN_STATUS_SUCCESS && ran == pinned(e.state) && e.library.cudnnGetErrorString) {
    std::lock_guard hold(e.state.lock);  // no ReasonScope: cuDNN's text is the program's to read
    e.state.refused_reason = std::string("it was run, and failed with ") + e.library.cudnnGetErrorString(status);
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

void after_execute(const Execution& e, int ran, const LegacyCall& call) {
  if (e.state.own_choice < 0) e.state.own_choice = e.asked;
  if (e.state.profile == ProfileState::Wanted) profile(e.library, e.descriptors, e.state, ran, call);
  if (!first_time(e.state, ran)) {
    if (e.state.profile != ProfileState::Wanted) flush_counts(), log_counts();
    return;
  }
  e.state.seen |= 1u << ran;
  Choice choice;
  {
    std::lock_guard hold(e.state.lock);
    choice = choice_of(e.library, e.state, ran, e.workspace_bytes);
  }
  report_choice(e.state, choice, candidate_of(e.library, e.descriptors, e.state, ran), e.library);
}

cudnnStatus_t fail_for_settings(const Library& library) noexcept {
  char text[256];
  std::snprintf(text, sizeof text, "convpin: %s", runtime().settings.errors.front().c_str());
  set_last_error(text);
  return library.bad_param();
}

bool known_algorithm(int algorithm) { return algorithm >= 0 && algorithm < ProblemState::kAlgorithms; }

// From "which convolution is it" to "what is noted of it", the same for both execution calls. `run` must not throw.
template <typename Describe, typename Run, typename MakeCall>
cudnnStatus_t run_noted(const Library& library, const Descriptors& d, cudnnConvolutionFwdAlgo_t algorithm,
                        std::size_t workspace_bytes, Describe&& describe_it, Run&& run, MakeCall&& make_call) noexcept {
  ProblemState* state = nullptr;
  int ran = algorithm;
  bool launched = false;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  try {
    Problem problem;
    if (!known_algorithm(algorithm) || !describe_it(problem)) return run(algorithm);
    state = state_of(library, problem);
    if (runtime().fail) return fail_for_settings(library);
    const Execution e{library, d, *state, algorithm, workspace_bytes};
    status = execute(e, run, ran);
    launched = true;
    if (status == CUDNN_STATUS_SUCCESS && !routine(*state, ran)) after_execute(e, ran, make_call());
    return status;
  } catch (...) {
    in_trouble("noting a convolution");
    return launched ? status : run(algorithm);
  }
}

Candidate candidate_of(const cudnnConvolutionFwdAlgoPerf_t& result) {
  Candidate c;
  c.algorithm = result.algo;
  c.math_type = static_cast<int>(result.mathType);
  c.status = result.status == CUDNN_STATUS_SUCCESS ? CandidateStatus::Ok : CandidateStatus::Unsupported;
  if (result.status == CUDNN_STATUS_SUCCESS) {
    if (result.time > 0) c.time_ms = static_cast<double>(result.time), c.samples = 1;
    c.workspace_bytes = static_cast<std::int64_t>(result.memory);
    c.deterministic = result.determinism == CUDNN_DETERMINISTIC;
  }
  return c;
}

bool ok(const cudnnConvolutionFwdAlgoPerf_t& result) { return result.status == CUDNN_STATUS_SUCCESS; }

// The pinned algorithm's own entries first, in the real list's order; behind them the rest, which a program turns to
// where the pin's workspace does not fit.
void pins_first(const Library& library, const Descriptors& d, ProblemState& state,
                std::vector<cudnnConvolutionFwdAlgoPerf_t>& results) {
  const int pin = pinned(state);
  const auto first = std::stable_partition(results.begin(), results.end(), [&](const auto& result) {
    return result.algo == pin && ok(result) && within_limit(static_cast<std::int64_t>(result.memory));
  });
  std::string reason;
  if (first == results.begin()) {
    const auto bytes = needed_by_pin(library, d, state);
    if (!bytes) return;  // it has said why
    reason = "cuDNN's answer to the program's query leaves it out; it needs a workspace of " + std::to_string(*bytes) + " bytes";
  }
  std::lock_guard hold(state.lock);
  state.unsupported_reason = reason;
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

cudnnStatus_t forward(const Library& library, const Descriptors& d, const void* alpha, const void* x, const void* w,
                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace, std::size_t workspace_bytes, const void* beta,
                      void* y) noexcept {
  const auto call_real = [&](int algo, void* ws, std::size_t bytes, const void* beta_, void* out) {
    return library.cudnnConvolutionForward(d.handle, alpha, d.x, x, d.w, w, d.convolution,
                                           static_cast<cudnnConvolutionFwdAlgo_t>(algo), ws, bytes, beta_, d.y, out);
  };
  return run_noted(
      library, d, algorithm, workspace_bytes, [&](Problem& p) { return describe(library, d, p); },
      [&](int algo) { return call_real(algo, workspace, workspace_bytes, beta, y); },
      [&] { return LegacyCall{call_real, beta}; });
}

cudnnStatus_t bias_activation_forward(const Library& library, const Descriptors& d, const void* alpha1, const void* x,
                                      const void* w, cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                      std::size_t workspace_bytes, const void* alpha2, cudnnTensorDescriptor_t z_descriptor,
                                      const void* z, cudnnTensorDescriptor_t bias_descriptor, const void* bias,
                                      cudnnActivationDescriptor_t activation, void* y) noexcept {
  const auto call_real = [&](int algo, void* ws, std::size_t bytes, const void*, void* out) {
    return library.cudnnConvolutionBiasActivationForward(d.handle, alpha1, d.x, x, d.w, w, d.convolution,
                                                         static_cast<cudnnConvolutionFwdAlgo_t>(algo), ws, bytes, alpha2,
                                                         z_descriptor, z, bias_descriptor, bias, activation, d.y, out);
  };
  const auto adds_z = [&](const Problem& p) {
    if (!alpha2) return false;
    return p.compute == DataType::Double ? *static_cast<const double*>(alpha2) != 0 : *static_cast<const float*>(alpha2) != 0;
  };
  return run_noted(
      library, d, algorithm, workspace_bytes,
      [&](Problem& p) { return describe(library, d, p) && describe_fused(library, adds_z(p), activation, p); },
      [&](int algo) { return call_real(algo, workspace, workspace_bytes, nullptr, y); },
      [&] { return LegacyCall{call_real, nullptr}; });
}

cudnnStatus_t query(const Library& library, const Descriptors& d, const char* function, int requested, int* returned,
                    cudnnConvolutionFwdAlgoPerf_t* results, const RealQuery& real) noexcept {
  try {
    Problem problem;
    if (!results || !returned || requested < 1 || !describe(library, d, problem)) return real(requested, returned, results);
    ProblemState& state = *state_of(library, problem);
    if (runtime().fail) return fail_for_settings(library);
    std::vector<cudnnConvolutionFwdAlgoPerf_t> all(static_cast<std::size_t>(std::max(requested, kMostResults)));
    int count = 0;
    const cudnnStatus_t status = real(static_cast<int>(all.size()), &count, all.data());
    if (status != CUDNN_STATUS_SUCCESS) return status;
    all.resize(static_cast<std::size_t>(count));
    std::vector<Candidate> got;
    for (const auto& result : all) got.push_back(candidate_of(result));
    announce(state);
    record(query_record(state.id, function, got));
    if (const auto first = std::find_if(all.begin(), all.end(), ok); first != all.end()) state.own_choice = first->algo;
    if (pinned(state) >= 0) pins_first(library, d, state, all);
    *returned = std::min(requested, count);
    std::copy_n(all.begin(), *returned, results);
    return status;
  } catch (...) {
    in_trouble("answering a query");
    return real(requested, returned, results);
  }
}

cudnnStatus_t workspace_size(const Library& library, const Descriptors& d, cudnnConvolutionFwdAlgo_t algorithm,
                             std::size_t* bytes) noexcept {
  const cudnnStatus_t status =
      library.cudnnGetConvolutionForwardWorkspaceSize(d.handle, d.x, d.w, d.convolution, d.y, algorithm, bytes);
  if (status != CUDNN_STATUS_SUCCESS || !bytes) return status;
  try {
    Problem problem;
    if (!describe(library, d, problem)) return status;
    ProblemState& state = *state_of(library, problem);
    if (runtime().fail) return fail_for_settings(library);
    if (pinned(state) < 0 || pinned(state) == algorithm) return status;
    if (const auto pin = needed_by_pin(library, d, state)) *bytes = std::max(*bytes, static_cast<std::size_t>(*pin));
  } catch (...) {
    in_trouble("answering a workspace query");
  }
  return status;
}

}  // namespace convpin::legacy
