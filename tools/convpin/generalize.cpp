#include "tools/convpin/generalize.hpp"

#include <algorithm>
#include <tuple>

#include "shim/model/record.hpp"
#include "shim/model/text.hpp"

namespace convpin::cli {
namespace {

enum class Star { Batch, Image };

// x's numbers in a text, "32,64,56,56"; empty where the strides say sizes too.
std::string numbers_of_x(const std::string& text) {
  const std::size_t begin = text.find("x=[");
  if (begin == text.npos || text.find("stride=[") != text.npos) return {};
  return text.substr(begin + 3, text.find(']', begin) - begin - 3);
}

struct Starred {
  std::string text;   // the rule's
  std::string sizes;  // what the stars stand for: "32", "56x56"
};
Starred starred(const Problem& problem, Star star) {
  Starred out{pattern_text(problem), {}};
  const std::string numbers = numbers_of_x(out.text);
  if (numbers.empty()) return {};
  std::vector<std::string> parts, sizes;
  for (const std::string_view part : split(numbers, ',')) {
    const bool open = star == Star::Batch ? parts.empty() : parts.size() > 1;
    if (open) sizes.emplace_back(part);
    parts.push_back(open ? "*" : std::string(part));
  }
  out.text.replace(out.text.find(numbers), numbers.size(), join(parts, ","));
  out.sizes = join(sizes, "x");
  return out;
}

struct Member {
  const Usage* usage;
  std::string sizes;
};
struct Group {
  std::string text;
  std::vector<Member> members;  // each another size
};

std::vector<Group> groups_of(const std::vector<Usage>& tuned, Star star) {
  std::vector<Group> groups;
  for (const Usage& usage : tuned) {
    if (usage.ran.empty() || usage.api != "graph") continue;
    const auto [text, sizes] = starred(usage.problem, star);
    if (text.empty()) continue;
    const auto same = [&](const Group& g) {
      const Usage& first = *g.members.front().usage;
      return g.text == text && std::tie(first.gpu, first.cudnn) == std::tie(usage.gpu, usage.cudnn);
    };
    auto group = std::ranges::find_if(groups, same);
    if (group == groups.end()) group = groups.insert(groups.end(), {text, {}});
    group->members.push_back({&usage, sizes});
  }
  std::erase_if(groups, [](const Group& g) { return g.members.size() < 2; });
  return groups;
}

// What this candidate costs of what was chosen for the problem: 1.02. Nothing where it can't be had.
std::optional<double> ratio(const Usage& usage, const EngineConfig& config, TunePolicy policy,
                            const std::string& tf32) {
  const LoggedCandidate* chosen = usage.chosen();
  const auto at = std::ranges::find(usage.candidates, config, &LoggedCandidate::engine);
  if (!chosen || at == usage.candidates.end()) return std::nullopt;
  policy.tf32 = takes_tf32(tf32, usage.problem, usage.framework_choice());
  if (!choose({*at}, std::nullopt, policy).chosen) return std::nullopt;
  const auto its = cost_of(*at, policy), best = cost_of(*chosen, policy);
  if (!its || !best) return std::nullopt;
  if (*best <= 0) return *its <= 0 ? std::optional(1.0) : std::nullopt;
  return *its / *best;
}

struct Worst {
  double ratio = 0;
  std::string sizes;
};
std::optional<Worst> worst_of(const Group& group, const EngineConfig& config, const TunePolicy& policy,
                              const std::string& tf32) {
  Worst worst;
  for (const Member& member : group.members) {
    const auto is = ratio(*member.usage, config, policy, tf32);
    if (!is) return std::nullopt;
    if (*is > worst.ratio) worst = {*is, member.sizes};
  }
  return worst;
}

}  // namespace

std::vector<FrozenRule> generalize(const std::vector<Usage>& tuned, const TunePolicy& policy,
                                   const std::string& tf32, double within) {
  std::vector<FrozenRule> rules;
  for (const Star star : {Star::Batch, Star::Image}) {
    for (const Group& group : groups_of(tuned, star)) {
      const Usage& first = *group.members.front().usage;
      std::optional<Worst> best;
      EngineConfig config;
      for (const LoggedCandidate& candidate : first.candidates) {
        const auto worst = worst_of(group, candidate.engine, policy, tf32);
        if (!worst || worst->ratio > within || (best && best->ratio <= worst->ratio)) continue;
        best = worst;
        config = candidate.engine;
      }
      if (!best) continue;
      std::vector<std::string> sizes;
      for (const Member& member : group.members) sizes.push_back(member.sizes);
      rules.push_back({first.problem, group.text, first.gpu, first.cudnn, {to_tag(config)}, {}});
      rules.back().comments = {
          std::string("For other ") + (star == Star::Batch ? "batch" : "image") +
              " sizes than those tuned: " + join(sizes, ", "),
          "At worst " + four_digits(best->ratio) + " times what is chosen above (at " + best->sizes + ")"};
    }
  }
  return rules;
}

}  // namespace convpin::cli
