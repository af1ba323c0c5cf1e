#include "tools/convpin/freeze.hpp"

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "shim/model/record.hpp"
#include "shim/model/text.hpp"
#include "tools/convpin/command.hpp"
#include "tools/convpin/counted.hpp"
#include "tools/convpin/files.hpp"

namespace convpin::cli {
namespace {

// As `algo` takes it: the engine with its knobs, or the algorithm's name; empty where no rule can say it.
std::string request_for(const Usage& usage, const Ran& ran) {
  const LoggedCandidate& plan = ran.choice.plan;
  const std::string name = plan.engine.engine < 0 ? algorithm_name(usage.problem.operation, plan.algorithm) : to_tag(plan.engine);
  return !name.empty() && parse_request(usage.problem.operation, name) ? name : std::string();
}

std::vector<std::string> comments_for(const Usage& usage, const Ran& ran) {
  std::string first = ran.calls > 0 ? counted(ran.calls, "call") + " (" + usage.api + ")" : usage.api + " API";  // of a refreshed file
  if (!usage.labels.empty()) first += ": " + join(usage.labels, ", ");
  const LoggedCandidate* is = usage.chosen();
  if (is->time_ms) first += "; " + four_digits(*is->time_ms) + " ms";
  if (is->workspace_bytes) first += "; workspace " + counted(*is->workspace_bytes, "byte");
  std::vector<std::string> comments{first};
  if (!ran.choice.reason.empty()) comments.push_back(ran.choice.reason);
  if (ran.choice.kind == ChoiceKind::Set) comments.push_back("as asked for by " + ran.choice.rule + ": " + ran.choice.requested);
  if (usage.ran.size() > 1) {
    std::vector<std::string> others;
    for (const Ran& other : usage.ran)
      if (&other != &ran) others.push_back(other.choice.ran + " (" + counted(other.calls, "call") + ")");
    if (others.size() > 4) others = {others[0], others[1], others[2], counted(others.size() - 3, "other")};  // a benchmark's trials
    comments.push_back("also ran: " + join(others, ", "));
  }
  return comments;
}

std::string comment(const std::string& line) { return "# " + one_line(line, 2000) + "\n"; }

std::size_t parts_in(const std::string& text) { return static_cast<std::size_t>(std::ranges::count(text, '=')); }

}  // namespace

std::string pattern_text(const Problem& problem) { return to_text(problem) + (problem.fused_count == 0 ? " fused=none" : ""); }

std::vector<FrozenRule> freeze(const std::vector<Usage>& usages, std::vector<std::string>& left_out) {
  std::vector<FrozenRule> rules;
  for (const Usage& usage : usages) {
    const std::string request = usage.ran.empty() ? "" : request_for(usage, usage.ran.front());
    if (request.empty()) {
      left_out.push_back(usage.text + ": " +
                         (!usage.ran.empty() ? "no rule can name " + usage.ran.front().choice.ran
                          : usage.failed     ? "it failed: " + usage.failed->reason
                                             : "the log doesn't say what ran"));
      continue;
    }
    const std::string text = pattern_text(usage.problem);
    auto rule = std::ranges::find_if(
        rules, [&](const FrozenRule& r) { return std::tie(r.text, r.gpu, r.cudnn) == std::tie(text, usage.gpu, usage.cudnn); });
    if (rule == rules.end()) rule = rules.insert(rules.end(), {usage.problem, text, usage.gpu, usage.cudnn, {}, {}});
    // Through both APIs: the legacy one can't take an engine, so that it goes on to the second.
    rule->algo.insert(usage.api == "graph" ? rule->algo.begin() : rule->algo.end(), request);
    for (std::string& comment : comments_for(usage, usage.ran.front())) rule->comments.push_back(std::move(comment));
  }
  // A text that matches another problem too has fewer parts than that one's: what is unusual about it is not in it.
  std::ranges::stable_sort(rules, std::greater{}, [](const FrozenRule& r) { return parts_in(r.text); });
  return rules;
}

std::string toml_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (byte < 0x20 || byte == 0x7f) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04X", byte);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string rules_text(const std::vector<FrozenRule>& rules) {
  std::string file;
  for (const FrozenRule& rule : rules) {
    file += "\n[[rule]]\n";
    for (const std::string& line : rule.comments) file += comment(line);
    std::vector<std::string> names, keys;
    for (const std::string& name : rule.algo) names.push_back(toml_string(name));
    if (!rule.name.empty()) file += "name = " + toml_string(rule.name) + "\n";
    file += "problem = " + toml_string(rule.text) + "\n";
    file += "algo = " + (names.size() == 1 ? names[0] : "[" + join(names, ", ") + "]") + "\n";
    if (!rule.gpu.empty()) keys.push_back("device = " + toml_string(rule.gpu));
    if (!rule.cudnn.empty()) keys.push_back("cudnn = " + toml_string(rule.cudnn));
    if (!keys.empty()) file += "match = { " + join(keys, ", ") + " }\n";
  }
  return file;
}

std::string pin_file(const std::vector<FrozenRule>& rules, const std::vector<std::string>& heading) {
  std::string file;
  for (const std::string& line : heading) file += comment(line);
  return file + "version = 1\n" + rules_text(rules);
}

void say_written(std::size_t rules, const std::string& output) {
  say(counted(rules, "rule") + (output.empty() ? "" : " in " + output + "; convpin run --config " + output + " -- ... uses them"));
}

Action declare_freeze(CLI::App& app, const Program&) {
  auto logs = std::make_shared<std::vector<std::string>>();
  app.add_option("log", *logs, "logs of convpin run --record; - is standard input")->required()->type_name("FILE");
  const auto output = declare_output(app, "the rules");
  return [logs, output] {
    keep_apart(*output, *logs);
    const Log log = read_logs(*logs);
    for (const std::string& warning : log.warnings) say(warning);
    std::vector<Usage> usages = usages_of(log);
    sort_by_weight(usages);
    std::vector<std::string> left_out;
    const std::vector<FrozenRule> rules = freeze(usages, left_out);
    for (const std::string& sentence : left_out) say("left out: " + sentence);
    if (rules.empty()) {
      say("no convolution ran in " + join(*logs, ", ") + ", so there is nothing to freeze");
      return kNo;
    }
    write_output(*output,
                 pin_file(rules, {"What ran in " + join(*logs, ", ") + ", by convpin freeze.",
                                  "Each rule holds for this GPU and this cuDNN alone: an engine's number means another thing elsewhere."}));
    say_written(rules.size(), *output);
    return kYes;
  };
}

}  // namespace convpin::cli
