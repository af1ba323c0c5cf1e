#include "shim/process/failures.hpp"

#include <algorithm>
#include <new>
#include <tuple>

#include "shim/model/backend_names.hpp"
#include "shim/model/text.hpp"
#include "shim/process/report.hpp"

namespace convpin {
namespace {

// Frameworks try plans by the dozen, so that refusals are routine: they must not take the others' room.
constexpr std::size_t kMostKinds = 256;  // of refusals, and of all others

struct Kind {
  FailedCall call;
  Failure record;
  bool refusal = false;
  std::uint64_t times = 1;
};

std::mutex lock;                                 // guards what follows
std::vector<Kind>* kinds = nullptr;              // never destroyed: programs convolve in destructors
std::uint64_t left_out = 0;
std::uint64_t failed = 0;                        // calls, refusals not counted

bool is_refusal(const Library& library, cudnnStatus_t status) {
  constexpr int kNotSupported8 = 9, kArchMismatch8 = 6, kPrerequisiteMissing8 = 11;
  const int number = static_cast<int>(status);
  if (library.version >= 90000) return number / 1000 == 3;  // the class CUDNN_STATUS_NOT_SUPPORTED
  return number == kNotSupported8 || number == kArchMismatch8 || number == kPrerequisiteMissing8;
}

// Which engine it was makes another kind of a failure, but not of a refusal: dozens are refused for each problem.
bool same_kind(const FailedCall& a, const FailedCall& b, bool refusal) {
  const auto key = [](const FailedCall& c) { return std::tie(c.call, c.status, c.descriptor, c.attribute, c.api, c.problem); };
  return key(a) == key(b) && (refusal || (a.candidate.engine == b.candidate.engine && a.candidate.algorithm == b.candidate.algorithm));
}

Failure record_of(const Library& library, const FailedCall& c, const std::string& text) {
  Failure f;
  f.call = c.call;
  if (c.descriptor >= 0) f.descriptor = descriptor_name(c.descriptor);
  if (c.attribute >= 0) f.attribute = attribute_name(c.attribute);
  f.status = library.cudnnGetErrorString ? library.cudnnGetErrorString(c.status) : std::to_string(static_cast<int>(c.status));
  f.reason = text;
  if (!c.problem) return f;
  const Problem problem = canonical(*c.problem);
  f.problem = to_text(problem);
  f.replay = replay_line(problem, c.candidate);
  if (const ProblemState* known = find_problem(c.api == Api::Legacy ? problem : *c.problem, c.api); known && known->announced)
    f.problem_id = known->id;
  return f;
}

}  // namespace

void note_failed_call(const Library& library, const FailedCall& call, const std::string& text) {
  const bool refusal = is_refusal(library, call.status);
  device_of_process(library);                    // the log's header, which may come now, names it
  int id = 0;
  Failure made;
  {
    std::lock_guard hold(lock);
    if (!kinds) kinds = new std::vector<Kind>;
    failed += !refusal;
    const auto known = std::ranges::find_if(*kinds, [&](const Kind& k) { return same_kind(k.call, call, refusal); });
    if (known != kinds->end()) {
      ++known->times;
      return;
    }
    if (static_cast<std::size_t>(std::ranges::count(*kinds, refusal, &Kind::refusal)) >= kMostKinds) {
      ++left_out;
      return;
    }
    made = record_of(library, call, text);
    kinds->push_back({call, made, refusal});
    id = static_cast<int>(kinds->size());
  }
  record(failure_record(id, made));
}

void log_failure_counts() {
  if (!runtime().log.wanted()) return;
  std::lock_guard hold(lock);
  for (std::size_t i = 0; kinds && i < kinds->size(); ++i) {
    Kind& kind = (*kinds)[i];
    if (kind.times == kind.record.times) continue;
    kind.record.times = kind.times;
    record(failure_record(static_cast<int>(i) + 1, kind.record));
  }
}

std::uint64_t failed_calls() {
  std::lock_guard hold(lock);
  return failed;
}

std::string failures_summary() {
  std::lock_guard hold(lock);
  const Kind* first = nullptr;
  for (std::size_t i = 0; kinds && i < kinds->size() && !first; ++i)
    if (!(*kinds)[i].refusal) first = &(*kinds)[i];
  std::string lines;
  if (left_out > 0)
    lines = "convpin: " + std::to_string(left_out) + " failed cuDNN calls are of kinds that are not in the log: it holds the first " +
            std::to_string(kMostKinds) + "\n";
  if (!first) return lines;
  const Failure& f = first->record;
  std::string what = f.call;
  if (!f.descriptor.empty()) what += " of " + f.descriptor + (f.attribute.empty() ? "" : ", " + f.attribute);
  what += ": " + f.status + (f.reason.empty() ? "" : ", \"" + one_line(f.reason, 200) + "\"");
  return lines + "convpin: " + std::to_string(failed) + (failed == 1 ? " cuDNN call of the program's failed (" : " cuDNN calls of the program's failed (the first: ") +
         what + "); convpin report --text says more of the log's failures\n";
}

void renew_failures_in_child() noexcept {
  new (&lock) std::mutex;
  kinds = nullptr;                               // the parent's to report; another thread may have been at it, so it is left behind
  left_out = failed = 0;
}

}  // namespace convpin
