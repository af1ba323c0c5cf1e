// report: totals, warnings, and the long table.
#include "tools/convpin/report.hpp"

#include <algorithm>

#include "shim/model/record.hpp"
#include "shim/model/text.hpp"
#include "tools/convpin/command.hpp"
#include "tools/convpin/counted.hpp"
#include "tools/convpin/files.hpp"

namespace convpin::cli {
namespace {

void add(const Usage& usage, Total& total) {
  ++total.problems;
  total.calls += usage.calls;
  const LoggedCandidate* is = usage.chosen();
  if (is) total.energy_mj += is->energy_mj.value_or(0) * static_cast<double>(usage.calls);
  if (is && is->time_ms) {
    total.time_ms += *is->time_ms * static_cast<double>(usage.calls);
    total.gained_ms += usage.gained_ms().value_or(0);
  } else {
    total.untimed_calls += usage.calls;
  }
}

void add(const Usage& usage, const std::string& name, std::vector<Total>& totals) {
  auto at = std::ranges::find(totals, name, &Total::name);
  if (at == totals.end()) {
    Total total;
    total.name = name;
    at = totals.insert(at, std::move(total));
  }
  add(usage, *at);
}

std::string times(double factor) { return four_digits(factor) + " times"; }

void warn_of(const Usage& usage, std::vector<std::string>& warnings) {
  constexpr double kSlower = 1.05;
  const auto warn = [&](const std::string& what) { warnings.push_back(usage.text + " (" + usage.api + "): " + what); };
  if (usage.failed) warn("it failed: " + usage.failed->reason);
  for (const Ran& ran : usage.ran) {
    const LoggedChoice& c = ran.choice;
    if (c.kind == ChoiceKind::Unsupported || c.kind == ChoiceKind::Refused)
      warn(c.requested + " was asked for and is not set: " + (c.reason.empty() ? name_of(c.kind) : c.reason) + "; " + c.ran +
           " ran instead");
  }
  const LoggedCandidate *own = usage.framework_choice(), *is = usage.chosen();
  if (own && is && own->time_ms && is->time_ms && *own->time_ms > 0 && *is->time_ms > kSlower * *own->time_ms)
    warn(usage.ran.front().choice.ran + " takes " + times(*is->time_ms / *own->time_ms) + " as long as the framework's choice, " +
         own->identity());
}

// What a program is refused while it looks for a plan is routine; all else that failed is worth a look.
void warn_of(const Run& run, const LoggedFailure& f, std::vector<std::string>& warnings) {
  for (const char* routine : {"CUDNN_STATUS_NOT_SUPPORTED", "CUDNN_STATUS_ARCH_MISMATCH", "CUDNN_STATUS_RUNTIME_PREREQUISITE_MISSING"})
    if (f.status.starts_with(routine)) return;
  std::string what = f.call + (f.descriptor.empty() ? "" : " of " + f.descriptor) + (f.attribute.empty() ? "" : ", " + f.attribute);
  what += " failed with " + f.status + (f.reason.empty() ? "" : " (" + f.reason + ")");
  if (f.times > 1) what += ", " + counted(f.times, "time");
  warnings.push_back(run.file + ": " + what + (f.problem.empty() ? "" : "; " + f.problem) + (f.replay.empty() ? "" : "; again: " + f.replay));
}

// Runs of one log that ran the same problem mostly by different things.
void warn_of_disagreement(const Log& log, std::vector<std::string>& warnings) {
  std::vector<std::pair<std::string, std::string>> first;  // problem and API, what ran
  int disagreeing = 0;
  for (const Run& run : log.runs) {
    Log one;
    one.runs.push_back(run);
    for (const Usage& usage : usages_of(one)) {
      if (usage.ran.empty()) continue;
      const std::string key = usage.text + usage.api, &what = usage.ran.front().choice.ran;
      const auto known = std::ranges::find(first, key, &std::pair<std::string, std::string>::first);
      if (known == first.end()) {
        first.emplace_back(key, what);
      } else if (known->second != what) {
        ++disagreeing;
        known->second = what;
      }
    }
  }
  if (disagreeing > 0)
    warnings.push_back("the runs don't agree on what runs some of the problems (convpin diff shows which): " +
                       counted(disagreeing, "change"));
}

}  // namespace

Report make_report(const Log& log) {
  Report r;
  r.runs = log.runs;
  r.usages = usages_of(log);
  sort_by_weight(r.usages);
  r.all.name = "all";
  const bool labelled = std::ranges::any_of(r.usages, [](const Usage& u) { return !u.labels.empty(); });
  for (const Usage& usage : r.usages) {
    add(usage, r.all);
    add(usage, words_for(usage.problem.operation), r.by_operation);
    if (labelled) add(usage, usage.labels.empty() ? "(no label)" : join(usage.labels, ", "), r.by_label);
  }
  for (auto* totals : {&r.by_operation, &r.by_label}) std::ranges::stable_sort(*totals, std::greater{}, &Total::time_ms);

  r.warnings = log.warnings;
  if (r.usages.empty()) r.warnings.push_back("no convolution was reached");
  for (const Run& run : log.runs)
    for (const LoggedFailure& failure : run.failures) warn_of(run, failure, r.warnings);
  for (const Usage& usage : r.usages) warn_of(usage, r.warnings);
  warn_of_disagreement(log, r.warnings);
  if (!r.usages.empty() && r.all.untimed_calls == r.all.calls)
    r.warnings.push_back("no times are known: record with CONVPIN_PROFILE=algorithms (or engines)");
  return r;
}

Table report_table(const Report& r) {
  Table table{{"gpu",       "cudnn",           "api",           "operation",       "problem",
               "label",     "calls",           "algo",          "algo_name",       "engine",
               "status",    "reason",          "time_ms",       "time_iqr_ms",     "memory_bytes",
               "energy_mj", "error",           "deterministic", "numerical_notes", "behavior_notes",
               "chosen",    "framework_choice"},
              {}};
  const auto optional = [](const auto& value) { return value ? Json(*value) : Json(); };
  const auto names = [](const std::vector<int>& notes, auto name) {
    Json list = Json::array();
    for (const int note : notes) list.push_back(lower(name(note)));
    return list;
  };
  for (const Usage& u : r.usages) {
    const LoggedCandidate* chosen = u.chosen();
    std::vector<const LoggedCandidate*> rows;
    for (const LoggedCandidate& c : u.candidates) rows.push_back(&c);
    if (chosen && std::ranges::find(rows, chosen) == rows.end()) rows.push_back(chosen);  // it ran and was not profiled
    const auto add = [&](const LoggedCandidate& c, const char* status, const std::string& reason) {
      table.rows.push_back({u.gpu,
                            u.cudnn,
                            u.api,
                            name_of(u.problem.operation),
                            u.text,
                            join(u.labels, ", "),
                            u.calls,
                            c.algorithm < 0 ? Json() : Json(c.algorithm),
                            algorithm_name(c.operation, c.algorithm),
                            c.engine.engine < 0 ? Json() : Json(to_tag(c.engine)),
                            status,
                            reason,
                            optional(c.time_ms),
                            optional(c.time_iqr_ms),
                            optional(c.workspace_bytes),
                            optional(c.energy_mj),
                            optional(c.error),
                            optional(c.deterministic),
                            names(c.numerical_notes, cudnn_numerical_note),
                            names(c.behavior_notes, cudnn_behavior_note),
                            &c == chosen,
                            u.is_framework_choice(c)});
    };
    if (u.failed) add(u.failed->plan, "failed", u.failed->reason);
    for (const LoggedCandidate* c : rows) add(*c, name_of(c->status), c->reason);
  }
  return table;
}

// Of a problem that was not profiled: what ran, and that nothing was timed beside it.
std::string unprofiled_text(const Usage& u) {
  std::vector<std::string> place;
  if (!u.gpu.empty()) place.push_back(u.gpu);
  if (!u.cudnn.empty()) place.push_back("cuDNN " + u.cudnn);
  std::string text = "convpin: " + u.text + (place.empty() ? "" : "   (" + join(place, ", ") + ")") + "\n";
  for (const Ran& ran : u.ran) {
    const auto& bytes = ran.choice.plan.workspace_bytes;
    text += "  " + ran.choice.ran + " ran in " + counted(ran.calls, "call") + (bytes ? ", workspace " + counted(*bytes, "byte") : "") +
            (by_framework(ran.choice.kind) ? ", the framework's choice" : "") + "\n";
  }
  return text + "  no candidate was tried or timed: the log has no profile\n";
}

std::string report_text(const Report& r) {
  std::string text;
  for (const std::string& warning : r.warnings) text += "warning: " + warning + "\n";
  if (!text.empty()) text += "\n";
  const auto totals = [&](const char* by, const std::vector<Total>& list) {
    Table table{{by, "problems", "calls", "time_ms", "gained_ms", "calls_without_a_time"}, {}};
    for (const Total& t : list) table.rows.push_back({t.name, t.problems, t.calls, t.time_ms, t.gained_ms, t.untimed_calls});
    if (!list.empty()) text += table.text() + "\n";
  };
  totals("operation", r.by_operation);
  totals("label", r.by_label);
  for (const Usage& u : r.usages) {
    Device device;
    device.name = u.gpu;
    std::vector<Candidate> candidates(u.candidates.begin(), u.candidates.end());
    const LoggedCandidate* chosen = u.chosen();
    for (Candidate& c : candidates)
      c.running = chosen && c.engine == chosen->engine && c.algorithm == chosen->algorithm && c.math_type == chosen->math_type;
    text += candidates.empty() ? unprofiled_text(u) : candidate_table(u.problem, candidates, device, u.cudnn);
    text += "  " + counted(u.calls, "call") + " (" + u.api + ")" + (u.labels.empty() ? "" : ": " + join(u.labels, ", ")) +
            (u.failed ? "; it failed: " + u.failed->reason : "") + "\n\n";
  }
  return text;
}

Action declare_report(CLI::App& app, const Program&) {
  struct Options {
    std::vector<std::string> logs;
    bool text = false, csv = false, json = false;
  };
  auto options = std::make_shared<Options>();
  app.add_option("log", options->logs, "logs of convpin run --record; - is standard input")->required()->type_name("FILE");
  const auto output = declare_output(app, "the report");
  CLI::Option_group* form = app.add_option_group("form", "instead of a page");
  form->add_flag("--text", options->text, "as text");
  form->add_flag("--csv", options->csv, "as CSV, a row a candidate");
  form->add_flag("--json", options->json, "the same table as JSON");
  form->require_option(0, 1);
  return [options, output] {
    keep_apart(*output, options->logs);
    const Report report = make_report(read_logs(options->logs));
    for (const std::string& warning : report.warnings) say("warning: " + warning);
    write_output(*output, options->text   ? report_text(report)
                          : options->csv  ? report_table(report).csv()
                          : options->json ? report_table(report).json().dump(2) + "\n"
                                          : report_page(report));
    return kYes;
  };
}

}  // namespace convpin::cli
