// Rules and denials: which problems they cover, what they ask for, and what happens where that is not possible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shim/model/algorithm.hpp"
#include "shim/model/match.hpp"
#include "shim/model/problem.hpp"

namespace convpin {

// What a rule may require of whatever runs, and what it may allow its policy to take. kFlagWords has their names.
enum class Flag : std::uint8_t {
  Deterministic, TensorCore, NoTensorCore, NoDownConvert,                       // require
  RuntimeCompilation, Nondeterministic, DownConvert, ReducedPrecisionReduction  // allow
};
struct Flags {
  std::uint32_t bits = 0;
  bool has(Flag flag) const { return bits >> static_cast<unsigned>(flag) & 1u; }
  void add(Flag flag) { bits |= 1u << static_cast<unsigned>(flag); }
  bool empty() const { return bits == 0; }
  bool operator==(const Flags&) const = default;
};
enum class FlagList : std::uint8_t { Require, Allow };
std::optional<Flag> flag_from(FlagList, std::string_view);   // "deterministic", "runtime_compilation", ...; any case
std::string names_of(FlagList, Flags);           // "deterministic, tensor_core"
Flags all_flags(FlagList);

enum class PolicyKind : std::uint8_t { None, Fastest, LeastMemory };
enum class OnUnsupported : std::uint8_t { Fallback, Error };  // nothing that a rule asks for is possible
enum class OnMiss : std::uint8_t { Leave, Error };            // no rule covers a problem

struct Rule {
  std::string source;                            // "CONV_FWD_ALGO" or "pins.toml:12:1" (path as given, line, column)
  std::string name;                              // the person's own; may be empty
  Operation operation = Operation::Forward;
  ProblemPattern problem;
  Match match;
  std::vector<Request> requests;                 // in order of preference: the first that is possible. Empty exactly where
                                                 // there is a policy. FrameworkChoice stands only at the end
  PolicyKind policy = PolicyKind::None;
  OnUnsupported on_unsupported = OnUnsupported::Fallback;
  std::optional<std::int64_t> workspace_limit;   // bytes; the settings' where the rule has none of its own
  Flags require;
  Flags allow;                                   // for a policy
  double min_gain = 0.02;                        // for a policy: a fraction of what the framework's own choice costs

  // Whether its list ends with the framework's own choice, after others.
  bool leaves_at_last() const { return requests.size() > 1 && requests.back().kind == Request::Kind::FrameworkChoice; }
  // Whether for more than the framework's own choice.
  bool asks() const { return policy != PolicyKind::None || request(); }
  const std::string& label() const { return name.empty() ? source : name; }
  // The first thing that it names; null for a policy and for the framework's own choice.
  const Request* request() const {
    return requests.empty() || requests.front().kind == Request::Kind::FrameworkChoice ? nullptr : &requests.front();
  }
};

// The first rule that matches, or null. A rule for the framework's own choice ends the search (and is returned).
const Rule* match(const std::vector<Rule>&, const Problem&, const Place&);

// It is for another GPU or another cuDNN than the one at hand, so nothing here can match it.
bool stale(const Rule&, const Place&);
// The first rule that would match the problem if it weren't stale, and asks for something; or null. Only
// where no rule matches is it missed: a file may well have rules for several GPUs.
const Rule* match_elsewhere(const std::vector<Rule>&, const Problem&, const Place&);
// "for *A100* with cuDNN >=9.10; here is NVIDIA H200 with cuDNN 9.5.1"; empty for a rule that isn't stale.
std::string why_stale(const Rule&, const Place&);

// The file that a rule stands in, "pins.toml" of "pins.toml:12:1"; empty for one of no file.
std::string file_of(const Rule&);
// The command that tunes a file's stale rules anew, for sentences.
std::string mending_command(const std::string& file);

// What a rule asks for: "eng72, else 1 (IMPLICIT_PRECOMP_GEMM)", "the fastest (deterministic)".
std::string request_text(const Rule&);

// An engine or an algorithm that must not run.
struct Denial {
  std::string source;                            // "pins.toml:20:1", or "errata.json: rule_id"
  Operation operation = Operation::Forward;
  ProblemPattern problem;
  Match match;
  int algorithm = -1;                            // a legacy algorithm, and all its engines in a bare graph; or else
  EngineConfig engine;                           // an engine (-1: none), and the knobs that must agree
  std::string reason;                            // the person's own words; may be empty
};
// The denial that forbids this engine configuration, or null.
const Denial* denied(const std::vector<Denial>&, const Problem&, const Place&, const EngineConfig&);
// The same for an algorithm of the legacy API.
const Denial* denied_algorithm(const std::vector<Denial>&, const Problem&, const Place&, int algorithm);
// What it forbids: "eng5", "eng62_k2=5", "4 (FFT)".
std::string denied_text(const Denial&);
// Whose doing it is: "denied by pins.toml:7:1 (wrong results)".
std::string denial_text(const Denial&);

// Something that could run, in words, and the denial that takes it away; null: none does.
struct Offer {
  std::string what;
  const Denial* denial = nullptr;
};
// "eng70_k2=12 and 2 more are denied by pins.toml:7:1 (wrong results); eng2 is denied by pins.toml:9:1": each denial once, and
// of many the first few. Empty: none of these is denied.
std::string denials_text(const std::vector<Offer>&);

}  // namespace convpin
