// diff: the same problems in several logs or pin files, and what runs each of them there.
#include <algorithm>
#include <map>
#include <optional>

#include "shim/model/text.hpp"
#include "tools/convpin/command.hpp"
#include "tools/convpin/configuration.hpp"
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

// What one side says of a problem.
struct Entry {
  std::string choice;
  std::optional<double> time_ms;
  std::uint64_t calls = 0;
};

struct Side {
  std::string name;
  std::string place;                     // "NVIDIA H200, cuDNN 9.19.0"
  std::map<std::string, Entry> entries;  // by the problem's text and API
  std::vector<std::string> order;        // the keys as they came
};

void add(Side& side, const std::string& key, const Entry& entry) {
  const auto [at, first] = side.entries.try_emplace(key, entry);
  if (first) {
    side.order.push_back(key);
  } else if (entry.choice != at->second.choice) {  // the same on two GPUs, say
    at->second.choice += " | " + entry.choice;
  }
}

// Of what a benchmark tried, what ran most counts.
Side side_of(const Log& log, const std::string& name) {
  Side side{name, "", {}, {}};
  std::vector<std::string> places;
  for (const Usage& usage : usages_of(log)) {
    if (usage.ran.empty() && !usage.failed) continue;
    const LoggedCandidate* is = usage.chosen();
    add(side, usage.text + "  " + usage.api,
        {usage.ran.empty() ? "fails" : usage.ran.front().choice.ran, is ? is->time_ms : std::nullopt, usage.calls});
    const std::string place = usage.gpu + ", cuDNN " + usage.cudnn;
    if (std::ranges::find(places, place) == places.end()) places.push_back(place);
  }
  side.place = join(places, " and ");
  return side;
}

Side side_of(const Settings& settings, const std::string& name) {
  Side side{name, "", {}, {}};
  std::vector<std::string> places;
  for (const Rule& rule : settings.rules) {
    const std::string text = to_text(rule.problem);
    add(side, rule.problem.operation ? text : name_of(rule.operation) + (text.empty() ? "" : " " + text), {request_text(rule), {}, 0});
    const std::string place = place_words(rule.match);
    if (!place.empty() && std::ranges::find(places, place) == places.end()) places.push_back(place);
  }
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

const char* verdict(const std::vector<const Entry*>& of) {
  if (!of.front()) return "appears";
  if (std::ranges::count(of, nullptr) > 0) return of.back() ? "missing" : "vanishes";
  return std::ranges::all_of(of, [&](const Entry* e) { return e->choice == of.front()->choice; }) ? "same" : "changed";
}

int diff(const DiffOptions& options) {
  const std::vector<Side> sides = sides_of(options.files);
  std::vector<std::string> keys;
  for (const Side& side : sides)
    for (const std::string& key : side.order)
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  bool any_time = false;
  for (const Side& side : sides)
    any_time = any_time || std::ranges::any_of(side.entries, [](const auto& e) { return e.second.time_ms.has_value(); });

  // A, B, C ...: what they stand for is said once.
  const auto letter = [](std::size_t i) { return i < 26 ? std::string(1, static_cast<char>('A' + i)) : std::to_string(i + 1); };
  Table table{{"verdict", "problem"}, {}};
  for (std::size_t i = 0; i < sides.size(); ++i) table.columns.push_back(letter(i));
  for (std::size_t i = 0; any_time && i < sides.size(); ++i) table.columns.push_back(letter(i) + "_time_ms");
  std::map<std::string, int> verdicts;
  for (const std::string& key : keys) {
    std::vector<const Entry*> of;
    for (const Side& side : sides) {
      const auto at = side.entries.find(key);
      of.push_back(at == side.entries.end() ? nullptr : &at->second);
    }
    const std::string is = verdict(of);
    ++verdicts[is];
    if (is == "same" && !options.all) continue;
    std::vector<Json> row{is, key};
    for (const Entry* entry : of) row.push_back(entry ? Json(entry->choice) : Json());
    for (std::size_t i = 0; any_time && i < of.size(); ++i) row.push_back(of[i] && of[i]->time_ms ? Json(*of[i]->time_ms) : Json());
    table.rows.push_back(std::move(row));
  }

  Json legend = Json::object();
  for (std::size_t i = 0; i < sides.size(); ++i)
    legend[letter(i)] = {{"name", sides[i].name}, {"place", sides[i].place}, {"problems", sides[i].order.size()}};
  if (options.json) {
    print(Json{{"sides", legend}, {"problems", table.json()}}.dump(2) + "\n");
  } else if (!table.rows.empty()) {
    print(table.text());
  }
  for (std::size_t i = 0; i < sides.size(); ++i)
    say(letter(i) + ": " + sides[i].name + (sides[i].place.empty() ? "" : ", " + sides[i].place) + ", " +
        std::to_string(sides[i].order.size()) + " problems");
  if (std::ranges::any_of(sides, [&](const Side& s) { return s.place != sides.front().place; }))
    say("they are of different GPUs or cuDNN versions, where an engine's number may mean different things");
  std::vector<std::string> counts;
  for (const auto& [what, count] : verdicts) counts.push_back(std::to_string(count) + " " + what);
  say(counts.empty() ? "no convolutions" : join(counts, ", "));
  return verdicts.empty() || (verdicts.size() == 1 && verdicts.contains("same")) ? kYes : kNo;
}

}  // namespace

Action declare_diff(CLI::App& app, const Program&) {
  auto options = std::make_shared<DiffOptions>();
  app.add_option("files", options->files, "logs or pin files; of one log alone, its runs are compared")->required()->type_name("FILE");
  app.add_flag("--all", options->all, "also what is the same everywhere");
  app.add_flag("--json", options->json, "as JSON");
  return [options] { return diff(*options); };
}

}  // namespace convpin::cli
