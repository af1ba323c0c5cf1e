// What this process knows: its settings, the problems it met, and what was said of them. Made at the first cuDNN
// call, never torn down.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "config/settings.hpp"
#include "shim/hooks/real.hpp"
#include "shim/model/record.hpp"
#include "shim/process/labels.hpp"
#include "shim/process/output.hpp"
#include "shim/process/nvtx.hpp"

namespace convpin {

enum class Api : std::uint8_t { Graph, Legacy };
const char* name_of(Api);

enum class ProfileState : std::uint8_t { NotWanted, Wanted, Running, Done };

// One problem on one API in this process. Lives as long as the process.
struct ProblemState {
  ProblemState(ProblemId id_, const Problem& problem_, Api api_) : id(id_), problem(problem_), api(api_) {}
  const ProblemId id;
  const Problem problem;
  const Api api;
  Place place;                                // of the first meeting
  std::atomic<const Rule*> rule{nullptr};     // by rule_of alone: which rule covers it, if any
  std::atomic<const Rule*> stale{
      nullptr};  // where no rule covers it: the one that would if it were for this GPU and cuDNN
  std::atomic<std::uint32_t> generation{0};   // of the rules that it was found in
  std::atomic<ProfileState> profile{ProfileState::NotWanted};
  std::atomic<std::uint64_t> calls{0};
  std::atomic<ChoiceKind> choice{ChoiceKind::LeftAlone};
  std::atomic<bool> failure_said{false}, denial_said{false};
  std::atomic<bool> announced{false};         // its problem record is in this process's log
  ProblemState* next_in_bucket = nullptr;

  // Legacy API: what ran is an algorithm number, known at each call without a look-up.
  static constexpr int kAlgorithms = 16;
  std::atomic<std::uint64_t> calls_of[kAlgorithms]{};
  std::atomic<std::uint32_t> seen{0};         // bits: algorithms whose first execution is reported
  std::atomic<std::uint64_t> pin_workspace{0};// cache of legacy/pin.cpp: what the pinned algorithm needs
  std::atomic<int> own_choice{-1};            // the framework's own algorithm, -1 unknown
  std::atomic<int> offered{-1};               // the pin that a query was last answered with, -1 for none
  NvtxTexts ranges_of[kAlgorithms];

  std::array<std::atomic<const Label*>, 64> labels{};  // of the modules that ran it, filled from the front

  std::atomic<const Rule*> left_for{nullptr};  // the rule whose list came to its last here: the framework's own choice
  // Graph API: plans that are what the rule asks for, also those that are gone after they ran.
  std::atomic<int> pinned_plans{0};
  std::atomic<const Rule*> undone_for{nullptr};  // the rule for which programs' own configurations are not replaced any more

  std::mutex lock;                            // guards what follows
  struct Ran {                                // one way it ran in this process
    std::string what;                         // engine tag, or legacy algorithm
    std::uint64_t calls_logged = 0;
    std::uint64_t calls = 0;                  // of plans that are gone; live plans count for themselves
  };
  std::vector<Ran> ran;
  std::vector<Choice> told;                   // what was logged of it; the latest of all is the last
  std::string unsupported_reason;             // why the request can't be met here, said once
  std::string refused_reason;                 // why the framework did not take what we offered
  std::vector<Offer> lists;                   // what cuDNN answered the program with, where there are denials
  // What a rule's policy took, best first, from a profile made once for that rule.
  const Rule* decided_for = nullptr;
  std::vector<Candidate> decided;
  std::string decided_reason;
  bool decided_met = true;
};

struct Runtime {
  Settings settings;
  std::atomic<bool> idle{true};               // nothing is asked for: hooks pass every call on
  bool fail = false;                          // strict, and the settings have errors: convolutions fail
  Ranks ranks;
  Log log;                                    // under log_lock
  std::mutex log_lock;
  std::int64_t started_unix_us = 0;
  std::atomic<int> pack_watchers{0};          // reasons to note what variant packs hold
  std::atomic<int> watches{0};                // how often pack_watchers has risen from 0
  std::atomic<int> unseen_profiles{0};        // problems whose data was never seen
};

// Variant packs can't be read back, and noting what is put into them costs a little: only while somebody needs it.
void watch_packs() noexcept;
void unwatch_packs() noexcept;
bool take_profile(ProblemState&) noexcept;    // whether it waited for one, which it does no longer

// Made at the first call; any failure inside leaves an idle runtime.
Runtime& runtime() noexcept;

// The problem's state, made at the first meeting (which says the settings' notices and errors, and logs it).
// `library` tells cuDNN's version, and with it the GPU. Throws where memory is out.
ProblemState* meet(const Problem&, Api, const Library&);
void each_problem(const std::function<void(ProblemState&)>&);
// Without a lock: null if it was never met.
ProblemState* find_problem(const Problem&, Api) noexcept;

// What the end line needs of the adapters: called once, when the process ends.
struct AtEnd {
  void (*flush)() = nullptr;                  // brings the problems' counts up to date
  std::string (*summary)() = nullptr;         // a line of its own
  void (*renew)() noexcept = nullptr;         // in a forked child
};
extern const AtEnd at_end_hooks[5];           // shim/hooks/entry.cpp
}  // namespace convpin
