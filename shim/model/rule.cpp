// Which rule or denial applies, and what it says in words.
#include "shim/model/rule.hpp"

#include <algorithm>

#include "shim/model/text.hpp"

namespace convpin {
namespace {

struct FlagWord {
  Flag flag;
  FlagList list;
  const char* name;
};
constexpr FlagWord kFlagWords[] = {
    {Flag::Deterministic, FlagList::Require, "deterministic"},
    {Flag::TensorCore, FlagList::Require, "tensor_core"},
    {Flag::NoTensorCore, FlagList::Require, "no_tensor_core"},
    {Flag::NoDownConvert, FlagList::Require, "no_down_convert"},
    {Flag::RuntimeCompilation, FlagList::Allow, "runtime_compilation"},
    {Flag::Nondeterministic, FlagList::Allow, "nondeterministic"},
    {Flag::DownConvert, FlagList::Allow, "down_convert"},
    {Flag::ReducedPrecisionReduction, FlagList::Allow, "reduced_precision_reduction"},
};

bool covers(const Denial& d, const Problem& problem, const Place& place) {
  return d.operation == problem.operation && d.problem.matches(problem) && d.match.matches(problem, place);
}

// All the knobs that the denial names are these.
bool same_engine(const EngineConfig& denied, const EngineConfig& is) {
  return denied.engine == is.engine && std::ranges::all_of(denied.knobs, [&](const Knob& knob) {
           return std::ranges::find(is.knobs, knob) != is.knobs.end();
         });
}

}  // namespace

std::optional<Flag> flag_from(FlagList list, std::string_view text) {
  const std::string wanted = lower(trim(text));
  for (const FlagWord& word : kFlagWords)
    if (word.list == list && wanted == word.name) return word.flag;
  return std::nullopt;
}

std::string names_of(FlagList list, Flags flags) {
  std::vector<std::string> names;
  for (const FlagWord& word : kFlagWords)
    if (word.list == list && flags.has(word.flag)) names.emplace_back(word.name);
  return join(names, ", ");
}

Flags all_flags(FlagList list) {
  Flags all;
  for (const FlagWord& word : kFlagWords)
    if (word.list == list) all.add(word.flag);
  return all;
}

const Rule* match(const std::vector<Rule>& rules, const Problem& problem, const Place& place) {
  for (const Rule& rule : rules)
    if (rule.operation == problem.operation && rule.problem.matches(problem) && rule.match.matches(problem, place))
      return &rule;
  return nullptr;
}

bool stale(const Rule& rule, const Place& place) { return !rule.match.matches(place); }

const Rule* match_elsewhere(const std::vector<Rule>& rules, const Problem& problem, const Place& place) {
  for (const Rule& rule : rules)
    if (rule.operation == problem.operation && rule.asks() && stale(rule, place) &&
        rule.problem.matches(problem) && rule.match.matches(problem))
      return &rule;
  return nullptr;
}

std::string why_stale(const Rule& rule, const Place& place) {
  if (!stale(rule, place)) return {};
  std::vector<std::string> wanted, is;
  if (!rule.match.devices.empty()) {
    wanted.push_back(join(rule.match.devices, " or "));
    is.push_back(place.device.empty() ? "no GPU" : place.device);
  }
  if (!rule.match.cudnn.empty()) {
    std::vector<std::string> versions;
    for (const Versions& v : rule.match.cudnn) versions.push_back(v.text);
    wanted.push_back("cuDNN " + join(versions, " or "));
    is.push_back("cuDNN " + version_text(place.cudnn_version));
  }
  return "for " + join(wanted, " with ") + "; here is " + join(is, " with ");
}

std::string file_of(const Rule& rule) {
  const std::size_t column = rule.source.rfind(':');
  const std::size_t line =
      column == rule.source.npos || column == 0 ? rule.source.npos : rule.source.rfind(':', column - 1);
  return line == rule.source.npos ? "" : rule.source.substr(0, line);
}

std::string mending_command(const std::string& file) {
  return "convpin tune --refresh " + shell_word(file) + " -o " + shell_word(file);
}

std::string request_text(const Rule& rule) {
  if (rule.policy == PolicyKind::None) {
    std::vector<std::string> names;
    for (const Request& request : rule.requests) names.push_back(request.to_text());
    const std::string text = join(names, ", else ");
    return rule.require.empty() ? text : text + ", only if " + names_of(FlagList::Require, rule.require);
  }
  std::string text = rule.policy == PolicyKind::Fastest ? "the fastest" : "the least memory";
  std::vector<std::string> terms;
  if (!rule.require.empty()) terms.push_back(names_of(FlagList::Require, rule.require));
  if (!rule.allow.empty()) terms.push_back("allowed: " + names_of(FlagList::Allow, rule.allow));
  return terms.empty() ? text : text + " (" + join(terms, "; ") + ")";
}

const Denial* denied(const std::vector<Denial>& denials, const Problem& problem, const Place& place,
                     const EngineConfig& config) {
  // A fused graph numbers its engines apart: there none is known to be an algorithm's.
  const int algorithm =
      problem.fused_count > 0 ? -1 : algorithm_of_engine(problem.operation, place.cudnn_version, config.engine);
  for (const Denial& d : denials) {
    const bool it = d.algorithm >= 0 ? d.algorithm == algorithm : same_engine(d.engine, config);
    if (it && covers(d, problem, place)) return &d;
  }
  return nullptr;
}

const Denial* denied_algorithm(const std::vector<Denial>& denials, const Problem& problem, const Place& place,
                               int algorithm) {
  for (const Denial& d : denials)
    if (d.algorithm >= 0 && d.algorithm == algorithm && covers(d, problem, place)) return &d;
  return nullptr;
}

std::string denial_text(const Denial& d) { return "denied by " + d.source + (d.reason.empty() ? "" : " (" + d.reason + ")"); }

std::string denials_text(const std::vector<Offer>& offers) {
  constexpr std::size_t kMost = 4;
  struct Group {
    const Denial* denial;
    std::string first;
    std::size_t more;
  };
  std::vector<Group> groups;
  for (const Offer& offer : offers) {
    if (!offer.denial) continue;
    const auto known = std::ranges::find(groups, offer.denial, &Group::denial);
    if (known == groups.end())
      groups.push_back({offer.denial, offer.what, 0});
    else
      ++known->more;
  }
  std::vector<std::string> parts;
  for (const Group& group : groups) {
    if (parts.size() == kMost) {
      parts.push_back("by " + std::to_string(groups.size()) + " denials in all");
      break;
    }
    const std::string verb = group.more == 0 ? " is " : " and " + std::to_string(group.more) + " more are ";
    parts.push_back(group.first + verb + denial_text(*group.denial));
  }
  return join(parts, "; ");
}

std::string denied_text(const Denial& d) {
  if (d.algorithm < 0) return to_tag(d.engine);
  return std::to_string(d.algorithm) + " (" + algorithm_name(d.operation, d.algorithm) + ")";
}

}  // namespace convpin
