#include "shim/process/report.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "shim/model/text.hpp"
#include "shim/process/denials.hpp"
#include "shim/process/device.hpp"
#include "shim/process/failures.hpp"

namespace convpin {
namespace {

constexpr int kFullTables = 3;   // then one line a problem: a person reads the first, a program the file

std::atomic<int> tables_printed{0};

// Host, process and start: the same for all records of a process, and another in a forked child.
std::string run_id() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return std::string(host) + "-" + std::to_string(getpid()) + "-" + std::to_string(runtime().started_unix_us);
}

Header make_header(const Device& device, const std::string& cudnn_version) {
  const Runtime& r = runtime();
  Header h;
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  h.host = host;
  h.pid = static_cast<int>(getpid());
  h.run_id = run_id();
  h.convpin_version = CONVPIN_VERSION;
  h.cudnn_version = cudnn_version;
  h.command = command_line();
  h.started_unix_us = r.started_unix_us;
  h.rank = r.ranks.global;
  h.local_rank = r.ranks.local;
  h.device = device;
  h.settings = r.settings.non_default;
  h.warmup = r.settings.profile_warmup;
  h.repeats = r.settings.profile_repeats;
  return h;
}

struct Where {
  Device device;
  std::string cudnn_version;
};
std::atomic<const Where*> where{nullptr};  // set at the first meeting, for the header

void remember(ProblemState& state, const Choice& choice) {  // under its lock
  constexpr std::size_t kMostTold = 64;  // a program that changes its rules for ever
  if (state.told.size() == kMostTold) state.told.erase(state.told.begin());
  state.told.push_back(choice);
}

// It failed by our doing, and never ran: what ran before or beside that has its counts.
bool failed(ProblemState& state) {
  std::lock_guard hold(state.lock);
  return state.calls == 0 && !state.told.empty() && state.told.back().ran.empty();
}

}  // namespace

// Of the problems that ran, and of those that failed by our doing; where there is neither, of those that were met.
Totals totals() {
  const auto counts = [](ProblemState& p) { return p.calls > 0 || failed(p); };
  bool any_counts = false;
  each_problem([&](ProblemState& p) { any_counts = any_counts || counts(p); });
  Totals t;
  each_problem([&](ProblemState& p) {
    const auto calls = p.calls.load();
    if (!p.announced || (any_counts && !counts(p))) return;
    const auto choice = p.choice.load();
    ++t.problems;
    t.calls += calls;
    if (choice == ChoiceKind::Set) ++t.pinned_problems, t.pinned_calls += calls;
    if (choice == ChoiceKind::Unsupported || choice == ChoiceKind::Refused) ++t.unsupported_problems;
    if (failed(p)) ++t.failed_problems;
  });
  t.failed_calls = failed_calls();
  return t;
}

void announce(ProblemState& state) {
  if (state.announced) return;
  std::lock_guard hold(state.lock);  // another thread's record of this problem waits until it is introduced
  if (state.announced) return;
  const Where* known = where.load();
  if (known) record(problem_record(state.id, state.problem, name_of(state.api), known->device, known->cudnn_version));
  state.announced = true;
}

void record(const std::string& line) {
  Runtime& r = runtime();
  if (!r.log.wanted()) return;
  std::lock_guard hold(r.log_lock);
  r.log.write(with_run_id(line, run_id()), [] {
    const Where* known = where.load();
    return header_record(make_header(known ? known->device : Device{}, known ? known->cudnn_version : ""));
  });
}

std::string cudnn_version_text(const Library& library) { return version_text(library.version); }

const Device& device_of_process(const Library& library) {
  if (const Where* known = where.load(std::memory_order_acquire)) return known->device;
  auto made = std::make_unique<Where>(Where{describe_device(library, runtime().log.wanted()), cudnn_version_text(library)});
  const Where* none = nullptr;
  if (where.compare_exchange_strong(none, made.get())) return made.release()->device;
  return none->device;
}

void log_counts() {
  if (!runtime().log.wanted()) return;
  each_problem([](ProblemState& p) {
    std::lock_guard hold(p.lock);
    for (auto& ran : p.ran) {
      if (ran.calls == ran.calls_logged) continue;
      record(count_record(p.id, ran.what, ran.calls));
      ran.calls_logged = ran.calls;
    }
  });
}

void report_choice(ProblemState& state, const Choice& made, const Candidate& ran, const Library&) {
  Choice choice = made;
  if (choice.kind != ChoiceKind::Set)
    choice.reason = joined(choice.reason, denied_before(state, choice.ran));
  const auto same_request = [&](const Choice& known) {  // that it failed is another thing to say
    return !known.ran.empty() && known.kind == choice.kind && known.rule == choice.rule && known.requested == choice.requested;
  };
  bool say_it = false;
  {
    std::lock_guard hold(state.lock);
    state.choice = choice.kind;
    if (choice.kind == ChoiceKind::Set) state.refused_reason.clear();  // of another time
    if (std::none_of(state.ran.begin(), state.ran.end(), [&](const auto& known) { return known.what == choice.ran; }))
      state.ran.push_back({choice.ran});
    const auto known = std::find_if(state.told.begin(), state.told.end(), [&](const Choice& told) {
      return same_request(told) && told.ran == choice.ran && told.reason == choice.reason;
    });
    const bool told_before = known != state.told.end();
    if (told_before) {
      const bool failed_since = state.told.back().ran.empty();  // then the log is to have the last word of it
      std::rotate(known, known + 1, state.told.end());
      if (!failed_since) return;
    } else {
      // The same engine with other knobs, or for another alignment: in the log only.
      say_it = std::none_of(state.told.begin(), state.told.end(), same_request);
      remember(state, choice);
    }
  }
  announce(state);
  record(choice_record(state.id, state.problem, choice, ran));
  if (!say_it || choice.kind == ChoiceKind::LeftAlone) return;
  // "is set" for each of a hundred problems says nothing new: the first three, then the table's lines and the end line.
  if (choice.kind == ChoiceKind::Set && state.id > kFullTables) return;
  say(choice_line(state.problem, choice, current_label()) + "\n");
}

void report_failed(ProblemState& state, const Choice& choice, const Candidate& asked) {
  {
    std::lock_guard hold(state.lock);
    remember(state, choice);
  }
  announce(state);
  record(failed_choice_record(state.id, state.problem, choice, asked));
}

void report_profile(ProblemState& state, const std::vector<Candidate>& candidates, const Library& library) {
  announce(state);
  for (const auto& candidate : candidates) record(candidate_record(state.id, state.problem, candidate));
  if (!runtime().settings.log_table) return;
  const bool full = tables_printed < kFullTables && tables_printed.fetch_add(1) < kFullTables;
  say(full ? candidate_table(state.problem, candidates, device_of_process(library), cudnn_version_text(library), current_label())
           : candidate_summary(state.problem, candidates, current_label()));
}

}  // namespace convpin
