// tune: times what could run each problem of a log, and writes rules for what is best.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <limits>

#include "config/settings.hpp"
#include "shim/model/record.hpp"
#include "shim/model/text.hpp"
#include "tools/convpin/command.hpp"
#include "tools/convpin/counted.hpp"
#include "tools/convpin/files.hpp"
#include "tools/convpin/freeze.hpp"
#include "tools/convpin/generalize.hpp"
#include "tools/convpin/progress.hpp"
#include "tools/convpin/refresh.hpp"
#include "tools/convpin/trial.hpp"
#include "tools/convpin/tune_state.hpp"
#include "tools/convpin/usage.hpp"

namespace convpin::cli {
namespace {

using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t interrupted = 0;

TunePolicy policy_of(const TuneOptions& options) {
  TunePolicy policy;
  policy.kind = options.policy == "least_memory" ? PolicyKind::LeastMemory : PolicyKind::Fastest;
  policy.least_energy = options.policy == "least_energy";
  policy.min_gain = options.min_gain;
  policy.steps = options.steps;
  if (options.deterministic) policy.require.add(Flag::Deterministic);
  for (const std::string& word : options.allow) {
    const auto flag = flag_from(FlagList::Allow, word);
    if (!flag)
      throw BadUse("--allow: " + quote(word) + " is not known; allowed are " + names_of(FlagList::Allow, all_flags(FlagList::Allow)));
    policy.allow.add(*flag);
  }
  if (!options.workspace_limit.empty()) {
    const auto bytes = parse_bytes(options.workspace_limit);
    if (!bytes) throw BadUse("--workspace-limit: " + bytes.error);
    policy.workspace_limit = *bytes;
  }
  return policy;
}

bool is_of(const Usage& usage, const Place& here) {
  const Place logged = place_of(usage);
  return logged.device == here.device && logged.cudnn_version == here.cudnn_version;
}

// What the framework runs where nobody interferes: as the log has it where it is of this GPU and cuDNN, else the heuristics' first.
EngineConfig own_choice(const Usage& usage, const std::vector<EngineConfig>& listed, const Place& here) {
  const EngineConfig first = listed.empty() ? EngineConfig{} : listed.front();
  if (!is_of(usage, here)) return first;
  const LoggedCandidate* own = usage.framework_choice();
  return own && own->engine.engine >= 0 ? own->engine : first;
}

// Each knob of the best one step up and down; cuDNN says which of them exist.
std::vector<EngineConfig> neighbours(const EngineConfig& best) {
  std::vector<EngineConfig> all;
  for (std::size_t i = 0; i < best.knobs.size(); ++i)
    for (const int step : {-1, 1}) {
      all.push_back(best);
      all.back().knobs[i].value += step;
    }
  return all;
}

// Where --tf32 is auto: a program that let float data run on tensor cores by itself, in any of its convolutions, lets all of them.
std::string tf32_of(const TuneOptions& options, const std::vector<Usage>& usages) {
  const bool seen = std::ranges::any_of(usages, [](const Usage& usage) {
    return usage.problem.x.type == DataType::Float && std::ranges::any_of(usage.ran, [&](const Ran& ran) {
             return ran.choice.kind == ChoiceKind::LeftAlone && takes_tf32("auto", usage.problem, &ran.choice.plan);
           });
  });
  return options.tf32 == "auto" && seen ? "yes" : options.tf32;
}

struct Measured {
  std::vector<Candidate> candidates;
  Tuned tuned;
  std::string disturbed;  // what was wrong with the GPU's clocks
};

Measured tune_one(const Usage& usage, Bench& bench, const TuneOptions& options, const std::string& tf32, TunePolicy policy,
                  const std::function<bool()>& stop) {
  constexpr std::size_t kListed = 10;  // what a framework's own benchmark would try
  auto configs = bench.configurations(options.knobs ? std::numeric_limits<std::size_t>::max() : kListed);
  const EngineConfig own = own_choice(usage, configs, {bench.gpu().name, bench.gpu().cudnn.library.version});
  std::erase(configs, own);
  configs.insert(configs.begin(), own);
  TrialOptions trial;
  trial.timing.rounds = options.rounds;
  trial.cold = options.cold;
  trial.finalists = 5;
  trial.workspace_limit = policy.workspace_limit;
  const auto decided_by = [&](const Candidate* own_candidate) {
    TunePolicy known = policy;
    known.tf32 = takes_tf32(tf32, usage.problem, own_candidate);
    return known;
  };
  trial.may_win = [&](const Candidate& c, const Candidate* beside) { return may_be_chosen(c, beside, decided_by(beside)); };
  trial.in_vain = [&](const Candidate& unbuilt, std::optional<double> own_ms) { return in_vain(unbuilt, own_ms, policy); };
  Measured m;
  trial.disturbed = &m.disturbed;
  const std::optional<EnergyPlan> energy = options.wants_energy() ? std::optional(options.energy_plan) : std::nullopt;
  if (!options.knobs) trial.energy = energy;  // else of the last ones
  Trials first = try_all(bench, configs, &own, trial, stop);
  m.candidates = std::move(first.candidates);
  policy = decided_by(&m.candidates[0]);
  policy.compile_ms = std::max(policy.compile_ms, longest_compilation_ms(m.candidates));
  m.candidates[0].framework_choice = true;
  TunePolicy by_now = policy;
  by_now.least_energy = policy.least_energy && !options.knobs;
  m.tuned = choose(contenders(m.candidates, first.finalists, by_now), 0, by_now);
  if (options.knobs && m.tuned.chosen && !stop()) {
    trial.energy = energy;
    std::string disturbed_again;
    trial.disturbed = &disturbed_again;
    auto more = neighbours(m.candidates[*m.tuned.chosen].engine);
    std::erase_if(more, [&](const EngineConfig& c) { return std::ranges::find(configs, c) != configs.end(); });
    if (*m.tuned.chosen != 0) more.insert(more.begin(), m.candidates[*m.tuned.chosen].engine);
    more.insert(more.begin(), own);  // both measured again beside them
    Trials again = try_all(bench, more, &own, trial, stop);
    std::vector<std::size_t> finalists;
    for (std::size_t i = 0; i < again.candidates.size(); ++i) {
      Candidate& c = again.candidates[i];
      const auto known = std::ranges::find(m.candidates, c.engine, &Candidate::engine);
      if (std::ranges::find(again.finalists, i) != again.finalists.end())
        finalists.push_back(static_cast<std::size_t>(known - m.candidates.begin()));  // where there is none it comes last
      if (known == m.candidates.end())
        m.candidates.push_back(std::move(c));
      else if (c.time_ms) {
        known->time_ms = c.time_ms, known->time_iqr_ms = c.time_iqr_ms, known->samples = c.samples;
        known->energy_mj = c.energy_mj, known->energy_sd_mj = c.energy_sd_mj, known->power_w = c.power_w;
      }
    }
    if (m.disturbed.empty()) m.disturbed = disturbed_again;
    m.tuned = choose(contenders(m.candidates, finalists, policy), 0, policy);
  }
  if (!m.disturbed.empty()) m.tuned.reason += "; measured while " + m.disturbed;
  return m;
}

// What would do where the budget was over before one problem was measured. A guess: what 68 problems took on an H200, 3 s each at
// most; ten times what was too little.
std::string too_short(const TuneOptions& options, double budget_s, std::size_t left) {
  const EnergyPlan& plan = options.energy_plan;
  const double each = 3 + (options.wants_energy() ? plan.seconds * plan.repeats * static_cast<double>(plan.most) : 0);
  const double enough = std::ceil(std::max(each * static_cast<double>(left), 10 * budget_s));
  return "not one problem could be measured in --budget " + options.budget + ": --budget \"" + std::to_string(static_cast<long>(enough)) +
         " s\" may do for " + (left == 1 ? "it" : "all " + std::to_string(left)) + ", and without --budget there are " +
         TuneOptions().budget;
}

int tune(const TuneOptions& options, const std::string& output) {
  if (options.logs.empty() && options.refresh.empty())
    throw BadUse("no log is given: convpin run --record writes one; or --refresh");
  TunePolicy policy = policy_of(options);
  const std::string own_log = !options.log.empty() ? options.log : output.empty() ? "" : output + ".jsonl";
  keep_apart(output, options.logs);
  keep_apart(own_log, options.logs);
  const auto budget = parse_seconds(options.budget);
  if (!budget) throw BadUse("--budget: " + budget.error);
  const Log log = options.logs.empty() ? Log() : read_logs(options.logs);
  for (const std::string& warning : log.warnings) say(warning);
  std::vector<Usage> usages = usages_of(log);
  std::erase_if(usages, [](const Usage& u) { return u.api == "legacy"; });
  sort_by_weight(usages);
  const std::string tf32 = tf32_of(options, usages);
  std::vector<Usage> problems;  // of several GPUs in the log, each once
  for (Usage& usage : usages)
    if (std::ranges::find(problems, usage.problem, &Usage::problem) == problems.end()) problems.push_back(std::move(usage));
  std::optional<PinText> old;
  if (!options.refresh.empty()) old = read_pin_text(options.refresh);
  if (problems.empty() && !old) {
    say("no convolution of the graph API is in " + join(options.logs, ", ") + "; what ran on the legacy API can be frozen");
    return kNo;
  }
  const auto cudnn = open_cudnn(options.cudnn);
  const Gpu gpu(*cudnn);
  const Place place{gpu.name, cudnn->library.version};
  if (!std::ranges::all_of(problems, [&](const Usage& u) { return is_of(u, place); }))
    say("the log is not of this GPU and cuDNN alone: where it is of others, the heuristics' first counts as the framework's choice");
  if (old) problems = to_refresh(*old, problems, place);
  std::optional<double> idle_w;
  if (options.wants_energy()) {
    idle_w = idle_power_w(meter_of(gpu));
    const EnergyPlan& plan = options.energy_plan;
    say("the idle GPU takes " + four_digits(*idle_w) + " W, which is part of what is measured; energy: of the framework's own choice and " +
        "the fastest within " + four_digits(plan.within) + " times the best, " + std::to_string(plan.most) + " a problem at most, " +
        four_digits(plan.seconds * plan.repeats) + " s each");
  }
  TuneState state(own_log, gpu, options, idle_w);
  for (const Run& run : state.log().runs)
    for (const auto& [id, p] : run.problems)
      policy.compile_ms = std::max(policy.compile_ms, longest_compilation_ms({p.candidates.begin(), p.candidates.end()}));
  std::signal(SIGINT, [](int) {
    interrupted = 1;
    std::signal(SIGINT, SIG_DFL);  // a second time: at once
  });
  const auto began = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - began).count(); };
  const auto stop = [&] { return interrupted || seconds() > *budget; };
  const Progress progress;
  std::size_t known = 0, left = 0, done = 0, disturbed = 0, at_limit = 0;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    if (state.has(problems[i])) {
      ++known;
      continue;
    }
    if (stop()) {
      ++left;
      continue;
    }
    auto bench = Bench::make(gpu, problems[i].problem, 1);
    if (!bench) {
      progress.clear();
      say("left out: " + problems[i].text + ": " + bench.error);
      continue;
    }
    const Measured m = tune_one(problems[i], **bench, options, tf32, policy, stop);
    if (stop()) {  // half measured is not measured
      ++left;
      continue;
    }
    state.add(problems[i], m.candidates, m.tuned);
    policy.compile_ms = std::max(policy.compile_ms, longest_compilation_ms(m.candidates));
    ++done;
    disturbed += m.disturbed.empty() ? 0 : 1;
    at_limit += gpu.nvml && at_power_limit(gpu.nvml->state()) ? 1 : 0;
    const double remaining = seconds() / static_cast<double>(done) * static_cast<double>(problems.size() - i - 1);
    progress.clear();
    say("[" + std::to_string(i + 1) + "/" + std::to_string(problems.size()) + ", " + std::to_string(static_cast<int>(remaining) + 1) +
        " s left] " + problems[i].text + ": " + (m.tuned.chosen ? to_tag(m.candidates[*m.tuned.chosen].engine) + ": " : "nothing: ") +
        m.tuned.reason);
    progress.show(i + 1, problems.size(), remaining);
  }
  progress.clear();
  state.end();
  if (disturbed > 0)
    say(counted(disturbed, "problem was", "problems were") +
        " measured while the GPU throttled or its clock changed, twice each; their rules say so");
  if (at_limit > 0) say("after " + counted(at_limit, "problem") + " the GPU was at its power limit");
  if (left > 0)
    say(counted(left, "problem is", "problems are") + " not tuned yet (" + (interrupted ? "interrupted" : "--budget " + options.budget) +
        "); " + (own_log.empty() ? "with -o what is measured is kept, and gone on with" : "the same command goes on from here"));
  if (left > 0 && done == 0 && !interrupted) say(too_short(options, *budget, left));
  if (known > 0 && done == 0 && left == 0)
    say("nothing was measured anew: " + own_log + " has " + counted(known, "problem") + " under these options; without that file " +
        (known == 1 ? "it" : "they") + " would be");
  std::vector<std::string> left_out;
  std::vector<Usage> tuned = usages_of(state.log());
  sort_by_weight(tuned);
  // Of a file that is refreshed, this place's part alone: the rest stands in it.
  if (old)
    std::erase_if(tuned, [&](const Usage& u) {
      return !is_of(u, place) || std::ranges::find(problems, u.problem, &Usage::problem) == problems.end();
    });
  auto rules = freeze(tuned, left_out);
  const auto general =
      options.generalize ? generalize(tuned, policy, tf32) : std::vector<FrozenRule>();
  if (options.generalize)
    say(counted(general.size(), "rule") + " for other batch or image sizes" +
        (general.empty() ? ": no engine is within 3 % of the best over several" : ""));
  if (old) {
    const Refreshed file = refreshed(*old, rules, general, place, options.keep);
    write_output(output, file.text);
    say(summary_of(file, options.refresh));
    return kYes;
  }
  rules.insert(rules.end(), general.begin(), general.end());
  if (rules.empty()) {
    say("nothing was tuned");
    return kNo;
  }
  write_output(
      output,
      pin_file(rules, {"What is best (" + options.policy + ") for the problems of " + join(options.logs, ", ") + ", by convpin tune.",
                       "Each rule holds for this GPU and this cuDNN alone: an engine's number means another thing elsewhere."}));
  say_written(rules.size(), output);
  return kYes;
}

}  // namespace

Action declare_tune(CLI::App& app, const Program&) {
  auto o = std::make_shared<TuneOptions>();
  app.add_option(
         "log", o->logs,
         "logs of convpin run --record: their problems, most time-consuming first (without times in them: most often called); "
         "--refresh needs none")
      ->type_name("FILE");
  const auto output = declare_output(app, "the rules");
  app.add_option("--log", o->log, "file for the measurements, which a later start goes on from; the output's name with .jsonl without it")
      ->type_name("FILE");
  app.add_option("--policy", o->policy, "fastest, least_memory or least_energy")
      ->check(CLI::IsMember({"fastest", "least_memory", "least_energy"}))
      ->capture_default_str();
  app.add_option("--budget", o->budget, "time for all of it, e.g. \"10 min\"")->capture_default_str();
  app.add_option("--workspace-limit", o->workspace_limit, "e.g. \"64 MiB\"; without it: none");
  app.add_flag("--deterministic", o->deterministic, "only what gives the same result every time");
  app.add_option("--tf32", o->tf32, "float data on tensor cores: yes, no, or auto: yes where the program did so by itself in any convolution of the log")
      ->check(CLI::IsMember({"yes", "no", "auto"}))
      ->capture_default_str();
  app.add_option(
         "--allow", o->allow,
         "what is not taken unasked: runtime_compilation (whatever it costs), nondeterministic, down_convert, reduced_precision_reduction")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--min-gain", o->min_gain, "how much better than the framework's choice, else that stays")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str();
  app.add_option("--steps", o->steps,
                 "calls in which a run-time compiled engine must have repaid its compilation; what can't is not even built")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--rounds", o->rounds,
                 "timed samples of each candidate, interleaved; twice as many of the finalists, fewer of "
                 "what takes long")
      ->check(CLI::Range(3, 10000))
      ->capture_default_str();
  app.add_flag("--energy", o->energy,
               "measure energy too, of the framework's choice and the fastest, with warm caches; least_energy does so by itself");
  declare_energy(app, o->energy_plan, 2);
  app.add_flag("--knobs", o->knobs, "also every configuration that the heuristics list, and the knobs around the best");
  app.add_flag("--cold-cache", o->cold, "with something else in the caches before each launch");
  app.add_option("--refresh", o->refresh,
                 "a pin file: tunes its rules for another GPU or cuDNN, as far as they name one problem "
                 "each, and what no rule covers of "
                 "the logs. All other rules stay as they are, those for other GPUs too; those of this GPU "
                 "for another cuDNN are replaced")
      ->type_name("OLD.toml");
  app.add_flag("--keep", o->keep,
               "with --refresh: the replaced rules stay, too (for machines that have the other cuDNN)");
  app.add_flag("--generalize", o->generalize,
               "also rules with * for batch or image size, where one engine is within 3 % of what was chosen "
               "for each of several sizes");
  app.add_option("--cudnn", o->cudnn, "cuDNN's folder or file; without it: as the loader finds it")->type_name("DIR");
  return [o, output] { return tune(*o, *output); };
}

}  // namespace convpin::cli
