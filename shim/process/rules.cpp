#include "shim/process/rules.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <set>

#include "shim/hooks/reason.hpp"
#include "shim/model/text.hpp"
#include "shim/process/report.hpp"

namespace convpin {

std::atomic<std::uint32_t> rules_generation_{1};

namespace {

// Made once for each set of lists, and never freed: a thread may be in one.
std::atomic<const LiveRules*> live{nullptr};
std::mutex live_lock;
std::map<LiveRules, int>* live_sets = nullptr;  // under live_lock; the values mean nothing

const Rule* matching(const ProblemState& state) {
  if (const LiveRules* lists = live.load(std::memory_order_acquire))
    for (const auto* rules : *lists)
      if (const Rule* rule = rules ? match(*rules, state.problem, state.place) : nullptr) return rule;
  return match(runtime().settings.rules, state.problem, state.place);
}

std::vector<std::string>* said_stale = nullptr;  // under live_lock: files whose stale rules were said

// How many rules of the file can't match anything here; one for all operations is one rule.
std::size_t stale_rules_of(const std::string& file, const Place& place) {
  std::set<std::string> sources;
  for (const Rule& rule : runtime().settings.rules)
    if (stale(rule, place) && file_of(rule) == file) sources.insert(rule.source);
  return sources.size();
}

// What is logged of a problem that fails; without a rule that asks for something, it is nobody's choice.
Choice failed_choice(ProblemState& state, const Rule* rule, const std::string& why, bool impossible) {
  Choice choice;
  choice.api = name_of(state.api);
  choice.reason = why;
  if (!rule) return choice;
  choice.rule = rule->label();
  if (!rule->asks()) return choice;
  choice.requested = request_text(*rule);
  std::lock_guard hold(state.lock);
  choice.kind = state.unsupported_reason.empty() && !impossible ? ChoiceKind::Refused : ChoiceKind::Unsupported;
  return choice;
}

// The first that its rule names, for the command that tries it again.
Candidate asked_first(const ProblemState& state, const Rule* rule) {
  Candidate asked;
  asked.operation = state.problem.operation;
  if (state.api == Api::Legacy) asked.math_type = CUDNN_DEFAULT_MATH;
  const Request* request = rule ? rule->request() : nullptr;
  if (!request) return asked;
  asked.algorithm = request->algorithm;
  if (state.api == Api::Graph) asked.engine = request->engine;  // the legacy API has none
  return asked;
}

int world_size() {
  for (const char* name : {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"})
    if (const char* value = secure_getenv(name))
      if (const auto size = integer_from<int>(trim(value))) return *size;
  return 1;
}

}  // namespace

const Rule* rule_of(ProblemState& state) {
  if (state.generation.load(std::memory_order_acquire) != rules_generation()) find_rule(state);
  return state.rule.load(std::memory_order_relaxed);
}

void find_rule(ProblemState& state) {
  std::lock_guard hold(state.lock);  // one after the other, so that an older rule never replaces a newer one
  const std::uint32_t generation = rules_generation_.load(std::memory_order_acquire);
  const Rule* rule = matching(state);
  if (rule != state.rule.load(std::memory_order_relaxed)) {  // what was found out for another rule
    state.unsupported_reason.clear();
    state.refused_reason.clear();
    state.pin_workspace = 0;
    state.seen = 0;
    state.failure_said = false;
  }
  state.rule.store(rule, std::memory_order_relaxed);
  state.stale.store(rule ? nullptr : match_elsewhere(runtime().settings.rules, state.problem, state.place),
                    std::memory_order_relaxed);
  state.generation.store(generation, std::memory_order_release);
}

void set_live_rules(const LiveRules& lists) {
  std::lock_guard hold(live_lock);
  if (!live_sets) live_sets = new std::map<LiveRules, int>;
  const LiveRules* set = &live_sets->try_emplace(lists).first->first;
  if (set == live.load(std::memory_order_relaxed)) return;
  live.store(set, std::memory_order_release);
  rules_generation_.fetch_add(1, std::memory_order_release);
}

bool rules_are_live() noexcept { return live.load(std::memory_order_relaxed) != nullptr; }

bool left_to_framework(ProblemState& state) {
  const Rule* rule = rule_of(state);
  return rule && rule->leaves_at_last() && state.left_for.load(std::memory_order_relaxed) == rule;
}

void renew_rules_in_child() noexcept { new (&live_lock) std::mutex; }

std::string failure_by_miss(ProblemState& state) {
  if (rule_of(state)) return {};
  const Settings& settings = runtime().settings;
  const Rule* missed = state.stale.load(std::memory_order_relaxed);
  const bool miss = settings.on_miss == OnMiss::Error;
  if (!miss && !(missed && settings.strict)) return {};
  const std::string why = missed ? why_stale(*missed, state.place) + ", so it is not applied" : "";
  const std::string mend = missed ? " (mend it: " + mending_command(file_of(*missed)) + ")" : "";
  if (!miss) return "rule " + missed->label() + " is " + why + ", which is an error by CONVPIN_STRICT" + mend;
  return "no rule covers it, and defaults.on_miss is \"error\"" +
         (missed ? "; rule " + missed->label() + " would, but is " + why + mend : "");
}

void say_stale(const ProblemState& state) noexcept {
  try {
    const Rule* missed = state.stale.load(std::memory_order_relaxed);
    const Settings& settings = runtime().settings;
    if (!missed || settings.strict || settings.on_miss == OnMiss::Error) return;
    const std::string file = file_of(*missed);
    {
      std::lock_guard hold(live_lock);
      if (!said_stale) said_stale = new std::vector<std::string>;
      if (std::find(said_stale->begin(), said_stale->end(), file) != said_stale->end()) return;
      said_stale->push_back(file);
    }
    const std::size_t count = stale_rules_of(file, state.place);
    const std::string which =
        count == 1 ? "rule " + missed->label() + " is "
                   : std::to_string(count) + " rules are for another GPU or cuDNN (" + missed->label() + ": ";
    say("convpin: warning: " + file + ": " + which + why_stale(*missed, state.place) +
        (count == 1 ? ": it is" : "): they are") +
        " not applied, and the framework's choice runs. Tune anew what is stale: " + mending_command(file) +
        " (rules with * also need a log of convpin run --record, named before -o)\n");
  } catch (...) {
  }
}

std::string failure_by_rule(ProblemState& state, const std::string& reason) {
  const Rule* rule = rule_of(state);
  if (!rule || rule->on_unsupported != OnUnsupported::Error) return {};
  return "rule " + rule->label() + " asks for " + request_text(*rule) + ", which is not possible here (" + reason +
         "), and its on_unsupported is \"error\"";
}

void say_failure(ProblemState& state, const std::string& why) noexcept {
  try {
    set_last_error("convpin: " + why);
    const Rule* rule = rule_of(state);
    if (rule) state.choice = ChoiceKind::Unsupported;
    if (state.failure_said.exchange(true)) return;
    say("convpin: error: " + to_text(state.problem) + ": " + why + ": this convolution fails\n");
    log_failure(state, why);
  } catch (...) {
  }
}

void log_failure(ProblemState& state, const std::string& why, bool impossible) {
  const Rule* rule = rule_of(state);
  report_failed(state, failed_choice(state, rule, why, impossible), asked_first(state, rule));
}

cudnnStatus_t fail_for_settings(const Library& library, ProblemState* state) noexcept {
  const std::string& error = runtime().settings.errors.front();
  char text[256];  // no allocation, so that it can't throw
  std::snprintf(text, sizeof text, "convpin: %s", error.c_str());
  set_last_error(text);
  try {
    constexpr std::size_t kLongest = 1000;
    if (state && !state->failure_said.exchange(true))
      log_failure(*state, "the settings have an error, and CONVPIN_STRICT is set: " + one_line(error, kLongest));
  } catch (...) {
  }
  return library.bad_param();
}

std::int64_t workspace_limit_of(const Rule* rule) {
  return rule && rule->workspace_limit ? *rule->workspace_limit : runtime().settings.workspace_limit;
}

std::string policy_refused(const Rule& rule) {
  if (rule.policy != PolicyKind::Fastest) return {};
  static const int ranks = world_size();
  if (ranks <= 1) return {};
  return "timings differ from rank to rank, so " + std::to_string(ranks) +
         " ranks could run different engines: tune once and pin what was found, or name an algorithm";
}

std::string rules_summary() {
  const Settings& settings = runtime().settings;
  if (settings.rules.empty()) return {};
  std::vector<std::string> matched, unmet, idle_rules;
  int uncovered = 0, missed_stale = 0;
  const auto add = [](std::vector<std::string>& to, const std::string& label) {
    if (std::find(to.begin(), to.end(), label) == to.end()) to.push_back(label);
  };
  bool any = false;
  each_problem([&](ProblemState& state) {
    if (!state.announced) return;
    any = true;
    const Rule* rule = rule_of(state);
    {
      std::lock_guard hold(state.lock);  // rules that others have taken the place of since
      for (const Choice& told : state.told)
        if (!told.rule.empty()) add(matched, told.rule);
    }
    if (!rule) {
      ++uncovered;
      missed_stale += state.stale.load() != nullptr;
      return;
    }
    add(matched, rule->label());
    const ChoiceKind choice = state.choice;
    if (choice == ChoiceKind::Unsupported || choice == ChoiceKind::Refused) add(unmet, rule->label());
  });
  if (!any) return {};
  bool of_file = false;
  for (const Rule& rule : settings.rules) {
    if (rule.source.find(':') == std::string::npos) continue;  // a variable's rule: what became of it was said
    of_file = true;
    if (std::find(matched.begin(), matched.end(), rule.label()) == matched.end()) add(idle_rules, rule.label());
  }
  if (!of_file) return {};
  constexpr std::size_t kMostNames = 8;
  const auto line = [](const char* what, std::vector<std::string> names) {
    if (names.empty()) return std::string();
    const std::size_t count = names.size();
    if (count > kMostNames) names.resize(kMostNames);
    return "convpin: " + std::to_string(count) + (count == 1 ? " rule " : " rules ") + what + ": " + join(names, ", ") +
           (count > kMostNames ? ", ..." : "") + "\n";
  };
  return line("matched nothing", idle_rules) + line("could not be met everywhere", unmet) +
         (uncovered == 0
              ? ""
              : "convpin: " + std::to_string(uncovered) + (uncovered == 1 ? " problem" : " problems") +
                    " that no rule covers" +
                    (missed_stale == 0 ? ""
                                       : ", " + std::to_string(missed_stale) +
                                             " of them only because the rule is for another GPU or cuDNN") +
                    "\n");
}

}  // namespace convpin
