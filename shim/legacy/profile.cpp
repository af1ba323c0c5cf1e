#include "shim/legacy/profile.hpp"

#include <algorithm>

#include "shim/hooks/reason.hpp"
#include "shim/legacy/pin.hpp"
#include "shim/profile/driver.hpp"
#include "shim/profile/measure.hpp"

namespace convpin::legacy {
namespace {

bool reads_output(const Problem& problem, const void* beta) {
  if (!beta) return false;
  return problem.compute == DataType::Double ? *static_cast<const double*>(beta) != 0 : *static_cast<const float*>(beta) != 0;
}

Attempt attempt_of(const Execution& e, const ProblemState& state, int algorithm, int ran) {
  Attempt attempt;
  Candidate& c = attempt.candidate;
  c.operation = state.problem.operation;
  c.algorithm = algorithm;
  c.framework_choice = algorithm == state.own_choice;
  c.running = algorithm == ran;
  c.requested = algorithm == pinned(state);
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
  --runtime().wanted_profiles;
  if (turn.refusal() != MeasuringTurn::Refusal::None) return;

  announce(state);
  ReasonScope words(library, Listen::Yes);
  Subject subject;
  subject.stream = stream;
  subject.outputs = {{bytes_of(written(state.problem)), written(state.problem).type, reads_output(state.problem, e.beta)}};
  std::vector<int> order;  // the framework's own choice first: the others are compared with it
  if (state.own_choice >= 0) order.push_back(state.own_choice);
  if (ran != state.own_choice) order.push_back(ran);
  for (const Algorithm& a : algorithms(state.problem.operation, library.version))
    if (std::find(order.begin(), order.end(), a.number) == order.end()) order.push_back(a.number);
  for (int algorithm : order)
    subject.attempts.push_back([&, algorithm] { return attempt_of(e, state, algorithm, ran); });
  subject.about_to_try = [&](const Candidate& c) {
    words.forget();
    record(try_record(state.id, c));
  };
  subject.why = [&](cudnnStatus_t status) { return words.text(status); };
  report_profile(state, measure(*cuda, subject), library);
}

}  // namespace convpin::legacy
