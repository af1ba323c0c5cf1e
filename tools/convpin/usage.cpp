#include "tools/convpin/usage.hpp"

#include <algorithm>
#include <tuple>

#include "shim/model/text.hpp"

namespace convpin::cli {
namespace {

Ran& ran_of(Usage& usage, const std::string& what) {
  const auto known = std::ranges::find(usage.ran, what, [](const Ran& r) { return r.choice.ran; });
  if (known != usage.ran.end()) return *known;
  Ran& added = usage.ran.emplace_back();
  added.choice.ran = what;
  return added;
}

void add(const LoggedProblem& p, Usage& usage) {
  const bool ran_at_all = std::ranges::any_of(p.calls, [](const auto& of) { return of.second > 0; });
  if (!p.choices.empty() && p.choices.back().ran.empty() && !ran_at_all) usage.failed = p.choices.back();
  for (const LoggedChoice& choice : p.choices) {
    if (choice.ran.empty()) continue;
    Ran& ran = ran_of(usage, choice.ran);
    ran.choice = choice;
    ++ran.runs;
  }
  for (const auto& [what, calls] : p.calls) {
    if (what.empty()) continue;
    ran_of(usage, what).calls += calls;
    usage.calls += calls;
  }
  if (!p.candidates.empty()) usage.candidates = p.candidates;
  for (const std::string& label : p.labels)
    if (std::ranges::find(usage.labels, label) == usage.labels.end()) usage.labels.push_back(label);
}

double weight(const Usage& usage) {
  const LoggedCandidate* chosen = usage.chosen();
  return chosen && chosen->time_ms ? *chosen->time_ms * static_cast<double>(usage.calls) : -1;
}

}  // namespace

const LoggedCandidate* Usage::find(const std::string& identity) const {
  const auto at = std::ranges::find(candidates, identity, &LoggedCandidate::identity);
  return at == candidates.end() ? nullptr : &*at;
}

const LoggedCandidate* Usage::chosen() const {
  if (ran.empty()) return nullptr;
  const LoggedCandidate* profiled = find(ran.front().choice.ran);
  return profiled ? profiled : &ran.front().choice.plan;
}

const LoggedCandidate* Usage::framework_choice() const {
  const auto at = std::ranges::find_if(candidates, &LoggedCandidate::framework_choice);
  if (at != candidates.end()) return &*at;
  return !ran.empty() && by_framework(ran.front().choice.kind) ? chosen() : nullptr;
}

std::optional<double> Usage::gained_ms() const {
  const LoggedCandidate *own = framework_choice(), *is = chosen();
  if (!own || !is || !own->time_ms || !is->time_ms) return std::nullopt;
  return (*own->time_ms - *is->time_ms) * static_cast<double>(ran.front().calls);
}

std::vector<Usage> usages_of(const Log& log) {
  std::vector<Usage> all;
  for (const Run& run : log.runs) {
    for (const auto& [id, p] : run.problems) {
      const auto same = [&p](const Usage& u) { return std::tie(u.text, u.api, u.gpu, u.cudnn) == std::tie(p.text, p.api, p.gpu, p.cudnn); };
      auto known = std::ranges::find_if(all, same);
      if (known == all.end()) {
        Usage usage;
        usage.text = p.text;
        usage.problem = p.problem;
        usage.api = p.api;
        usage.gpu = p.gpu;
        usage.cudnn = p.cudnn;
        known = all.insert(all.end(), std::move(usage));
      }
      add(p, *known);
    }
  }
  if (std::ranges::any_of(all, [](const Usage& u) { return !u.ran.empty(); }))
    std::erase_if(all, [](const Usage& u) { return u.ran.empty() && !u.failed && u.candidates.empty(); });
  for (Usage& usage : all) std::ranges::stable_sort(usage.ran, std::greater{}, &Ran::calls);
  return all;
}

void sort_by_weight(std::vector<Usage>& usages) {
  std::ranges::stable_sort(usages, std::greater{}, [](const Usage& u) { return std::pair(weight(u), u.calls); });
}

std::size_t version_from(const std::string& text) {
  std::vector<std::size_t> parts;
  for (const std::string_view part : split(text, '.')) {
    const auto number = integer_from<std::size_t>(part);
    if (!number || *number > 999) return 0;
    parts.push_back(*number);
  }
  if (parts.size() < 2 || parts.size() > 4) return 0;
  parts.resize(3);
  // cudnn_version.h: up to 8.x the major counts thousands, from 9 on ten thousands.
  return parts[0] * (parts[0] >= 9 ? 10000 : 1000) + parts[1] * 100 + parts[2];
}

Place place_of(const Usage& usage) { return {usage.gpu, version_from(usage.cudnn)}; }

}  // namespace convpin::cli
