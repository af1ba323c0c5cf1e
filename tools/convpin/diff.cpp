// diff: the same problems in several logs or pin files, and what runs each of them there.
#include <algorithm>
#include <map>
#include <optional>

#include "shim/model/record.hpp"
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

struct DiffOptions {
  std::vector<std::string> files;
  bool all = false, json = false;
};

// What one side says of one thing: what ran a problem, what a rule asks for, what a denial forbids, what a setting is.
struct Entry {
  std::string choice;
  std::optional<double> time_ms = {};
  std::string place = {};  // of a rule or a denial: the GPU and cuDNN that it is for
  std::string whole = {};  // the choice with the place
  std::size_t parts = 1;   // rules or denials for the same: the texts are theirs, joined

  bool placed() const { return parts > 1 && place.find_first_not_of(" |") != place.npos; }  // only the places tell them apart
};

// A problem's text and API; in a pin file what a rule or denial is for, and which of them it is, or a setting's name.
struct Key {
  std::string problem, kind;
  auto operator<=>(const Key&) const = default;
};

struct Side {
  std::string name;
  bool log = false;
  std::string place = {};  // "NVIDIA H200, cuDNN 9.19.0"
  std::map<Key, Entry> entries = {};
  std::vector<Key> order = {};   // the keys as they came
  std::vector<Rule> rules = {};  // of a pin file
};

void add(Side& side, const Key& key, const Entry& entry) {
  const auto [at, first] = side.entries.try_emplace(key, entry);
  if (first) {
    side.order.push_back(key);
  } else if (entry.choice != at->second.choice) {  // the same on two GPUs, say
    at->second.choice += " | " + entry.choice;
  }
}

void add_place(std::vector<std::string>& places, const std::string& place) {
  if (!place.empty() && std::ranges::find(places, place) == places.end()) places.push_back(place);
}

// Of what a benchmark tried, what ran most counts.
Side side_of(const Log& log, const std::string& name) {
  Side side{name, true};
  std::vector<std::string> places;
  for (const Usage& usage : usages_of(log)) {
    if (usage.ran.empty() && !usage.failed) continue;
    const LoggedCandidate* is = usage.chosen();
    add(side, {usage.text, usage.api}, {usage.ran.empty() ? "fails" : usage.ran.front().choice.ran, is ? is->time_ms : std::nullopt});
    add_place(places, usage.gpu + ", cuDNN " + usage.cudnn);
  }
  side.place = join(places, " and ");
  return side;
}

// All that a rule asks for, with what the settings say where it is silent.
std::string asked_by(const Rule& rule) {
  std::vector<std::string> words{request_text(rule)};
  if (rule.policy != PolicyKind::None && rule.min_gain != Rule().min_gain) words.push_back("min_gain " + four_digits(rule.min_gain));
  if (rule.asks() && rule.workspace_limit) words.push_back("workspace at most " + counted(*rule.workspace_limit, "byte"));
  if (rule.asks() && rule.on_unsupported == OnUnsupported::Error) words.emplace_back("else it fails");
  return join(words, "; ");
}

// A file's rules or denials for the same, each for a place of its own or behind those that come first. Only where they are for
// the same place their order counts.
using Parts = std::map<Key, std::vector<Entry>>;
void add_all(Side& side, Parts& parts, const std::vector<Key>& order) {
  for (const Key& key : order) {
    std::vector<Entry>& entries = parts[key];
    std::ranges::stable_sort(entries, {}, &Entry::place);
    std::vector<std::string> choices, places, wholes;
    for (const Entry& entry : entries) {
      choices.push_back(entry.choice);
      places.push_back(entry.place);
      wholes.push_back(entry.choice + " (" + (entry.place.empty() ? "anywhere" : entry.place) + ")");
    }
    add(side, key, {join(choices, " | "), {}, join(places, " | "), join(wholes, " | "), entries.size()});
  }
}

Side side_of(const Settings& settings, const std::string& name) {
  Side side{name, false};
  side.rules = settings.rules;
  // What is logged and profiled runs nothing else. The files of errata are denials by now.
  for (const char* decides : {"defaults.on_miss", "defaults.on_unsupported", "workspace_limit", "strict"})
    for (const auto& [key, value] : settings.non_default)
      if (key == decides) add(side, {"", key}, {value});
  std::vector<std::string> places;
  Parts parts;
  std::vector<Key> order;
  const auto part = [&](const Key& key, const std::string& choice, const Match& match) {
    if (parts[key].empty()) order.push_back(key);
    parts[key].push_back({choice, {}, place_words(match)});
    add_place(places, place_words(match));
  };
  for (const Rule& rule : settings.rules) part({what_for(rule.operation, rule.problem, rule.match), "rule"}, asked_by(rule), rule.match);
  std::vector<const Denial*> denials;  // their order says nothing
  for (const Denial& denial : settings.denials) denials.push_back(&denial);
  std::ranges::stable_sort(denials, {}, [](const Denial* d) { return denied_text(*d); });
  for (const Denial* d : denials) part({what_for(d->operation, d->problem, d->match), "deny"}, "never " + denied_text(*d), d->match);
  add_all(side, parts, order);
  side.place = join(places, " and ");
  return side;
}

bool is_log(const std::string& text) { return trim(text).starts_with('{'); }

// Every file is a side; of one log alone, every run.
std::vector<Side> sides_of(const std::vector<std::string>& files) {
  std::vector<Side> sides;
  std::optional<bool> logs;
  for (const std::string& file : files) {
    const std::string text = read_file(file);
    const bool is = is_log(text) || trim(text).empty();
    if (logs && *logs != is)
      throw BadUse("'" + file + "' is a " + (is ? "log and the others are pin files" : "pin file and the others are logs") +
                   ": convpin check FILE --log LOG compares the two kinds");
    logs = is;
    if (!is) {
      const Settings settings = load_files({file});
      if (!settings.errors.empty()) throw BadUse(join(settings.errors, "\n"));
      sides.push_back(side_of(settings, file));
      continue;
    }
    Log log;
    read_log(text, file, log);
    for (const std::string& warning : log.warnings) say(warning);
    if (files.size() > 1) {
      sides.push_back(side_of(log, file));
      continue;
    }
    for (const Run& run : log.runs) {
      Log one;
      one.runs.push_back(run);
      sides.push_back(side_of(one, run.rank >= 0 ? "rank " + std::to_string(run.rank) + " (" + run.id + ")" : run.id));
    }
  }
  if (sides.size() < 2) throw BadUse("there is nothing to compare: two files, or one log with several runs in it, are needed");
  return sides;
}

// Where those that have it differ, that counts before that others lack it.
const char* verdict(const std::vector<const Entry*>& of) {
  const Entry* has = *std::ranges::find_if(of, [](const Entry* e) { return e != nullptr; });
  const auto all = [&](const std::string Entry::*what) {
    return std::ranges::all_of(of, [&](const Entry* e) { return !e || e->*what == has->*what; });
  };
  if (!all(&Entry::choice)) return "changed";
  if (!all(&Entry::place)) return "elsewhere";
  if (!of.front()) return "appears";
  if (std::ranges::count(of, nullptr) > 0) return of.back() ? "missing" : "vanishes";
  return "same";
}

struct Compared {
  Table table;
  std::map<std::string, int> verdicts;  // how many of each, also of those that are not in the table
  bool in_common = false;               // at least one thing is said by two sides
};

// A, B, C ...: what they stand for is said once.
std::string letter(std::size_t i) { return i < 26 ? std::string(1, static_cast<char>('A' + i)) : std::to_string(i + 1); }

Compared compare(const std::vector<Side>& sides, bool also_same) {
  std::vector<Key> keys;
  for (const Side& side : sides)
    for (const Key& key : side.order)
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  bool any_time = false;
  for (const Side& side : sides)
    any_time = any_time || std::ranges::any_of(side.entries, [](const auto& e) { return e.second.time_ms.has_value(); });
  Compared out;
  if (sides.front().log) {
    out.table.columns = {"verdict", "problem", "api"};
  } else {
    out.table.columns = {"verdict", "kind", "problem"};
  }
  for (std::size_t i = 0; i < sides.size(); ++i) out.table.columns.push_back(letter(i));
  for (std::size_t i = 0; any_time && i < sides.size(); ++i) out.table.columns.push_back(letter(i) + "_time_ms");
  for (const Key& key : keys) {
    std::vector<const Entry*> of;
    for (const Side& side : sides) {
      const auto at = side.entries.find(key);
      of.push_back(at == side.entries.end() ? nullptr : &at->second);
    }
    const std::string is = verdict(of);
    ++out.verdicts[is];
    out.in_common = out.in_common || of.size() - static_cast<std::size_t>(std::ranges::count(of, nullptr)) > 1;
    if (is == "same" && !also_same) continue;
    const Json problem = key.problem.empty() ? Json() : Json(key.problem);
    std::vector<Json> row{is, sides.front().log ? problem : Json(key.kind), sides.front().log ? Json(key.kind) : problem};
    for (const Entry* e : of) row.push_back(!e ? Json() : Json(is == "elsewhere" || e->placed() ? e->whole : e->choice));
    for (std::size_t i = 0; any_time && i < of.size(); ++i) row.push_back(of[i] && of[i]->time_ms ? Json(*of[i]->time_ms) : Json());
    out.table.rows.push_back(std::move(row));
  }
  return out;
}

std::string words_of(const Rule& rule) { return whole_for(rule.operation, rule.problem, rule.match); }

// Rules that both files have, the other way round, where something might match both and they ask for different things.
void add_order(const Side& a, const Side& b, std::size_t column, Compared& to) {
  const auto place_in_b = [&](const Rule& rule) { return std::ranges::find(b.rules, words_of(rule), words_of); };
  std::vector<decltype(b.rules.begin())> in_b;
  for (const Rule& rule : a.rules) in_b.push_back(place_in_b(rule));
  for (std::size_t later = 0; later < a.rules.size(); ++later)
    for (std::size_t first = 0; first < later && in_b[later] != b.rules.end(); ++first) {
      if (in_b[first] == b.rules.end() || in_b[first] <= in_b[later] || asked_by(a.rules[first]) == asked_by(a.rules[later]) ||
          !may_meet(a.rules[first], a.rules[later]))
        continue;
      std::vector<Json> row(to.table.columns.size());
      row[0] = "order", row[1] = "rule", row[2] = words_of(a.rules[later]);
      row[3] = "behind " + words_of(a.rules[first]), row[3 + column] = "before it";
      to.table.rows.push_back(std::move(row));
      ++to.verdicts["order"];
      break;  // one is enough to know
    }
}

int diff(const DiffOptions& options) {
  const std::vector<Side> sides = sides_of(options.files);
  const bool logs = sides.front().log;
  Compared is = compare(sides, options.all);
  for (std::size_t i = 1; i < sides.size(); ++i) add_order(sides[0], sides[i], i, is);
  Json legend = Json::object();
  for (std::size_t i = 0; i < sides.size(); ++i)
    legend[letter(i)] = {{"name", sides[i].name}, {"place", sides[i].place}, {logs ? "problems" : "entries", sides[i].order.size()}};
  if (options.json) {
    print(Json{{"sides", legend}, {"problems", is.table.json()}}.dump(2) + "\n");
  } else if (!is.table.rows.empty()) {
    print(is.table.text());
  }
  for (std::size_t i = 0; i < sides.size(); ++i)
    say(letter(i) + ": " + sides[i].name + (sides[i].place.empty() ? "" : ", " + sides[i].place) + ", " +
        (logs ? counted(sides[i].order.size(), "problem") : counted(sides[i].order.size(), "entry", "entries")));
  if (std::ranges::any_of(sides, [&](const Side& s) { return s.place != sides.front().place; }))
    say("they are of different GPUs or cuDNN versions, where an engine's number may mean different things");
  if (is.verdicts.empty()) {
    say(logs ? "no convolutions" : "no rules, no denials");
    return kYes;
  }
  std::vector<std::string> counts;
  for (const auto& [what, count] : is.verdicts) counts.push_back(std::to_string(count) + " " + what);
  // A rule that one file lacks is a choice that it doesn't make; a problem that a run didn't meet is none.
  const bool alike = is.verdicts.size() == 1 && is.verdicts.contains("same");
  const bool agree = alike || (logs && is.in_common && !is.verdicts.contains("changed"));
  say(join(counts, ", ") + (alike                   ? ""
                            : agree                 ? ": what they have in common runs the same"
                            : logs && !is.in_common ? ": they have no problem in common"
                                                    : ": choices differ"));
  return agree ? kYes : kNo;
}

}  // namespace

Action declare_diff(CLI::App& app, const Program&) {
  auto options = std::make_shared<DiffOptions>();
  app.add_option("files", options->files,
                 "logs (exit 1 where a problem that they have in common is run by different things, or they have none), or pin files: "
                 "their rules, denials and defaults (exit 1 at any difference); of one log alone, its runs are compared")
      ->required()
      ->type_name("FILE");
  app.add_flag("--all", options->all, "also what is the same everywhere");
  app.add_flag("--json", options->json, "as JSON");
  return [options] { return diff(*options); };
}

}  // namespace convpin::cli
