#include "shim/process/runtime.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>

#include "shim/api/live.hpp"
#include "shim/process/device.hpp"
#include "shim/process/report.hpp"
#include "shim/process/rules.hpp"

namespace convpin {
namespace {

constexpr std::size_t kBuckets = 1024;

std::atomic<Runtime*> instance{nullptr};
std::mutex make_lock;

std::atomic<ProblemState*> buckets[kBuckets];
std::mutex registry_lock;        // guards appending, and what follows
ProblemId last_id = 0;
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
    new (&p.lists) std::vector<Offer>;  // another thread may have been in the middle of it
    for (auto& label : p.labels) label = nullptr;
    p.seen = 0;
    p.failure_said = p.denial_said = false;
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

}  // namespace convpin
