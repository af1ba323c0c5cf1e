#include "shim/process/runtime.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "shim/api/live.hpp"
#include "shim/process/device.hpp"
#include "shim/process/rules.hpp"

namespace convpin {
namespace {

constexpr std::size_t kBuckets = 1024;
constexpr int kFullTables = 3;   // then one line a problem: a person reads the first, a program the file

std::atomic<Runtime*> instance{nullptr};
std::mutex make_lock;

std::atomic<ProblemState*> buckets[kBuckets];
std::mutex registry_lock;        // guards appending, and what follows
ProblemId last_id = 0;
int tables_printed = 0;
std::atomic<bool> forked{false};

const char* environment(const char* name) { return secure_getenv(name); }

// Relative paths in the settings are meant from where the program was started, and programs change directory before
// their first convolution. So this one system call, and nothing else, is made when the library is loaded.
char start_directory[4096];
__attribute__((constructor)) void note_start_directory() {
  if (!getcwd(start_directory, sizeof start_directory)) start_directory[0] = '\0';
}

// After fork the child is alone with copies of our locks, in whatever state other threads had them.
void renew_in_child() {
  forked = true;
  new (&make_lock) std::mutex;
  new (&registry_lock) std::mutex;
  renew_live_in_child();
  renew_rules_in_child();
  renew_labels_in_child();
  for (const AtEnd& hook : at_end_hooks)
    if (hook.renew) hook.renew();
  Runtime* r = instance.load();
  if (!r) return;
  new (&r->log_lock) std::mutex;
  each_problem([](ProblemState& p) {
    new (&p.lock) std::mutex;
    p.calls = 0;                // what the parent met and ran is the parent's to report
    for (auto& calls : p.calls_of) calls = 0;
    p.ran.clear();
    p.told.clear();
    for (auto& label : p.labels) label = nullptr;
    p.seen = 0;
    p.failure_said = false;
    p.announced = false;
  });
}

// A mistyped name would be passed over in silence.
bool note_unknown_variables(Settings& settings) {
  bool any = false;
  static constexpr std::string_view known[] = {
#define CONVPIN_SETTING(member, type, fallback, env, toml, doc) env,
#include "config/settings.def"
#undef CONVPIN_SETTING
      "CONVPIN_LIBRARY", "CONVPIN_CALLERS",  // of our own scripts
  };
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view name(*entry, std::strcspn(*entry, "="));
    if (!name.starts_with("CONVPIN_") && !name.starts_with("CONV_FWD_") && !name.starts_with("CONV_BWD_")) continue;
    if (std::find(std::begin(known), std::end(known), name) != std::end(known)) continue;
    settings.notices.push_back("convpin: warning: " + std::string(name) + " is not a setting of convpin, and is not looked at");
    any = true;
  }
  return any;
}

Runtime* make_runtime() noexcept {
  auto* made = new (std::nothrow) Runtime;
  if (!made) return nullptr;
  try {
    pthread_atfork(nullptr, nullptr, renew_in_child);
    made->settings = load_settings(environment, start_directory);
    const bool mistyped = note_unknown_variables(made->settings);
    if (made->settings.profiling() && !made->settings.log_table && made->settings.log_path.empty())
      made->settings.notices.push_back("convpin: warning: the profile is on, but log.table is false and there is no log: nothing shows it");
    if (made->settings.nvtx && !switch_ranges_on())
      made->settings.notices.push_back("convpin: warning: CONVPIN_NVTX has no effect: this libconvpin was built without nvtx3/nvToolsExt.h");
    made->ranks = ranks_of(environment);
    made->log.set_pattern(made->settings.log_path);
    made->idle = made->settings.disable || (made->settings.idle() && !mistyped);
    made->fail = made->settings.strict && !made->settings.errors.empty();
    made->started_unix_us =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    set_quiet(made->ranks.local > 0);
  } catch (...) {
    made->idle = true;
  }
  return made;
}

std::size_t bucket_of(const Problem& problem, Api api) {
  return (hash(problem) + static_cast<std::size_t>(api)) % kBuckets;
}

void say_settings(const Settings& settings) {
  std::string lines;
  for (const auto& notice : settings.notices) lines += notice + "\n";
  for (const auto& error : settings.errors) lines += "convpin: error: " + error + "\n";
  if (!settings.errors.empty())
    lines += settings.strict ? "convpin: error: CONVPIN_STRICT is set, so convolutions fail until this is mended\n"
                             : "convpin: warning: the run goes on as if nothing had been asked\n";
  say(lines);
}

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

// Of the problems that ran, and of those that failed by a rule or by on_miss; where there is neither, of those that were met.
Totals totals() {
  const auto counts = [](const ProblemState& p) { return p.calls > 0 || p.failure_said; };
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
  });
  return t;
}

// Runs when the process exits in an orderly way; a killed one loses only these lines. Nothing is torn down, since
// later destructors may still convolve.
__attribute__((destructor)) void at_end() {
  try {
    const Runtime* made = instance.load();
    if (!made) {
      say(silence_explained(environment));
      return;
    }
    if (made->idle) return;
    std::string summary;
    for (const AtEnd& hook : at_end_hooks) {
      if (hook.flush) hook.flush();
      if (hook.summary) summary += hook.summary();
    }
    const Totals t = totals();
    if (t.problems == 0 && forked) return;  // a child that came by fork and convolved nothing has nothing to tell
    if (t.problems == 0) say_settings(made->settings);
    if (made->log.wanted()) {
      log_counts();
      record(end_record(t));
    }
    say(summary + rules_summary() + end_line(t) + "\n");
  } catch (...) {
  }
}

}  // namespace

const char* name_of(Api api) { return api == Api::Graph ? "graph" : "legacy"; }

Runtime& runtime() noexcept {
  static constinit Runtime* fallback = nullptr;
  if (Runtime* made = instance.load(std::memory_order_acquire)) return *made;
  std::lock_guard hold(make_lock);
  Runtime* made = instance.load(std::memory_order_acquire);
  if (!made) made = make_runtime();
  if (!made) {  // not even that much memory: an idle runtime in static storage
    alignas(Runtime) static unsigned char storage[sizeof(Runtime)];
    if (!fallback) fallback = new (storage) Runtime;
    made = fallback;
  }
  instance.store(made, std::memory_order_release);
  return *made;
}

void watch_packs() noexcept {
  Runtime& r = runtime();
  if (r.pack_watchers.fetch_add(1) == 0) ++r.watches;
}

void unwatch_packs() noexcept { --runtime().pack_watchers; }

bool take_profile(ProblemState& state) noexcept {
  auto wanted = ProfileState::Wanted;
  if (!state.profile.compare_exchange_strong(wanted, ProfileState::Done)) return false;
  unwatch_packs();
  return true;
}

void each_problem(const std::function<void(ProblemState&)>& visit) {
  for (auto& bucket : buckets)
    for (ProblemState* p = bucket.load(std::memory_order_acquire); p; p = p->next_in_bucket) visit(*p);
}

ProblemState* find_problem(const Problem& problem, Api api) noexcept {
  for (ProblemState* p = buckets[bucket_of(problem, api)].load(std::memory_order_acquire); p; p = p->next_in_bucket)
    if (p->api == api && p->problem == problem) return p;
  return nullptr;
}

ProblemState* meet(const Problem& problem, Api api, const Library& library) {
  if (ProblemState* known = find_problem(problem, api)) return known;
  Runtime& r = runtime();
  const Place place{device_of_process(library).name, library.version};  // asks the driver: not under a lock
  ProblemState* added = nullptr;
  bool first = false;
  {
    std::lock_guard hold(registry_lock);
    if (ProblemState* known = find_problem(problem, api)) return known;
    first = last_id == 0;
    added = new ProblemState(++last_id, problem, api);
    added->place = place;
    find_rule(*added);
    if (r.settings.profiling()) {
      added->profile = ProfileState::Wanted;
      watch_packs();
    }
    auto& bucket = buckets[bucket_of(problem, api)];
    added->next_in_bucket = bucket.load(std::memory_order_relaxed);
    bucket.store(added, std::memory_order_release);
  }
  if (first) say_settings(r.settings);
  say_stale(*added);
  announce(*added);
  return added;
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

namespace {

void remember(ProblemState& state, const Choice& choice) {  // under its lock
  constexpr std::size_t kMostTold = 64;  // a program that changes its rules for ever
  if (state.told.size() == kMostTold) state.told.erase(state.told.begin());
  state.told.push_back(choice);
}

}  // namespace

void report_choice(ProblemState& state, const Choice& choice, const Candidate& ran, const Library&) {
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
    if (known != state.told.end()) {
      std::rotate(known, known + 1, state.told.end());
      return;
    }
    // The same engine with other knobs, or for another alignment: in the log only.
    say_it = std::none_of(state.told.begin(), state.told.end(), same_request);
    remember(state, choice);
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
  bool full = false;
  {
    std::lock_guard hold(registry_lock);
    full = tables_printed < kFullTables;
    if (full) ++tables_printed;
  }
  say(full ? candidate_table(state.problem, candidates, device_of_process(library), cudnn_version_text(library), current_label())
           : candidate_summary(state.problem, candidates, current_label()));
}

}  // namespace convpin
