#include "shim/legacy/profile.hpp"

#include <algorithm>

#include "shim/hooks/reason.hpp"
#include "shim/legacy/pin.hpp"
#include "shim/process/decided.hpp"
#include "shim/process/denials.hpp"
#include "shim/process/report.hpp"
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

Attempt attempt_of(const Execution& e, ProblemState& state, int algorithm, int own, int ran) {
  Attempt attempt;
  Candidate& c = attempt.candidate;
  c.operation = state.problem.operation;
  c.algorithm = algorithm;
  c.framework_choice = algorithm == own;
  c.running = algorithm == ran;
  c.math_type = math_type(e.library, e.descriptors);
  c.requested = asked_for(state, algorithm, c.math_type);
  if (const Denial* denial = denied_algorithm(state, algorithm)) {
    c.status = CandidateStatus::Unsupported;
    c.reason = denial_text(*denial);
    return attempt;
  }
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

// `own`: the framework's own choice, -1 unknown; `ran`: what runs, -1 where nothing does yet.
std::vector<Candidate> measure_algorithms(const Driver& driver, CUstream stream, const Execution& e, ProblemState& state, int own, int ran) {
  announce(state);
  ReasonScope words(e.library, Listen::Yes);
  Subject subject;
  subject.stream = stream;
  subject.outputs = {{bytes_of(written(state.problem)), written(state.problem).type, reads_output(state.problem, e.beta)}};
  std::vector<int> order;  // the framework's own choice first: the others are compared with it
  if (own >= 0) order.push_back(own);
  if (ran >= 0 && ran != own) order.push_back(ran);
  for (const Algorithm& a : algorithms(state.problem.operation, e.library.version))
    if (std::find(order.begin(), order.end(), a.number) == order.end()) order.push_back(a.number);
  for (int algorithm : order)
    subject.attempts.push_back([&, algorithm] { return attempt_of(e, state, algorithm, own, ran); });
  subject.about_to_try = [&](const Candidate& c) {
    words.forget();
    record(try_record(state.id, state.problem, c));
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

// The first of cuDNN's recommendations that is not denied, -1 for none: what a framework most likely runs by itself.
int recommended(const Library& library, const Descriptors& d, const ProblemState& state) {
  constexpr int kMost = 32;
  const auto first = [&](auto* real, auto a, auto b, auto c, auto result) {
    decltype(result) results[kMost];
    int count = 0;
    if (!real || real(d.handle, a, b, d.convolution, c, kMost, &count, results)) return -1;
    for (int i = 0; i < count; ++i)
      if (results[i].status == CUDNN_STATUS_SUCCESS && !denied_algorithm(state, results[i].algo)) return static_cast<int>(results[i].algo);
    return -1;
  };
  const ReasonScope quiet(library);
  switch (d.operation) {
    case Operation::Forward: return first(library.cudnnGetConvolutionForwardAlgorithm_v7, d.x, d.w, d.y, cudnnConvolutionFwdAlgoPerf_t{});
    case Operation::BackwardData:
      return first(library.cudnnGetConvolutionBackwardDataAlgorithm_v7, d.w, d.y, d.x, cudnnConvolutionBwdDataAlgoPerf_t{});
    case Operation::BackwardFilter:
      return first(library.cudnnGetConvolutionBackwardFilterAlgorithm_v7, d.x, d.y, d.w, cudnnConvolutionBwdFilterAlgoPerf_t{});
  }
  return -1;
}

std::vector<Candidate> profile_on_own_data(const Library& library, const Driver* cuda, CUstream stream, const Descriptors& d,
                                           ProblemState& state, std::string& why) {
  const Problem& p = state.problem;
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
  // A program with a fixed algorithm has not shown it yet when it asks for its workspace.
  const int own = state.own_choice >= 0 ? state.own_choice.load() : recommended(library, d, state);
  auto candidates = measure_algorithms(*cuda, stream, {library, d, -1, nullptr, 0, nullptr, nullptr, run}, state, own, -1);
  report_profile(state, candidates, library);
  take_profile(state);
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
  MeasuringTurn turn;
  if (!turn.taken()) return;
  if (!take_profile(state)) return;
  if (turn.refused().empty()) report_profile(state, measure_algorithms(*cuda, stream, e, state, state.own_choice, ran), library);
}

std::optional<std::vector<Candidate>> decided_by_policy(const Library& library, const Descriptors& d, ProblemState& state, const Rule& rule, std::string& reason) {
  using None = std::vector<Candidate>;
  reason = policy_refused(rule);
  if (!reason.empty()) return None();
  const auto kept = [&reason](Decided decided) {
    reason = std::move(decided.reason);
    return std::move(decided.candidates);
  };
  if (auto known = decided_before(state, rule)) return kept(*std::move(known));
  if (state.problem.fused_count > 0) return reason = "a call with operations fused to the convolution isn't timed for a policy", None();
  const Driver* cuda = driver(library);
  cudaStream_t stream = nullptr;
  if (!cuda || !library.cudnnGetStream || library.cudnnGetStream(d.handle, &stream) || !may_measure(*cuda, stream))
    return reason = "it can't be timed now (no GPU, or a capture is under way)", std::nullopt;
  MeasuringTurn turn(MeasuringTurn::Wait::Yes);
  if (auto known = decided_before(state, rule)) return kept(*std::move(known));  // another thread's work, meanwhile
  if (reason = turn.refused(); !reason.empty()) return None();
  const auto profiled = profile_on_own_data(library, cuda, stream, d, state, reason);
  if (profiled.empty()) return None();
  return kept(decide_from(state, rule, profiled));
}

}  // namespace convpin::legacy
