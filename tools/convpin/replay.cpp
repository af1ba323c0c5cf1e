// replay: runs problems with any of their candidates, and prints time and error.
#include <algorithm>
#include <cmath>
#include <limits>

#include "shim/model/record.hpp"
#include "shim/model/text.hpp"
#include "tools/convpin/command.hpp"
#include "tools/convpin/counted.hpp"
#include "tools/convpin/files.hpp"
#include "tools/convpin/legacy_trial.hpp"
#include "tools/convpin/letters.hpp"
#include "tools/convpin/problems.hpp"
#include "tools/convpin/repro.hpp"
#include "tools/convpin/table.hpp"
#include "tools/convpin/trial.hpp"
#include "tools/convpin/versus.hpp"
#include "tools/convpin/wanted.hpp"

namespace convpin::cli {
namespace {

struct ReplayOptions {
  std::vector<std::string> problems, logs, candidates;
  std::vector<std::string> cudnn;
  std::string repro;
  int alternations = 3;
  bool all = false, legacy = false, cold = false, json = false, energy = false;
  EnergyPlan energy_plan{.most = std::numeric_limits<std::size_t>::max(), .within = HUGE_VAL};
  int rounds = 15;
  std::uint64_t seed = 1;
};

// A row of the table: a candidate, by what it was asked for.
struct Replayed {
  Wanted wanted;
  Candidate candidate;
};

Replayed not_run(const std::string& name, const std::string& why) {
  Replayed row;
  row.wanted.names = {name};
  row.candidate.reason = why;
  return row;
}

TimingPlan timing_for(const ReplayOptions& options) {
  TimingPlan plan;
  plan.rounds = options.rounds;
  plan.hopeless = HUGE_VAL;
  return plan;
}

// What is named, or all; the heuristics' first where nothing is wanted so far.
void add_named(const ReplayOptions& options, const Bench& bench, std::size_t version, std::vector<Wanted>& all,
               std::vector<Replayed>& rows) {
  const auto known = bench.configurations(0);
  const auto add = [&](const std::string& name) {
    const auto found = named(name, bench.problem(), known, version, false);
    for (const Wanted& w : found) want(all, w);
    if (found.empty()) rows.push_back(not_run(name, "this cuDNN has no engine for it"));
  };
  for (const std::string& name : options.candidates) add(name);
  if (options.all)
    for (const EngineConfig& config : known) add(to_tag({config.engine, {}}));
  if (all.empty() && rows.empty()) add("-1");
}

void run_graph(const ReplayOptions& options, const Gpu& gpu, const Problem& problem, std::vector<Wanted> wanted, bool more,
               std::vector<Replayed>& rows) {
  auto bench = Bench::make(gpu, problem, options.seed);
  if (!bench) return rows.push_back(not_run("any", bench.error));
  if (more) add_named(options, **bench, gpu.cudnn.library.version, wanted, rows);
  std::vector<EngineConfig> configs;
  for (const Wanted& w : wanted) configs.push_back(w.engine);
  TrialOptions trial;
  trial.timing = timing_for(options);
  trial.cold = options.cold;
  if (options.energy) trial.energy = options.energy_plan;
  auto candidates = try_all(**bench, configs, nullptr, trial, [] { return false; }).candidates;
  for (std::size_t i = 0; i < wanted.size(); ++i) rows.push_back({wanted[i], std::move(candidates[i])});
}

void run_legacy(const ReplayOptions& options, const Gpu& gpu, const Problem& problem, std::vector<Wanted> wanted,
                std::vector<Replayed>& rows) {
  if (options.legacy) {
    std::vector<std::string> names = options.candidates;
    if (options.all || (names.empty() && wanted.empty()))
      for (const Algorithm& algorithm : algorithms(problem.operation, gpu.cudnn.library.version))
        names.push_back(std::to_string(algorithm.number));
    for (const std::string& name : names)
      for (const Wanted& w : named(name, problem, {}, gpu.cudnn.library.version, true)) want(wanted, w);
  }
  if (wanted.empty()) return;
  auto candidates = try_legacy(gpu, problem, wanted, options.seed, timing_for(options));
  for (std::size_t i = 0; i < wanted.size(); ++i) rows.push_back({wanted[i], std::move(candidates[i])});
}

// What ran most in each log on the API that it ran on, and what is named, on the graph API or the legacy one.
std::vector<Replayed> run_all(const ReplayOptions& options, const std::vector<NamedLog>& logs, const Gpu& gpu, const Problem& problem) {
  std::vector<Replayed> rows;
  std::vector<Wanted> graph, legacy;
  for (Wanted& w : ran_most(logs, problem)) (w.is_legacy() ? legacy : graph).push_back(std::move(w));
  const bool asked = !options.candidates.empty() || options.all;
  const bool more = !options.legacy && (asked || (graph.empty() && legacy.empty()));
  if (more || !graph.empty()) run_graph(options, gpu, problem, std::move(graph), more, rows);
  run_legacy(options, gpu, problem, std::move(legacy), rows);
  std::ranges::stable_sort(rows, {}, [](const Replayed& r) { return r.candidate.time_ms.value_or(HUGE_VAL); });
  return rows;
}

const std::vector<std::string> kColumns = {"problem",     "api",   "candidate",       "logs",     "algo",  "engine", "heuristics_rank", "time_ms",
                                           "time_iqr_ms", "error", "workspace_bytes", "build_ms", "notes", "status", "reason"};

const std::vector<std::string> kEnergyColumns = {"energy_mj", "energy_sd_mj", "power_w"};

std::vector<Json> row_of(const Problem& problem, const Replayed& replayed, bool energy) {
  const Candidate& c = replayed.candidate;
  const auto optional = [](const auto& value) { return value ? Json(*value) : Json(); };
  const auto not_negative = [](int value) { return value < 0 ? Json() : Json(value); };
  Json notes = Json::array();
  for (const int note : c.numerical_notes) notes.push_back(numerical_note_name(note, problem.x.type));
  for (const int note : c.behavior_notes) notes.push_back(lower(cudnn_behavior_note(note)));
  if (c.host_timed) notes.push_back("host_timed");
  std::vector<Json> row{to_text(problem),
                        replayed.wanted.is_legacy() && replayed.wanted.algorithm >= 0 ? "legacy" : "graph",
                        replayed.wanted.names,
                        replayed.wanted.logs,
                        not_negative(c.algorithm),
                        c.engine.engine < 0 ? Json() : Json(to_tag(c.engine)),
                        not_negative(c.heuristics_rank),
                        optional(c.time_ms),
                        optional(c.time_iqr_ms),
                        optional(c.error),
                        optional(c.workspace_bytes),
                        optional(c.build_ms),
                        notes,
                        name_of(c.status),
                        c.reason.empty() ? Json() : Json(c.reason)};
  if (energy)
    for (const auto& value : {c.energy_mj, c.energy_sd_mj, c.power_w}) row.push_back(optional(value));
  return row;
}

// A program for a bug report: of one problem with one engine, without running it.
int print_repro(const ReplayOptions& options, const std::vector<NamedLog>& logs, const std::vector<Problem>& problems) {
  if (options.legacy)
    throw BadUse("--repro: not with --legacy: the programs call the graph API, so name the engine that stands for the algorithm");
  if (options.all || options.energy || options.cold || options.json || !options.cudnn.empty())
    throw BadUse("--repro: not with --all, --energy, --cold-cache, --cudnn or --json, since nothing is run");
  if (problems.size() != 1) throw BadUse("--repro: one problem, not " + std::to_string(problems.size()));
  std::vector<Wanted> wanted;
  if (options.candidates.empty()) wanted = ran_most(logs, problems[0]);
  for (const std::string& name : options.candidates) {
    const auto request = parse_request(problems[0].operation, name);
    if (!request) throw BadUse("--candidate: " + request.error);
    Wanted w;
    w.engine = request->engine;
    want(wanted, std::move(w));
  }
  if (wanted.size() != 1 || wanted[0].is_legacy())
    throw BadUse("--repro: one --candidate, an engine with its knobs as replay's table or a log names it (eng38_k2=1)");
  const auto program = (options.repro == "python" ? repro_python : repro_cpp)(problems[0], wanted[0].engine);
  if (!program) throw BadUse(program.error);
  print(*program);
  return kYes;
}

// The same under each of the two cuDNNs.
int replay_versus(const ReplayOptions& options, const std::vector<Problem>& problems) {
  std::vector<std::string> arguments{"--rounds", std::to_string(options.rounds), "--seed", std::to_string(options.seed)};
  for (const Problem& problem : problems) arguments.push_back(to_text(problem));
  for (const std::string& log : options.logs) arguments.insert(arguments.end(), {"--log", log});
  for (const std::string& name : options.candidates) arguments.insert(arguments.end(), {"--candidate", name});
  if (options.all) arguments.emplace_back("--all");
  if (options.legacy) arguments.emplace_back("--legacy");
  if (options.cold) arguments.emplace_back("--cold-cache");
  Side a{options.cudnn[0], {}}, b{options.cudnn[1], {}};
  take_turns(a, b, options.alternations, arguments);
  const Versus versus = compare(a, b);
  say("A is " + a.where + ", B is " + b.where + "; medians over " + counted(options.alternations, "turn") +
      " of each, the ratio is B's time over A's; slower and faster are " + bound_words() + "; " +
      (!versus.any_ran    ? "nothing ran on either side, so nothing is compared"
       : versus.convicted ? "B lacks something that A runs, or is slower"
                          : "nothing speaks against B"));
  print(options.json ? versus.table.json().dump(2) + "\n" : versus.table.text());
  return versus.any_ran && !versus.convicted ? kYes : kNo;
}

// Before anything is measured: the legacy API's algorithms are timed with warm caches, and no more.
void check_legacy(const ReplayOptions& options, const std::vector<NamedLog>& logs, const std::vector<Problem>& problems) {
  if (!options.energy && !options.cold) return;
  const auto ran_on_legacy = [&](const Problem& p) { return std::ranges::any_of(ran_most(logs, p), &Wanted::is_legacy); };
  if (options.legacy || std::ranges::any_of(problems, ran_on_legacy))
    throw BadUse(std::string(options.energy ? "--energy" : "--cold-cache") +
                 ": not of the legacy API's algorithms; name the engines that stand for them");
}

int replay(const ReplayOptions& options, const Letters& letters) {
  if (options.cudnn.size() > 2) throw BadUse("--cudnn: one, or two that are compared");
  const auto logs = read_named_logs(options.logs);
  const auto problems = problems_from(options.problems, letters, options.logs);
  if (!options.repro.empty()) return print_repro(options, logs, problems);
  check_legacy(options, logs, problems);
  if (options.cudnn.size() == 2 && options.energy) throw BadUse("--energy: under one --cudnn");
  if (options.cudnn.size() == 2) return replay_versus(options, problems);
  const auto cudnn = open_cudnn(options.cudnn.empty() ? "" : options.cudnn[0]);
  const Gpu gpu(*cudnn);
  Table table{kColumns, {}};
  if (options.energy) {
    table.columns.insert(table.columns.end(), kEnergyColumns.begin(), kEnergyColumns.end());
    say("the idle GPU takes " + four_digits(idle_power_w(meter_of(gpu))) + " W, which is part of what is measured");
  }
  bool all_ran = true;
  for (const Problem& problem : problems) {
    const auto rows = run_all(options, logs, gpu, problem);
    all_ran = all_ran && std::ranges::any_of(rows, [](const Replayed& r) { return r.candidate.status == CandidateStatus::Ok; });
    for (const Replayed& row : rows) table.rows.push_back(row_of(problem, row, options.energy));
  }
  say(gpu.name + ", cuDNN " + version_text(cudnn->library.version) + " (" + cudnn->path + "); medians of " +
      counted(options.rounds, "interleaved sample") + ", " + (options.cold ? "cold" : "warm") + " caches; error against float64");
  print(options.json ? table.json().dump(2) + "\n" : table.text());
  return all_ran ? kYes : kNo;
}

}  // namespace

Action declare_replay(CLI::App& app, const Program&) {
  auto options = std::make_shared<ReplayOptions>();
  app.add_option("problem", options->problems,
                 "the text form, e.g. \"x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1\"");
  app.add_option("--log", options->logs,
                 "a log, also one of tune's: its problems, each with what ran it most there; several logs' "
                 "are timed against each other (repeatable)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option(
         "--candidate", options->candidates,
         "also an engine with or without knobs, an algorithm, -1 for the heuristics' first (repeatable)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_flag("--all", options->all, "also every engine");
  app.add_flag("--legacy", options->legacy, "the legacy API's algorithms (cudnnConvolutionForward and its like): those named, else all");
  app.add_flag("--energy", options->energy, "what each engine takes of energy too, by NVML's counter; with warm caches");
  declare_energy(app, options->energy_plan, 1);
  app.add_flag("--cold-cache", options->cold, "with something else in the caches before each launch");
  app.add_option("--rounds", options->rounds, "timed samples of each")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--seed", options->seed, "of the data")->capture_default_str();
  const auto letters = declare_letters(app);
  app.add_option("--cudnn", options->cudnn,
                 "cuDNN's folder or file; without it: as the loader finds it. Given twice: the same under both, in turns; exit 1 "
                 "where the second lacks what the first runs, or is slower " +
                     bound_words() + ", or nothing runs under either")
      ->type_name("DIR")
      ->allow_extra_args(false);
  app.add_option("--alternations", options->alternations, "turns of each of two cuDNNs")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--repro", options->repro,
                 "prints a stand-alone program for a bug report instead, and runs nothing: of one problem with exactly one engine, the "
                 "--candidate (with its knobs) or else what ran most in the --log. On the graph API: not with --legacy, nor for a log's "
                 "algorithm of the legacy API. Not with --cudnn, which the program takes itself (Python: its argument; C++: as linked)")
      ->check(CLI::IsMember({"cpp", "python"}))
      ->type_name("LANGUAGE");
  app.add_flag("--json", options->json, "as JSON");
  return [options, letters] { return replay(*options, *letters); };
}

}  // namespace convpin::cli
