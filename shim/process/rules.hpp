// The rules in force in this process: those of the settings, and before them those that the program set through the C API.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "shim/process/runtime.hpp"

namespace convpin {

extern std::atomic<std::uint32_t> rules_generation_;
// Rises with each change; 1 as long as there was none.
inline std::uint32_t rules_generation() noexcept { return rules_generation_.load(std::memory_order_relaxed); }

// The rule that covers a problem, if any. Two loads where nothing changed since the last time.
const Rule* rule_of(ProblemState&);
void find_rule(ProblemState&);   // the same, looked for anew

// The program's own rules, tried before all others, list by list; null: no list. Replaces those of before. Lists and rules
// stay alive and as they are for ever: problems and plans know a rule by its address.
using LiveRules = std::array<const std::vector<Rule>*, 4>;
void set_live_rules(const LiveRules&);
// Whether any rule was ever set that way: then a plan that stands may have to be answered by another.
bool rules_are_live() noexcept;
void renew_rules_in_child() noexcept;   // after fork

// Whether nothing of the rule's list is possible here but its last, the framework's own choice (found out under these rules).
bool left_to_framework(ProblemState&);

// Why this problem's convolutions must fail, since no rule covers it and the settings call that an error
// (on_miss; strict where a stale rule would); empty: they need not.
std::string failure_by_miss(ProblemState&);
// The same where a rule covers it and is not to fall back: `reason` is why it can't be met. Empty: the framework's choice runs.
std::string failure_by_rule(ProblemState&, const std::string& reason);
// Says once for each file that its rules are stale, where this problem misses one of them and nothing fails
// for that.
void say_stale(const ProblemState&) noexcept;
// Says a failure once for the problem, in the log as a choice by which nothing ran, and leaves it for cudnnGetLastErrorString.
void say_failure(ProblemState&, const std::string& why) noexcept;
// The log's part of it. `impossible`: what its rule asks for can't be, also where nothing is known to be wrong with that itself.
void log_failure(ProblemState&, const std::string& why, bool impossible = false);
// What a convolution fails with where the settings have an error and CONVPIN_STRICT is set (runtime().fail), which the log has
// once for the problem; null where that is not known.
cudnnStatus_t fail_for_settings(const Library&, ProblemState*) noexcept;

// The largest workspace in bytes that the rule's pins may need; -1: no limit.
std::int64_t workspace_limit_of(const Rule*);

// Why a policy can't decide in this process, empty if it can: ranks of one job would decide differently.
std::string policy_refused(const Rule&);

// Lines for the end: rules that matched nothing, rules that could not be met, problems that no rule covers,
// and how many of these only because the rule is stale.
std::string rules_summary();

}  // namespace convpin
