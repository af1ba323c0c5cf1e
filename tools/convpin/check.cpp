// check: is a configuration right, what would each of its rules match, and which are for another GPU or cuDNN.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "shim/model/text.hpp"
#include "tools/convpin/command.hpp"
#include "tools/convpin/configuration.hpp"
#include "tools/convpin/counted.hpp"
#include "tools/convpin/covers.hpp"
#include "tools/convpin/files.hpp"
#include "tools/convpin/pattern_words.hpp"
#include "tools/convpin/table.hpp"
#include "tools/convpin/usage.hpp"

namespace convpin::cli {
namespace {

struct CheckOptions {
  std::vector<std::string> config, logs;
  std::string device, cudnn;
  bool json = false;
};

struct Answer {
  Table rules{{"rule", "for", "asks", "problems", "calls", "note"}, {}};
  Table problems{{"problem", "api", "calls", "ran", "rule", "asks"}, {}};
  std::map<std::string, int> stale;  // how many of each file's rules
};

// Where the rules would be used: as the options say, else as the logs do.
std::vector<Place> places_of(const CheckOptions& options, const std::vector<Usage>& usages) {
  std::vector<Place> places;
  for (const Usage& usage : usages) {
    const Place place = place_of(usage);
    const auto same = [&](const Place& p) { return p.device == place.device && p.cudnn_version == place.cudnn_version; };
    if (std::ranges::none_of(places, same)) places.push_back(place);
  }
  if (places.empty()) places.emplace_back();
  for (Place& place : places) {
    if (!options.device.empty()) place.device = options.device;
    if (!options.cudnn.empty()) place.cudnn_version = version_from(options.cudnn);
  }
  return places;
}

// Empty where the rule holds in one of the places. What is not known of a place speaks against no rule.
std::string staleness(const Rule& rule, const std::vector<Place>& places) {
  std::string why;
  for (const Place& place : places) {
    Rule known = rule;
    if (place.device.empty()) known.match.devices.clear();
    if (place.cudnn_version == 0) known.match.cudnn.clear();
    if (!stale(known, place)) return {};
    if (why.empty()) why = why_stale(known, place);
  }
  return why;
}

// On the legacy API an engine is nothing, and what the rule names behind it is tried; with nothing there it can't be met.
bool only_for_graphs(const Rule& rule) {
  return !rule.requests.empty() && std::ranges::all_of(rule.requests, [](const Request& r) { return r.engine.engine >= 0; });
}

// Why the rule is never come to, whatever the program; empty where it may be.
std::string why_dead(const std::vector<Rule>& rules, std::size_t at) {
  if (contradicts_itself(rules[at])) return "never matches: no convolution is all that its problem and its match ask for";
  for (std::size_t i = 0; i < at; ++i) {
    if (!covers(rules[i], rules[at])) continue;
    const std::string& first = rules[i].label() == rules[at].label() ? rules[i].source : rules[i].label();
    return "never matches: " + first + " comes first, and matches all that it would";
  }
  return {};
}

Answer answer(const Settings& settings, const CheckOptions& options, const std::vector<Usage>& usages) {
  Answer a;
  const auto places = places_of(options, usages);
  std::vector<int> problems(settings.rules.size()), legacy(settings.rules.size());
  std::vector<std::uint64_t> calls(settings.rules.size());
  for (const Usage& usage : usages) {
    Place place = place_of(usage);
    if (!options.device.empty()) place.device = options.device;
    if (!options.cudnn.empty()) place.cudnn_version = version_from(options.cudnn);
    const Rule* rule = match(settings.rules, usage.problem, place);
    if (rule) {
      const auto at = static_cast<std::size_t>(rule - settings.rules.data());
      ++problems[at];
      legacy[at] += usage.api == "legacy" ? 1 : 0;
      calls[at] += usage.calls;
    }
    a.problems.rows.push_back({usage.text, usage.api, usage.calls, usage.ran.empty() ? Json() : Json(usage.ran.front().choice.ran),
                               rule ? Json(rule->label()) : Json(), rule ? Json(request_text(*rule)) : Json()});
  }
  const bool against_log = !options.logs.empty();
  for (std::size_t i = 0; i < settings.rules.size(); ++i) {
    const Rule& rule = settings.rules[i];
    const std::string why = staleness(rule, places), dead = why_dead(settings.rules, i);
    std::vector<std::string> notes;
    if (!why.empty()) notes.push_back("stale: " + why);
    if (!dead.empty()) notes.push_back(dead);
    if (notes.empty() && against_log && problems[i] == 0) notes.emplace_back("matches nothing in the log");
    if (legacy[i] > 0 && only_for_graphs(rule))
      notes.push_back(counted(legacy[i], "of its problems is", "of its problems are") +
                      " of the legacy API, which takes algorithms and no engines: " +
                      (rule.on_unsupported == OnUnsupported::Error ? (legacy[i] == 1 ? "it fails" : "they fail")
                                                                   : "the framework's choice runs there"));
    if (!why.empty()) ++a.stale[file_of(rule)];
    a.rules.rows.push_back({rule.label(), whole_for(rule.operation, rule.problem, rule.match), request_text(rule),
                            against_log ? Json(problems[i]) : Json(), against_log ? Json(calls[i]) : Json(),
                            notes.empty() ? Json() : Json(join(notes, "; "))});
  }
  for (const Denial& denial : settings.denials)
    a.rules.rows.push_back({denial.source,
                            whole_for(denial.operation, denial.problem, denial.match),
                            "never " + denied_text(denial),
                            {},
                            {},
                            denial.reason.empty() ? Json() : Json(denial.reason)});
  return a;
}

int check(const CheckOptions& options) {
  if (!options.cudnn.empty() && version_from(options.cudnn) == 0)
    throw BadUse("--cudnn: " + quote(options.cudnn) + " is not a version; 9.19.0 is one");
  const auto environment = [](const char* name) { return std::getenv(name); };
  if (const char* files = environment("CONVPIN_CONFIG"); files && options.config.empty()) check_readable(files, "CONVPIN_CONFIG: ");
  const Settings settings =
      options.config.empty() ? load_settings(environment, std::filesystem::current_path()) : load_files(options.config);
  Log log;
  if (!options.logs.empty()) log = read_logs(options.logs);
  for (const std::string& warning : log.warnings) say(warning);
  const Answer a = answer(settings, options, usages_of(log));
  if (options.json) {
    print(Json{{"errors", settings.errors}, {"rules", a.rules.json()}, {"problems", a.problems.json()}}.dump(2) + "\n");
  } else if (settings.errors.empty()) {
    print(a.rules.rows.empty() ? "no rules\n" : a.rules.text());
    if (!options.logs.empty()) print("\n" + a.problems.text());
  }
  for (const std::string& error : settings.errors) say(error);
  const auto uncovered = std::ranges::count_if(a.problems.rows, [](const auto& row) { return row[4].is_null(); });
  if (settings.errors.empty() && uncovered > 0)
    say(std::to_string(uncovered) + " of " + counted(a.problems.rows.size(), "problem") + (uncovered == 1 ? " is" : " are") +
        " covered by no rule");
  for (const auto& [file, count] : a.stale)
    say(file + ": " + std::to_string(count) + " of " + counted(settings.rules.size(), "rule") +
        (count == 1 ? " is stale and would not be applied; where it" : " are stale and would not be applied; where they") +
        " should be: " + mending_command(file) + " (rules with * also need a log of convpin run --record, named before -o)");
  return settings.errors.empty() && a.stale.empty() ? kYes : kNo;
}

}  // namespace

Action declare_check(CLI::App& app, const Program&) {
  auto options = std::make_shared<CheckOptions>();
  app.add_option("config", options->config, "TOML files, as in CONVPIN_CONFIG; without any: what the environment says")->type_name("FILE");
  app.add_option("--log", options->logs, "a log whose problems the rules are held against (repeatable)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--device", options->device, "the GPU's name, where another is meant than the log's")->type_name("NAME");
  app.add_option("--cudnn", options->cudnn, "cuDNN's version, where another is meant than the log's")->type_name("VERSION");
  app.add_flag("--json", options->json, "as JSON");
  return [options] { return check(*options); };
}

}  // namespace convpin::cli
