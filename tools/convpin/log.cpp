#include "tools/convpin/log.hpp"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>

#include "shim/model/text.hpp"
#include "tools/convpin/counted.hpp"
#include "tools/convpin/files.hpp"

namespace convpin::cli {
namespace {

using Json = nlohmann::json;

constexpr int kSchema = 1;
constexpr std::size_t kMostWarnings = 5;  // of one file; the rest is counted

// A value of the type that is documented, else the fallback: null stands for what does not exist.
template <typename T>
T get(const Json& record, const char* key, T fallback = {}) {
  const auto at = record.find(key);
  if (at == record.end()) return fallback;
  if constexpr (std::is_same_v<T, std::string>) return at->is_string() ? at->template get<T>() : fallback;
  if constexpr (std::is_same_v<T, bool>) return at->is_boolean() ? at->template get<T>() : fallback;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) return at->is_number_integer() ? at->template get<T>() : fallback;
  if constexpr (std::is_floating_point_v<T>) return at->is_number() ? at->template get<T>() : fallback;
  return fallback;
}

template <typename T>
std::optional<T> get_optional(const Json& record, const char* key) {
  const auto at = record.find(key);
  if (at == record.end() || at->is_null()) return std::nullopt;
  return get<T>(record, key);
}

template <typename Name>
std::vector<int> numbers_of(const Json& record, const char* key, Name name) {
  constexpr int kMost = 64;
  std::vector<int> numbers;
  const auto list = record.find(key);
  if (list == record.end() || !list->is_array()) return numbers;
  for (const Json& item : *list) {
    if (!item.is_string()) continue;
    const auto word = item.get<std::string>();
    for (int number = 0; number < kMost; ++number)
      if (name(number) == word) numbers.push_back(number);
  }
  return numbers;
}

template <typename Enum>
Enum word_from(const std::string& word, std::initializer_list<Enum> all, Enum fallback) {
  for (const Enum value : all)
    if (word == name_of(value)) return value;
  return fallback;
}

void read_candidate(const Json& r, LoggedCandidate& c) {
  c.algorithm = get(r, "algorithm", -1);
  if (const auto tag = get<std::string>(r, "engine"); !tag.empty())
    if (const auto request = parse_request(c.operation, tag)) c.engine = request->engine;
  const auto math = get<std::string>(r, "math_type");
  for (int number = 0; number < 8; ++number)
    if (cudnn_math_type(number) == math) c.math_type = number;
  using S = CandidateStatus;
  c.status = word_from(get<std::string>(r, "status", "ok"), {S::Ok, S::Unsupported, S::NoMemory, S::TooSlow, S::Skipped}, S::Skipped);
  c.reason = get<std::string>(r, "reason");
  const auto ms = [&](const char* key) {
    const auto us = get_optional<double>(r, key);
    return us ? std::optional(*us / 1000) : std::nullopt;
  };
  c.time_ms = ms("time_us");
  c.time_iqr_ms = ms("time_us_iqr");
  c.samples = get(r, "samples", 0);
  c.build_ms = get_optional<double>(r, "build_ms");
  c.workspace_bytes = get_optional<std::int64_t>(r, "workspace_bytes");
  c.deterministic = get_optional<bool>(r, "deterministic");
  c.numerical_notes = numbers_of(r, "numerical_notes", cudnn_numerical_note);
  c.behavior_notes = numbers_of(r, "behavior_notes", cudnn_behavior_note);
  c.error = get_optional<double>(r, "error");
  c.energy_mj = get_optional<double>(r, "energy_mj");
  c.energy_sd_mj = get_optional<double>(r, "energy_sd_mj");
  c.power_w = get_optional<double>(r, "power_w");
  c.host_timed = get(r, "host_timed", false);
  c.requested = get(r, "requested", false);
  c.framework_choice = get(r, "framework_choice", false);
  c.heuristics_rank = get(r, "heuristics_rank", -1);
}

LoggedChoice choice_from(const Json& r, Operation operation) {
  using K = ChoiceKind;
  LoggedChoice choice;
  choice.kind = word_from(get<std::string>(r, "choice"), {K::LeftAlone, K::Set, K::Unsupported, K::Refused, K::Tuned}, K::LeftAlone);
  choice.api = get<std::string>(r, "api");
  choice.ran = get<std::string>(r, "ran");
  choice.rule = get<std::string>(r, "rule");
  choice.requested = get<std::string>(r, "requested");
  choice.reason = get<std::string>(r, "reason");
  choice.plan.operation = operation;
  read_candidate(r, choice.plan);
  return choice;
}

LoggedFailure failure_from(const Json& r) {
  LoggedFailure f;
  f.id = get(r, "failure_id", 0);
  f.call = get<std::string>(r, "call");
  f.descriptor = get<std::string>(r, "descriptor");
  f.attribute = get<std::string>(r, "attribute");
  f.status = get<std::string>(r, "status");
  f.reason = get<std::string>(r, "reason");
  f.problem = get<std::string>(r, "problem");
  f.replay = get<std::string>(r, "replay");
  f.problem_id = get(r, "problem_id", 0);
  f.times = get<std::uint64_t>(r, "times", 1);
  return f;
}

// In the place of the one before that is the same by `key`, else at the end.
template <typename T, typename Key>
void put(std::vector<T>& to, T&& value, Key key) {
  const auto before = std::ranges::find(to, std::invoke(key, value), key);
  if (before == to.end()) {
    to.push_back(std::move(value));
  } else {
    *before = std::move(value);
  }
}

class Reader {
 public:
  Reader(const std::string& name, Log& log) : name_(name), log_(log) {}

  void read(std::string_view text) {
    const std::size_t runs_before = log_.runs.size();
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      ++line_;
      read_line(text.substr(0, end), end == text.npos);
      text.remove_prefix(end == text.npos ? text.size() : end + 1);
    }
    if (warnings_ > kMostWarnings)
      log_.warnings.push_back(name_ + ": " + counted(warnings_ - kMostWarnings, "more line", "more lines") + " like these");
    warn_of_cut_off({log_.runs.begin() + static_cast<std::ptrdiff_t>(runs_before), log_.runs.end()});
    if (log_.runs.size() == runs_before)
      throw BadUse(name_ + (line_ == 0 ? " is empty" : ":1: this is no log of convpin's") +
                   ": a log begins with a header; convpin run --record FILE writes one");
  }

 private:
  void warn(const std::string& what) {
    if (++warnings_ <= kMostWarnings) log_.warnings.push_back(place() + what);
  }
  // A run that died, or still goes on: one sentence for all of the file's.
  void warn_of_cut_off(std::span<const Run> runs) {
    const auto open = std::ranges::count(runs, false, &Run::ended);
    if (open == 0) return;
    const std::string which = runs.size() == 1 ? "the run" : std::to_string(open) + " of its " + counted(runs.size(), "run");
    log_.warnings.push_back(name_ + ": " + which + " did not end in an orderly way, or still goes on: the last counts are missing");
  }
  std::string place() const { return name_ + ":" + std::to_string(line_) + ": "; }

  void read_line(std::string_view line, bool last) {
    if (trim(line).empty()) return;
    const Json record = Json::parse(line, nullptr, false);
    if (record.is_discarded() || !record.is_object())
      return warn(last ? "the last line is cut off, and left out" : "this line is no record, and is left out");
    const auto type = get<std::string>(record, "type"), id = get<std::string>(record, "run_id");
    if (type == "header") return read_header(record, id);
    const auto run =
        std::ranges::find_if(log_.runs.rbegin(), log_.runs.rend(), [&](const Run& r) { return r.id == id && r.file == name_; });
    static constexpr std::string_view known[] = {"problem", "candidate", "choice", "count", "label", "failure", "end"};
    if (std::ranges::find(known, type) == std::end(known)) return;  // a newer convpin may say more
    if (run == log_.runs.rend()) return warn("this record's run has no header, and it is left out");
    if (type == "end") {
      run->ended = true;
    } else if (type == "problem") {
      read_problem(record, *run);
    } else if (type == "failure") {
      put(run->failures, failure_from(record), &LoggedFailure::id);
    } else {
      const auto problem = run->problems.find(get(record, "problem_id", -1));
      if (problem != run->problems.end()) {
        read_of_problem(type, record, problem->second);
      } else if (!dropped_) {
        warn("this record's problem was not introduced, and it is left out");
      }
    }
  }

  void read_header(const Json& r, const std::string& id) {
    const int schema = get(r, "schema", 0);
    if (schema != kSchema)
      throw BadUse(place() + "a log of schema " + std::to_string(schema) +
                   ", which this convpin (" CONVPIN_VERSION ") doesn't know: it reads schema 1");
    Run run;
    run.id = id;
    run.file = name_;
    run.convpin = get<std::string>(r, "convpin");
    run.cudnn = get<std::string>(r, "cudnn");
    run.host = get<std::string>(r, "host");
    run.command = get<std::string>(r, "command");
    run.rank = get(r, "rank", -1);
    run.pid = get(r, "pid", 0);
    if (const auto gpu = r.find("gpu"); gpu != r.end() && gpu->is_object()) {
      run.gpu = get<std::string>(*gpu, "name");
      run.compute_capability = get(*gpu, "compute_capability", 0);
    }
    if (const auto settings = r.find("settings"); settings != r.end() && settings->is_object())
      for (const auto& [key, value] : settings->items())
        run.settings.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
    run.warmup = get(r, "warmup", 0);
    run.repeats = get(r, "repeats", 0);
    log_.runs.push_back(std::move(run));
  }

  void read_problem(const Json& r, Run& run) {
    const auto text = get<std::string>(r, "problem");
    const auto problem = parse_problem(text);
    if (!problem) {
      dropped_ = true;
      return warn("this problem is not understood, and is left out: " + problem.error);
    }
    LoggedProblem& p = run.problems[get(r, "problem_id", -1)];
    p.problem = *problem;
    p.text = to_text(*problem);
    p.api = get<std::string>(r, "api");
    p.gpu = get(r, "gpu", run.gpu);
    p.cudnn = get(r, "cudnn", run.cudnn);
    add_labels(r, p);
  }

  // "label" or "labels", in any record of the problem.
  static void add_labels(const Json& r, LoggedProblem& p) {
    const auto add = [&](const Json& label) {
      if (label.is_string() && std::ranges::find(p.labels, label.get<std::string>()) == p.labels.end()) p.labels.push_back(label);
    };
    if (r.contains("label")) add(r["label"]);
    if (r.contains("labels") && r["labels"].is_array())
      for (const Json& label : r["labels"]) add(label);
  }

  static void read_of_problem(const std::string& type, const Json& r, LoggedProblem& p) {
    add_labels(r, p);
    if (type == "count") p.calls[get<std::string>(r, "ran")] = get<std::uint64_t>(r, "calls");
    if (type == "choice") {
      LoggedChoice choice = choice_from(r, p.problem.operation);
      std::erase_if(p.choices, [&](const LoggedChoice& before) { return before.ran == choice.ran; });
      p.choices.push_back(std::move(choice));
    }
    if (type != "candidate") return;
    LoggedCandidate candidate;
    candidate.operation = p.problem.operation;
    read_candidate(r, candidate);
    put(p.candidates, std::move(candidate), [](const LoggedCandidate& c) { return std::pair(c.identity(), c.math_type); });
  }

  const std::string& name_;
  Log& log_;
  std::size_t line_ = 0, warnings_ = 0;
  bool dropped_ = false;  // a problem was left out, so its records are too, without a word
};

}  // namespace

std::string LoggedCandidate::identity() const {
  if (engine.engine >= 0) return to_tag(engine);
  if (algorithm < 0) return "?";
  const std::string name = algorithm_name(operation, algorithm);
  return std::to_string(algorithm) + (name.empty() ? "" : " " + name);
}

void read_log(std::string_view text, const std::string& name, Log& log) { Reader(name, log).read(text); }

Log read_logs(const std::vector<std::string>& files) {
  Log log;
  for (const std::string& file : files) read_log(read_file(file), file == "-" ? "standard input" : file, log);
  return log;
}

}  // namespace convpin::cli
