// replay: runs problems with any of their candidates, and prints time and error.
#include <algorithm>
#include <cmath>
#include <limits>

#include "shim/model/record.hpp"
#include "shim/model/text.hpp"
#include "tools/convpin/command.hpp"
#include "tools/convpin/files.hpp"
#include "tools/convpin/letters.hpp"
#include "tools/convpin/problems.hpp"
#include "tools/convpin/table.hpp"
#include "tools/convpin/trial.hpp"
#include "tools/convpin/usage.hpp"

namespace convpin::cli {
namespace {

struct ReplayOptions {
  std::vector<std::string> problems, logs, candidates;
  std::string cudnn;
  bool all = false, cold = false, json = false, energy = false;
  double energy_seconds = EnergyPlan{}.seconds;
  int rounds = 15;
  std::uint64_t seed = 1;
};

// What the names stand for, of this problem's configurations.
std::vector<EngineConfig> chosen(const ReplayOptions& options, const Bench& bench, std::size_t version) {
  const auto known = bench.configurations(false);
  if (options.all) return known;
  const Problem& problem = bench.problem();
  std::vector<EngineConfig> configs;
  for (const std::string& name : options.candidates) {
    const auto request = parse_request(problem.operation, name);
    if (!request) throw BadUse("--candidate: " + request.error);
    if (request->kind == Request::Kind::ExactEngine) configs.push_back(request->engine);
    for (const EngineConfig& config : known) {
      const bool engine = request->kind == Request::Kind::Engine && config.engine == request->engine.engine;
      const bool algorithm = request->kind == Request::Kind::Algorithm && problem.fused_count == 0 &&
                             algorithm_of_engine(problem.operation, version, config.engine) == request->algorithm;
      if (engine || algorithm || request->kind == Request::Kind::FrameworkChoice) configs.push_back(config);
      if (request->kind == Request::Kind::FrameworkChoice) break;  // the heuristics' first
    }
  }
  return configs;
}

// Of a log, without --candidate: what ran.
ReplayOptions with_what_ran(ReplayOptions options, const std::vector<Usage>& usages, const Problem& problem) {
  if (options.all || !options.candidates.empty()) return options;
  for (const Usage& usage : usages)
    if (usage.problem == problem && !usage.ran.empty()) {
      const LoggedCandidate& plan = usage.ran.front().choice.plan;
      options.candidates.push_back(plan.engine.engine >= 0 ? to_tag(plan.engine) : std::to_string(plan.algorithm));
    }
  if (options.candidates.empty()) options.candidates.emplace_back("-1");
  return options;
}

int replay(const ReplayOptions& options, const Letters& letters) {
  std::vector<Usage> usages;
  if (!options.logs.empty()) usages = usages_of(read_logs(options.logs));
  const auto problems = problems_from(options.problems, letters, options.logs);
  const auto cudnn = open_cudnn(options.cudnn);
  const Gpu gpu(*cudnn);
  TrialOptions trial;
  trial.timing.rounds = options.rounds;
  trial.timing.hopeless = HUGE_VAL;
  trial.cold = options.cold;
  Table table{{"problem", "algo", "engine", "time_ms", "time_iqr_ms", "error", "workspace_bytes", "build_ms", "notes", "status", "reason"},
              {}};
  if (options.energy) {
    trial.energy = EnergyPlan{.seconds = options.energy_seconds, .most = std::numeric_limits<std::size_t>::max(), .within = HUGE_VAL};
    table.columns.insert(table.columns.end(), {"energy_mj", "energy_sd_mj", "power_w"});
    say("the idle GPU takes " + four_digits(idle_power_w(meter_of(gpu))) + " W, which is part of what is measured");
  }
  bool all_ran = true;
  for (const Problem& problem : problems) {
    auto bench = Bench::make(gpu, problem, options.seed);
    if (!bench) {
      all_ran = false;
      table.rows.push_back({to_text(problem), {}, {}, {}, {}, {}, {}, {}, {}, name_of(CandidateStatus::Skipped), bench.error});
      continue;
    }
    const auto configs = chosen(with_what_ran(options, usages, problem), **bench, cudnn->library.version);
    const auto optional = [](const auto& value) { return value ? Json(*value) : Json(); };
    auto candidates = try_all(**bench, configs, nullptr, trial, [] { return false; });
    std::ranges::stable_sort(candidates, {}, [](const Candidate& c) { return c.time_ms.value_or(HUGE_VAL); });
    all_ran = all_ran && std::ranges::any_of(candidates, [](const Candidate& c) { return c.status == CandidateStatus::Ok; });
    for (const Candidate& c : candidates) {
      Json notes = Json::array();
      for (const int note : c.numerical_notes) notes.push_back(numerical_note_name(note, problem.x.type));
      for (const int note : c.behavior_notes) notes.push_back(lower(cudnn_behavior_note(note)));
      if (c.host_timed) notes.push_back("host_timed");
      table.rows.push_back({to_text(problem), c.algorithm < 0 ? Json() : Json(c.algorithm), to_tag(c.engine), optional(c.time_ms),
                            optional(c.time_iqr_ms), optional(c.error), optional(c.workspace_bytes), optional(c.build_ms), notes,
                            name_of(c.status), c.reason.empty() ? Json() : Json(c.reason)});
      if (options.energy)
        for (const auto& value : {c.energy_mj, c.energy_sd_mj, c.power_w}) table.rows.back().push_back(optional(value));
    }
  }
  say(gpu.name + ", cuDNN " + version_text(cudnn->library.version) + "; medians of " + std::to_string(options.rounds) +
      " interleaved samples, " + (options.cold ? "cold" : "warm") + " caches; error against float64");
  print(options.json ? table.json().dump(2) + "\n" : table.text());
  return all_ran ? kYes : kNo;
}

}  // namespace

Action declare_replay(CLI::App& app, const Program&) {
  auto options = std::make_shared<ReplayOptions>();
  app.add_option("problem", options->problems, "the text form, e.g. \"x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1\"");
  app.add_option("--log", options->logs, "a log whose problems are meant, with what ran there (repeatable)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--candidate", options->candidates,
                 "an engine with or without knobs, an algorithm, -1 for the heuristics' first (repeatable)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_flag("--all", options->all, "every engine");
  app.add_flag("--energy", options->energy, "what each takes of energy too, in three loops, by NVML's counter");
  app.add_option("--energy-seconds", options->energy_seconds, "how long each loop is, at least")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--cold-cache", options->cold, "with something else in the caches before each launch");
  app.add_option("--rounds", options->rounds, "timed samples of each")->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--seed", options->seed, "of the data")->capture_default_str();
  const auto letters = declare_letters(app);
  app.add_option("--cudnn", options->cudnn, "cuDNN's folder or file; without it: as the loader finds it")->type_name("DIR");
  app.add_flag("--json", options->json, "as JSON");
  return [options, letters] { return replay(*options, *letters); };
}

}  // namespace convpin::cli
