#include "shim/legacy/profile.hpp"

#include <algorithm>

#include "shim/hooks/reason.hpp"
#include "shim/legacy/pin.hpp"
#include "shim/model/policy.hpp"
#include "shim/process/rules.hpp"
#include "shim/profile/buffer.hpp"
#include "shim/profile/kernels.hpp"
#include "shim/profile/measure.hpp"

namespace convpin::legacy {
namespace {

bool reads_output(const Problem& problem, const void* beta) {
  if (!beta) return false;
  return problem.compute == DataType::Double ? *static_cast<const double*>(beta) != 0 : *static_cast<const float*>(beta) != 0;
}

Attempt attempt_of(const Execution& e, ProblemState& state, int algorithm, int ran) {
  Attempt attempt;
  Candidate& c = attempt.candidate;
  c.operation = state.problem.operation;
  c.algorithm = algorithm;
  c.framework_choice = algorithm == state.own_choice;
  c.running = algorithm == ran;
  c.requested = asked_for(state, algorithm);
  c.math_type = math_type(e.library, e.descriptors);
  const ReasonScope words(e.library);
  std::size_t bytes = 0;
  const auto status = workspace_of(e.library, e.descriptors, algorithm, &bytes);
  if (status != CUDNN_STATUS_SUCCESS) {
    c.status = CandidateStatus::Unsupported;
    c.reason = words.text(status);
    return attempt;
  }
  c.status = CandidateStatus::Ok;
  c.workspace_bytes = static_cast<std::int64_t>(bytes);
  attempt.run = [&e, algorithm, bytes](const std::vector<void*>& outputs, void* workspace) {
    return e.run(algorithm, workspace, bytes, e.beta, outputs.front());
  };
  return attempt;
}

std::vector<Candidate> measure_algorithms(const Driver& driver, CUstream stream, const Execution& e, ProblemState& state, int ran) {
  announce(state);
  ReasonScope words(e.library, Listen::Yes);
  Subject subject;
  subject.stream = stream;
  subject.outputs = {{bytes_of(written(state.problem)), written(state.problem).type, reads_output(state.problem, e.beta)}};
  std::vector<int> order;  // the framework's own choice first: the others are compared with it
  if (state.own_choice >= 0) order.push_back(state.own_choice);
  if (ran >= 0 && ran != state.own_choice) order.push_back(ran);
  for (const Algorithm& a : algorithms(state.problem.operation, e.library.version))
    if (std::find(order.begin(), order.end(), a.number) == order.end()) order.push_back(a.number);
  for (int algorithm : order)
    subject.attempts.push_back([&, algorithm] { return attempt_of(e, state, algorithm, ran); });
  subject.about_to_try = [&](const Candidate& c) {
    words.forget();
    record(try_record(state.id, c));
  };
  subject.why = [&](cudnnStatus_t status) { return words.text(status); };
  subject.count_kernels = kernel_counter(e.library, driver, e.descriptors.handle);
  return measure(driver, subject);
}

// The operation's call on tensors of ours.
cudnnStatus_t call_directly(const Library& library, const Descriptors& d, const Problem& p, int algorithm, void* x, void* w, void* y,
                            void* workspace, std::size_t bytes, void* out) {
  const float one_f = 1, zero_f = 0;
  const double one_d = 1, zero_d = 0;
  const bool is_double = p.compute == DataType::Double;
  const void* one = is_double ? static_cast<const void*>(&one_d) : &one_f;
  const void* zero = is_double ? static_cast<const void*>(&zero_d) : &zero_f;
  switch (d.operation) {
    case Operation::Forward:
      return library.cudnnConvolutionForward(d.handle, one, d.x, x, d.w, w, d.convolution, static_cast<cudnnConvolutionFwdAlgo_t>(algorithm),
                                             workspace, bytes, zero, d.y, out);
    case Operation::BackwardData:
      return library.cudnnConvolutionBackwardData(d.handle, one, d.w, w, d.y, y, d.convolution,
                                                  static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm), workspace, bytes, zero, d.x, out);
    case Operation::BackwardFilter:
      return library.cudnnConvolutionBackwardFilter(d.handle, one, d.x, x, d.y, y, d.convolution,
                                                    static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm), workspace, bytes, zero, d.w, out);
  }
  return library.not_supported();
}

std::vector<Candidate> profile_on_own_data(const Library& library, const Descriptors& d, ProblemState& state, std::string& why) {
  const Problem& p = state.problem;
  const Driver* cuda = driver(library);
  cudaStream_t stream = nullptr;
  if (p.fused_count > 0) return why = "a call with operations fused to the convolution isn't timed for a policy", std::vector<Candidate>();
  if (!cuda || !library.cudnnGetStream || library.cudnnGetStream(d.handle, &stream) || !may_measure(*cuda, stream))
    return why = "it can't be timed now (no GPU, or a capture is under way)", std::vector<Candidate>();
  const MeasuringTurn turn;
  if (turn.refusal() != MeasuringTurn::Refusal::None)
    return why = turn.refusal() == MeasuringTurn::Refusal::Busy ? "another problem was being timed" : "the profile's budget is used up",
           std::vector<Candidate>();
  const CudaScope scope(*cuda);
  std::vector<Buffer> data;
  void* at[3] = {};
  const Tensor* tensors[] = {&p.x, &p.w, &p.y};
  for (std::size_t i = 0; i < 3; ++i) {
    if (tensors[i] == &written(p)) continue;
    data.emplace_back(*cuda, stream, bytes_of(*tensors[i]));
    if (data.back().failed() || !fill_random(*cuda, stream, data.back().address(), bytes_of(*tensors[i]), tensors[i]->type))
      return why = "there is no memory for its data", std::vector<Candidate>();
    at[i] = data.back().pointer();
  }
  const Run run = [&](int algorithm, void* workspace, std::size_t bytes, const void*, void* out) {
    return call_directly(library, d, p, algorithm, at[0], at[1], at[2], workspace, bytes, out);
  };
  auto candidates = measure_algorithms(*cuda, stream, {library, d, -1, nullptr, 0, nullptr, nullptr, run}, state, -1);
  report_profile(state, candidates, library);
  auto waiting = ProfileState::Wanted;
  if (state.profile.compare_exchange_strong(waiting, ProfileState::Done)) profile_done();
  return candidates;
}

}  // namespace

void profile(const Execution& e, ProblemState& state, int ran) {
  const Library& library = e.library;
  const Driver* cuda = driver(library);
  cudaStream_t stream = nullptr;
  if (!cuda || !library.cudnnGetStream || library.cudnnGetStream(e.descriptors.handle, &stream) != CUDNN_STATUS_SUCCESS ||
      !may_measure(*cuda, stream))
    return;
  const MeasuringTurn turn;
  if (turn.refusal() == MeasuringTurn::Refusal::Busy) return;
  auto wanted = ProfileState::Wanted;
  if (!state.profile.compare_exchange_strong(wanted, ProfileState::Done)) return;
  profile_done();
  if (turn.refusal() != MeasuringTurn::Refusal::None) return;

  report_profile(state, measure_algorithms(*cuda, stream, e, state, ran), library);
}

std::vector<Candidate> decided_by_policy(const Library& library, const Descriptors& d, ProblemState& state, const Rule& rule, std::string& reason) {
  reason = policy_refused(rule);
  if (!reason.empty()) return {};
  {
    std::lock_guard hold(state.lock);
    if (state.decided_for == &rule) {
      if (!state.decided_met) reason = state.decided_reason;
      return state.decided;
    }
  }
  const auto profiled = profile_on_own_data(library, d, state, reason);
  if (profiled.empty()) return {};
  Rule limited = rule;
  if (const std::int64_t limit = workspace_limit_of(&rule); limit >= 0) limited.workspace_limit = limit;
  const Ranking ranking = rank(profiled, limited);
  std::lock_guard hold(state.lock);
  state.decided.clear();
  for (const std::size_t i : ranking.best) state.decided.push_back(profiled[i]);
  state.decided_reason = ranking.reason;
  state.decided_met = ranking.met;
  state.decided_for = &rule;
  if (!ranking.met) reason = ranking.reason;
  return state.decided;
}

}  // namespace convpin::legacy
