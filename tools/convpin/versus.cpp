#include "tools/convpin/versus.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>

#include "shim/model/text.hpp"
#include "tools/convpin/child.hpp"
#include "tools/convpin/command.hpp"
#include "tools/convpin/counted.hpp"
#include "tools/convpin/files.hpp"
#include "tools/convpin/timing.hpp"

namespace convpin::cli {
namespace {

struct Key {
  std::string problem, candidate;
  bool operator==(const Key&) const = default;
};

// What one side says of one candidate.
struct Found {
  std::vector<double> times, iqrs, errors;
  Json engine, reason;
  bool ran() const { return !times.empty(); }
  double median() const { return timing_of(times).median_ms; }
  double spread() const {
    const auto [least, most] = std::ranges::minmax(times);
    return iqrs.empty() ? most - least : std::max(most - least, timing_of(iqrs).median_ms);
  }
};

std::vector<Key> keys_of(const Side& a, const Side& b) {
  std::vector<Key> keys;
  for (const Side* side : {&a, &b})
    for (const Json& turn : side->turns)
      for (const Json& row : turn)
        for (const Json& candidate : row.at("candidate"))
          if (const Key key{row.at("problem"), candidate}; std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  return keys;
}

Found find(const Side& side, const Key& key) {
  Found found;
  std::size_t turns = 0;
  for (const Json& turn : side.turns)
    for (const Json& row : turn) {
      if (row.at("problem") != key.problem || std::ranges::find(row.at("candidate"), Json(key.candidate)) == row.at("candidate").end())
        continue;
      ++turns;
      found.engine = row.at("engine");
      if (row.at("status") != "ok" || !row.at("time_ms").is_number()) {
        found.reason = row.at("reason");
        continue;
      }
      found.times.push_back(row.at("time_ms"));
      if (row.at("time_iqr_ms").is_number()) found.iqrs.push_back(row.at("time_iqr_ms"));
      if (row.at("error").is_number()) found.errors.push_back(row.at("error"));
    }
  // What fails in one turn of several, or takes the process with it, is not what one would upgrade to.
  if (turns > 0 && turns < side.turns.size() && found.reason.is_null())
    found.reason = "missing in " + std::to_string(side.turns.size() - turns) + " of " + counted(side.turns.size(), "turn");
  if (!found.reason.is_null()) found.times.clear();
  return found;
}

std::string verdict_of(const Found& a, const Found& b) {
  if (!a.ran() || !b.ran()) return a.ran() ? "only A" : b.ran() ? "only B" : "neither";
  const double difference = b.median() - a.median();
  if (std::abs(difference) <= std::max({a.spread(), b.spread(), kDiffers * std::min(a.median(), b.median())})) return "same";
  return difference > 0 ? "slower" : "faster";
}

// The library's own folder comes first in the search for its parts, or another copy's may be taken.
std::string search_path(const std::string& where) {
  namespace fs = std::filesystem;
  const fs::path path = fs::absolute(where).lexically_normal();
  std::string folders = fs::is_directory(path) ? path.string() + ":" + (path / "lib").string() + ":" + (path / "lib64").string()
                                               : path.parent_path().string();
  if (const char* now = std::getenv("LD_LIBRARY_PATH"); now && *now) folders += std::string(":") + now;
  return folders;
}

// `said`: the lines of turns before, which are not said again.
Json turn(const Side& side, const std::vector<std::string>& arguments, std::set<std::string, std::less<>>& said) {
  std::vector<std::string> command{std::filesystem::read_symlink("/proc/self/exe"), "replay", "--json", "--cudnn", side.where};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const Ended ended = run_child(command, {{"LD_LIBRARY_PATH", search_path(side.where)}}, Stderr::Apart);
  for (const std::string_view line : split(ended.errors, '\n'))
    if (!line.empty() && said.emplace(line).second) std::cerr << line << '\n';
  if (WIFSIGNALED(ended.status)) {
    say("under " + side.where + " a run was ended by signal " + std::to_string(WTERMSIG(ended.status)));
    return Json::array();
  }
  Json rows = Json::parse(ended.output, nullptr, false);
  if (WEXITSTATUS(ended.status) == kBadUse || !rows.is_array()) throw BadUse("under " + side.where + " it could not be done");
  return rows;
}

}  // namespace

std::string bound_words() { return "by more than " + std::to_string(std::lround(100 * kDiffers)) + " % and the spread"; }

Versus compare(const Side& a, const Side& b) {
  Versus out;
  out.table.columns = {"problem", "candidate", "engine_a", "engine_b", "time_ms_a", "time_ms_b", "spread_ms_a", "spread_ms_b",
                       "ratio",   "error_a",   "error_b",  "verdict",  "reason_a",  "reason_b"};
  for (const Key& key : keys_of(a, b)) {
    const Found in_a = find(a, key), in_b = find(b, key);
    const std::string verdict = verdict_of(in_a, in_b);
    const auto if_ran = [](const Found& f, double value) { return f.ran() ? Json(value) : Json(); };
    const auto time = [&](const Found& f) { return f.ran() ? Json(f.median()) : Json(); };
    const auto spread = [&](const Found& f) { return f.ran() ? Json(f.spread()) : Json(); };
    const auto error = [&](const Found& f) { return f.errors.empty() ? Json() : if_ran(f, std::ranges::max(f.errors)); };
    const double ratio = in_a.ran() && in_b.ran() && in_a.median() > 0 ? in_b.median() / in_a.median() : 0;
    out.any_ran = out.any_ran || in_a.ran() || in_b.ran();
    out.convicted = out.convicted || verdict == "only A" || verdict == "slower";
    out.table.rows.push_back({key.problem, key.candidate, in_a.engine, in_b.engine, time(in_a), time(in_b), spread(in_a), spread(in_b),
                              ratio > 0 ? Json(ratio) : Json(), error(in_a), error(in_b), verdict, in_a.reason, in_b.reason});
  }
  return out;
}

void take_turns(Side& a, Side& b, int alternations, const std::vector<std::string>& arguments) {
  std::set<std::string, std::less<>> said;
  for (int i = 0; i < alternations; ++i)
    for (Side* side : {&a, &b}) side->turns.push_back(turn(*side, arguments, said));
}

}  // namespace convpin::cli
