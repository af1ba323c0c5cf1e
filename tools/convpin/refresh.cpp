#include "tools/convpin/refresh.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "shim/model/text.hpp"
#include "tools/convpin/configuration.hpp"
#include "tools/convpin/counted.hpp"
#include "tools/convpin/files.hpp"
#include "tools/convpin/pattern_words.hpp"

namespace convpin::cli {
namespace {

// [log], [[rule]], [[deny]]; but [rule.match] belongs to the rule before it.
bool begins_table(std::string_view line) {
  line = trim(line);
  if (!line.starts_with('[')) return false;
  const std::string_view name = line.substr(line.find_first_not_of('['));
  const std::string_view word = name.substr(0, name.find_first_of(" \t]."));
  if (word.empty() || word.find_first_of("\"',0123456789") != word.npos) return false;  // a list's line
  return !((word == "rule" || word == "deny") && name.substr(word.size()).starts_with('.'));
}

std::size_t line_of(const Rule& rule) {
  const std::string place = rule.source.substr(file_of(rule).size() + 1);  // "12:1"
  return integer_from<std::size_t>(place.substr(0, place.find(':'))).value_or(0);
}

// A rule's text and that of a problem as a rule's, in the same words.
std::string words_of(const Rule& rule) { return with_operation(rule.problem, rule.operation); }
std::string words_of(const Problem& problem) {
  return with_operation(*parse_problem_pattern(pattern_text(problem)), problem.operation);
}

// The one problem that a rule names an engine for; nothing where it is for several, or asks for no engine.
std::optional<Problem> problem_of(const Rule& rule) {
  if (!rule.asks() || rule.policy != PolicyKind::None) return std::nullopt;
  constexpr std::string_view kBare = " fused=none";
  std::string text = words_of(rule);
  if (text.ends_with(kBare)) text.resize(text.size() - kBare.size());
  const auto problem = parse_problem(text);
  if (!problem) return std::nullopt;
  const std::string whole = words_of(*problem);
  return whole == text || whole == text + std::string(kBare) ? std::optional(*problem) : std::nullopt;
}

bool same_gpu(const Rule& rule, const Place& place) {
  Match match = rule.match;
  match.cudnn.clear();
  return match.matches(place);
}

std::vector<Rule> all_rules(const PinText& file) {
  std::vector<Rule> all;
  for (const PinBlock& block : file.blocks) all.insert(all.end(), block.rules.begin(), block.rules.end());
  return all;
}

// Whether a rule that holds here is for the same problem as this stale one: any that is tried before it, or
// exactly its own.
bool covered(const std::vector<Rule>& rules, std::size_t stale_one, const Problem& problem,
             const Place& place) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Rule& rule = rules[i];
    if (rule.operation != problem.operation || !rule.problem.matches(problem) ||
        !rule.match.matches(problem, place))
      continue;
    if (i < stale_one || problem_of(rule) == problem) return true;
  }
  return false;
}

}  // namespace

PinText read_pin_text(const std::string& file) {
  const Settings settings = load_files({file});
  if (!settings.errors.empty()) throw BadUse(settings.errors.front());
  std::map<std::size_t, std::vector<Rule>> rules;  // by the line of their header
  for (const Rule& rule : settings.rules) rules[line_of(rule)].push_back(rule);
  PinText out;
  std::string current, comments;  // comments: the last lines of `current`, that may belong to what comes
  bool in_head = true;
  std::vector<Rule> rules_of_current;
  const auto without_blank_ends = [](std::string text) {
    const std::size_t first = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n");
    return first == text.npos ? std::string() : text.substr(first, last - first + 1) + "\n";
  };
  const auto bound = [&](const Rule& rule) {
    return !rule.require.empty() || rule.on_unsupported != settings.on_unsupported ||
           rule.workspace_limit.value_or(-1) != settings.workspace_limit;
  };
  const auto close = [&] {
    if (in_head)
      out.head = without_blank_ends(current);
    else
      out.blocks.push_back({without_blank_ends(current), rules_of_current, std::ranges::any_of(rules_of_current, bound)});
    in_head = false;
    rules_of_current.clear();
  };
  const std::string text = read_file(file);
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    const auto at = rules.find(++number);
    if (at != rules.end() && !trim(line).starts_with("[[rule]]"))
      throw BadUse(file + ":" + std::to_string(number) +
                   ": only rules that are written as [[rule]] tables can be refreshed");
    const std::string with_end = std::string(line) + "\n";
    if (at != rules.end() || begins_table(line)) {
      close();
      current = std::move(comments) + with_end;
      comments.clear();
      if (at != rules.end()) rules_of_current = std::move(at->second);
    } else if (trim(line).starts_with('#')) {
      comments += with_end;
    } else {
      current += comments + with_end;
      comments.clear();
    }
  }
  current += comments;
  close();
  return out;
}

std::vector<Usage> to_refresh(const PinText& file, const std::vector<Usage>& logged, const Place& place) {
  const std::vector<Rule> rules = all_rules(file);
  const auto left_alone = [&](const Problem& problem) {  // a bound rule that is stale stays, and nothing comes in its place
    return std::ranges::any_of(file.blocks, [&](const PinBlock& block) {
      return block.bound && std::ranges::any_of(block.rules, [&](const Rule& r) {
               return stale(r, place) && same_gpu(r, place) && r.operation == problem.operation && r.problem.matches(problem);
             });
    });
  };
  std::vector<Problem> stale_problems;
  for (std::size_t i = 0; i < rules.size(); ++i)
    if (stale(rules[i], place))
      if (const auto problem = problem_of(rules[i]); problem && !left_alone(*problem) && !covered(rules, i, *problem, place))
        stale_problems.push_back(*problem);
  std::vector<Usage> all;
  for (const Usage& usage : logged)
    if ((!match(rules, usage.problem, place) && !left_alone(usage.problem)) ||
        std::ranges::find(stale_problems, usage.problem) != stale_problems.end())
      all.push_back(usage);
  for (const Problem& problem : stale_problems) {
    if (std::ranges::find(all, problem, &Usage::problem) != all.end()) continue;
    Usage& usage = all.emplace_back();
    usage.text = to_text(problem);
    usage.problem = problem;
    usage.api = "graph";
  }
  return all;
}

Refreshed refreshed(const PinText& file, const std::vector<FrozenRule>& new_rules,
                    const std::vector<FrozenRule>& general, const Place& place, bool keep) {
  const std::vector<Rule> rules = all_rules(file);
  std::vector<std::string> texts;  // of the new ones
  for (const auto* of : {&new_rules, &general})
    for (const FrozenRule& rule : *of)
      if (const auto pattern = parse_problem_pattern(rule.text))
        texts.push_back(with_operation(*pattern, rule.problem.operation));
  const auto made_anew = [&](const Rule& rule) {
    return std::ranges::find(texts, words_of(rule)) != texts.end();
  };
  const auto here_already = [&](const Rule& rule) {
    const auto problem = problem_of(rule);
    return problem && std::ranges::any_of(
                          rules, [&](const Rule& r) { return !stale(r, place) && problem_of(r) == problem; });
  };

  std::vector<FrozenRule> named = new_rules;
  for (FrozenRule& rule : named)
    if (const auto pattern = parse_problem_pattern(rule.text))
      for (const Rule& old : rules)
        if (!old.name.empty() && stale(old, place) && same_gpu(old, place) && words_of(old) == with_operation(*pattern, rule.problem.operation))
          rule.name = old.name;

  Refreshed out;
  std::vector<std::string> kept;
  std::optional<std::size_t> first_made_anew;
  std::size_t before_the_rest = 0;  // where the last rules begin that are for all of an operation
  for (const PinBlock& block : file.blocks) {
    const auto all = [&](auto&& holds) {
      return !block.rules.empty() && std::ranges::all_of(block.rules, holds);
    };
    if (!first_made_anew &&
        std::ranges::any_of(block.rules, [&](const Rule& r) { return stale(r, place) && made_anew(r); }))
      first_made_anew = kept.size();
    const bool gone = !keep && !block.bound && all([&](const Rule& r) {
      return stale(r, place) && same_gpu(r, place) && (made_anew(r) || here_already(r));
    });
    out.replaced += gone;
    if (gone) continue;
    if (!block.rules.empty()) {
      ++out.kept;
      const bool stays_stale = all([&](const Rule& r) { return stale(r, place) && same_gpu(r, place); });
      out.still_stale += stays_stale;
      out.bound += stays_stale && block.bound;
    }
    kept.push_back(block.text);
    if (!block.rules.empty() && !all([](const Rule& r) { return words_of(r) == name_of(r.operation); }))
      before_the_rest = kept.size();
  }
  out.added = new_rules.size() + general.size();
  const std::size_t at = std::min(first_made_anew.value_or(before_the_rest), before_the_rest);
  out.text = file.head;
  for (std::size_t i = 0; i <= kept.size(); ++i) {
    if (i == at) out.text += rules_text(named);
    if (i == before_the_rest) out.text += rules_text(general);
    if (i < kept.size()) out.text += "\n" + kept[i];
  }
  return out;
}

std::string summary_of(const Refreshed& is, const std::string& file) {
  const auto rules = [](std::size_t n) { return counted(n, "rule"); };
  return file + ": " + rules(is.kept) + " kept, " + rules(is.replaced) + " replaced, " +
         std::to_string(is.added) + " new" +
         (is.still_stale == 0
              ? ""
              : "; " + rules(is.still_stale) +
                    " of this GPU for another cuDNN stay, since nothing was tuned in their place (those "
                    "with * or a policy are for no single problem: a log of convpin run --record says which "
                    "there are)") +
         (is.bound == 0 ? ""
                        : "; " + rules(is.bound) +
                              " of them with require, workspace_limit or on_unsupported, which a tuned rule would not keep to: tune "
                              "without --refresh, by --deterministic, --tf32 or --workspace-limit, and give the new rule the same");
}

}  // namespace convpin::cli
