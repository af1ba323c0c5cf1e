#include "tools/convpin/tune_state.hpp"

#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "shim/model/text.hpp"
#include "tools/convpin/files.hpp"

namespace convpin::cli {
namespace {

// What decides about a problem's rule: what was measured under other options is not gone on from.
std::string command_of(const TuneOptions& o) {
  std::string text = "convpin tune --policy " + o.policy + " --tf32 " + o.tf32 + " --min-gain " + four_digits(o.min_gain) + " --steps " +
                     four_digits(o.steps);
  if (!o.workspace_limit.empty()) text += " --workspace-limit '" + o.workspace_limit + "'";
  if (o.wants_energy())
    text += " --energy-seconds " + four_digits(o.energy_plan.seconds) + " --energy-repeats " + std::to_string(o.energy_plan.repeats);
  if (!o.allow.empty()) text += " --allow " + join(o.allow, ",");
  for (const auto& [flag, given] : {std::pair("deterministic", o.deterministic), std::pair("knobs", o.knobs),
                                    std::pair("cold-cache", o.cold), std::pair("energy", o.energy)})
    if (given) text += std::string(" --") + flag;
  return text;
}

}  // namespace

TuneState::TuneState(std::string path, const Gpu& gpu, const TuneOptions& options, std::optional<double> idle_w)
    : path_(std::move(path)), command_(command_of(options)), gpu_(gpu) {
  if (!path_.empty() && std::filesystem::exists(path_)) text_ = read_file(path_);
  if (!text_.empty()) read_log(text_, path_, before_);
  Header h;
  h.started_unix_us = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  run_id_ = h.run_id = "tune-" + std::to_string(getpid()) + "-" + std::to_string(h.started_unix_us);
  h.convpin_version = CONVPIN_VERSION;
  h.cudnn_version = cudnn_ = version_text(gpu.cudnn.library.version);
  h.pid = getpid();
  h.command = command_;
  h.device.name = device_.name = gpu.name;
  h.repeats = options.rounds;
  if (idle_w) h.settings.emplace_back("idle_power_w", four_digits(*idle_w));
  add(header_record(h));
}

bool TuneState::has(const Usage& usage) const {
  for (const Run& run : before_.runs)
    for (const auto& [id, p] : run.problems)
      if (run.command == command_ && p.text == usage.text && p.gpu == gpu_.name && p.cudnn == cudnn_ && !p.candidates.empty()) return true;
  return false;
}

void TuneState::add(const Usage& usage, const std::vector<Candidate>& candidates, const Tuned& tuned) {
  add(problem_record(++problems_, usage.problem, "graph", device_, cudnn_));
  for (const Candidate& c : candidates) add(candidate_record(problems_, usage.problem, c));
  if (tuned.chosen) {
    const Candidate& c = candidates[*tuned.chosen];
    Choice choice;
    choice.kind = ChoiceKind::Tuned;
    choice.api = "graph";
    choice.ran = to_tag(c.engine);
    choice.reason = tuned.reason;
    add(choice_record(problems_, usage.problem, choice, c));
    if (usage.calls > 0) add(count_record(problems_, choice.ran, usage.calls));
  }
  write();
}

void TuneState::end() {
  add(end_record({}));
  write();
}

Log TuneState::log() const {
  Log all;
  read_log(text_, path_.empty() ? "the tuning" : path_, all);
  std::erase_if(all.runs, [&](const Run& run) { return run.command != command_; });
  return all;
}

void TuneState::add(const std::string& record) { text_ += with_run_id(record, run_id_) + "\n"; }

void TuneState::write() const {
  if (!path_.empty()) write_output(path_, text_);
}

}  // namespace convpin::cli
