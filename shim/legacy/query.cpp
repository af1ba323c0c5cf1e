// How the program's queries (Get, Find, FindEx, the workspace's size) are answered.
#include <algorithm>
#include <string>
#include <vector>

#include "shim/hooks/trouble.hpp"
#include "shim/legacy/adapter.hpp"
#include "shim/legacy/describe.hpp"
#include "shim/legacy/pin.hpp"
#include "shim/legacy/state.hpp"
#include "shim/process/denials.hpp"
#include "shim/process/report.hpp"
#include "shim/process/rules.hpp"

namespace convpin::legacy {
namespace {

constexpr int kMostResults = 64;   // algorithms times math types

Candidate candidate_of(Operation operation, const Perf& result) {
  Candidate c;
  c.operation = operation;
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

bool ok(const Perf& result) { return result.status == CUDNN_STATUS_SUCCESS; }

// What is denied goes; of all of it is noted what cuDNN offers. Returns that.
std::vector<Offer> take_denied(const Library& library, const Descriptors& d, ProblemState& state, std::vector<Perf>& results) {
  std::vector<Offer> offers;
  if (runtime().settings.denials.empty()) return offers;
  for (const Perf& result : results)
    if (ok(result)) offers.push_back({algorithm_text(library, d.operation, result.algo), denied_algorithm(state, result.algo)});
  note_list(state, offers);
  std::erase_if(results, [&](const Perf& result) { return denied_algorithm(state, result.algo) != nullptr; });
  return offers;
}

// The pinned algorithm's own entries first, in the real list's order; behind them the rest, which a program turns to
// where the pin's workspace does not fit. What is denied is not in it.
void pins_first(const Library& library, const Descriptors& d, ProblemState& state, std::vector<Perf>& results) {
  const bool any = std::any_of(results.begin(), results.end(), ok);
  const std::vector<Offer> offers = take_denied(library, d, state, results);
  const auto pin = pin_for(library, d, state);
  if (any && std::none_of(results.begin(), results.end(), ok)) say_all_denied(state, offers);
  state.offered = -1;
  if (!pin) return;  // it has said why
  const std::int64_t limit = workspace_limit_of(rule_of(state));
  const auto first = std::stable_partition(results.begin(), results.end(), [&](const auto& result) {
    return result.algo == pin->algorithm && ok(result) && (limit < 0 || static_cast<std::int64_t>(result.memory) <= limit);
  });
  // cuDNN's answer may ask for less than its own workspace query does, and than the call takes (9.19: algorithm 1 with a
  // depthwise fp16 NHWC filter gives 0 and 1294 bytes, and fails with 0).
  for (auto result = results.begin(); result != first; ++result)
    result->memory = std::max(result->memory, static_cast<std::size_t>(pin->workspace_bytes));
  std::string reason;
  if (first != results.begin()) state.offered = pin->algorithm;
  if (first == results.begin())
    reason = "cuDNN's answer to the program's query leaves it out; it needs a workspace of " + std::to_string(pin->workspace_bytes) + " bytes";
  std::lock_guard hold(state.lock);
  state.unsupported_reason = reason;
}

}  // namespace

std::optional<cudnnStatus_t> query(const Library& library, const Descriptors& d, int requested, int* returned, const Query& q) noexcept {
  try {
    Problem problem;
    if (!describe(library, d, problem)) return std::nullopt;
    ProblemState& state = *state_of(library, problem);
    if (runtime().fail) return fail_for_settings(library, &state);
    std::vector<Perf> all(static_cast<std::size_t>(std::max(requested, kMostResults)));
    int count = 0;
    const cudnnStatus_t status = q.real(static_cast<int>(all.size()), &count, all.data());
    if (status != CUDNN_STATUS_SUCCESS) return status;
    all.resize(static_cast<std::size_t>(count));
    std::vector<Candidate> got;
    for (const auto& result : all) got.push_back(candidate_of(d.operation, result));
    announce(state);
    record(query_record(state.id, q.function, got));
    const auto allowed = [&](const Perf& result) { return ok(result) && !denied_algorithm(state, result.algo); };
    if (const auto first = std::find_if(all.begin(), all.end(), allowed); first != all.end()) state.own_choice = first->algo;
    if (fails(library, d, state, -1)) return library.not_supported();
    pins_first(library, d, state, all);
    *returned = std::min(requested, static_cast<int>(all.size()));
    for (int i = 0; i < *returned; ++i) q.give(i, all[static_cast<std::size_t>(i)]);
    return status;
  } catch (...) {
    in_trouble("answering a query");
    return std::nullopt;
  }
}

cudnnStatus_t workspace_size(const Library& library, const Descriptors& d, int algorithm, std::size_t* bytes) noexcept {
  const cudnnStatus_t status = workspace_of(library, d, algorithm, bytes);
  if (status != CUDNN_STATUS_SUCCESS || !bytes) return status;
  try {
    Problem problem;
    if (!describe(library, d, problem)) return status;
    ProblemState& state = *state_of(library, problem);
    if (runtime().fail) return fail_for_settings(library, &state);
    if (const auto pin = pin_for(library, d, state)) *bytes = std::max(*bytes, static_cast<std::size_t>(pin->workspace_bytes));
  } catch (...) {
    in_trouble("answering a workspace query");
  }
  return status;
}

}  // namespace convpin::legacy
