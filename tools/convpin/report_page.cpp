// The report as one HTML page: no script is needed to read it, and nothing is fetched.
#include <algorithm>
#include <cmath>

#include "shim/model/record.hpp"
#include "shim/model/text.hpp"
#include "tools/convpin/counted.hpp"
#include "tools/convpin/report.hpp"
#include "tools/convpin/report_style.hpp"

namespace convpin::cli {
namespace {

constexpr double kFar = 5;  // times the fastest (the page says five); what takes longer is folded away

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string element(const std::string& name, const std::string& content, const std::string& attributes = "") {
  return "<" + name + (attributes.empty() ? "" : " " + attributes) + ">" + content + "</" + name.substr(0, name.find(' ')) + ">";
}

std::string bytes_text(std::int64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return (unit == 0 ? std::to_string(bytes) : four_digits(value)) + " " + kUnits[unit];
}

std::string milliseconds(double ms) { return std::abs(ms) >= 1000 ? four_digits(ms / 1000) + " s" : four_digits(ms) + " ms"; }

// A number with a bar under it whose length is its part of `largest`.
std::string bar(std::optional<double> value, double largest, const std::string& text) {
  if (!value) return "<td class=none>–</td>";
  const double percent = largest > 0 ? std::clamp(*value / largest * 100, 0.0, 100.0) : 0;
  return "<td class=num>" + escaped(text) + "<div class=bar><div style=\"width:" + four_digits(std::max(percent, 0.01)) +
         "%\"></div></div></td>";
}

std::string totals_table(const std::string& by, const std::vector<Total>& totals, const Total& all) {
  std::string rows;
  for (const Total& t : totals)
    rows +=
        "<tr>" + element("td", escaped(t.name)) + element("td", std::to_string(t.problems), "class=num") +
        element("td", std::to_string(t.calls), "class=num") +
        bar(t.calls > t.untimed_calls ? std::optional(t.time_ms) : std::nullopt, all.time_ms,
            milliseconds(t.time_ms) + (all.time_ms > 0 ? ", " + std::to_string(std::lround(t.time_ms / all.time_ms * 100)) + " %" : "")) +
        element("td", t.gained_ms == 0 ? "–" : milliseconds(t.gained_ms), "class=num") +
        (all.energy_mj > 0 ? bar(t.energy_mj, all.energy_mj, four_digits(t.energy_mj / 1000) + " J") : "") + "</tr>";
  return "<div class=wide><table class=totals><thead><tr><th>" + by +
         "</th><th class=num>problems</th><th class=num>calls</th><th class=num>calls × time</th><th "
         "class=num>gained</th>" +
         (all.energy_mj > 0 ? "<th class=num>calls × energy</th>" : "") + "</tr></thead><tbody>" + rows + "</tbody></table></div>";
}

std::string notes_of(const LoggedCandidate& c, DataType type) {
  std::vector<std::string> notes;
  for (const int note : c.numerical_notes) notes.push_back(numerical_note_name(note, type));
  if (c.deterministic == false && std::ranges::find(notes, "nondeterministic") == notes.end()) notes.emplace_back("nondeterministic");
  for (const int note : c.behavior_notes)
    if (note == 0) notes.push_back(lower(cudnn_behavior_note(note)));
  if (c.math_type > 0) notes.push_back(lower(cudnn_math_type(c.math_type)));
  if (c.status != CandidateStatus::Ok) notes.push_back(std::string(name_of(c.status)) + (c.reason.empty() ? "" : ": " + c.reason));
  return join(notes, ", ");
}

std::string candidate_row(const Usage& u, const LoggedCandidate& c, const LoggedCandidate& largest) {
  const bool chosen = &c == u.chosen();
  std::string marks;
  if (chosen) marks += "<span class=mark>ran</span>";
  if (u.is_framework_choice(c)) marks += "<span class=mark>framework’s choice</span>";
  std::vector<std::string> what;
  if (c.engine.engine >= 0 && c.algorithm >= 0)
    what.push_back(std::to_string(c.algorithm) + " " + algorithm_name(c.operation, c.algorithm));
  if (const std::string notes = notes_of(c, u.problem.x.type); !notes.empty()) what.push_back(notes);
  std::string row = "<tr" + std::string(chosen ? " class=chosen" : "") + "><td>" + escaped(c.identity()) + marks + "<span class=notes>" +
                    escaped(join(what, " · ")) + "</span></td>";
  row += bar(c.time_ms, largest.time_ms.value_or(0), c.time_ms ? milliseconds(*c.time_ms) : "");
  row += bar(c.workspace_bytes ? std::optional(static_cast<double>(*c.workspace_bytes)) : std::nullopt,
             static_cast<double>(largest.workspace_bytes.value_or(0)), c.workspace_bytes ? bytes_text(*c.workspace_bytes) : "");
  if (largest.energy_mj) row += bar(c.energy_mj, *largest.energy_mj, c.energy_mj ? four_digits(*c.energy_mj) + " mJ" : "");
  return row + "</tr>";
}

// A row a candidate, with bars to the largest values among them.
std::string candidates_table(const Usage& u, const std::vector<const LoggedCandidate*>& candidates) {
  LoggedCandidate largest;
  for (const LoggedCandidate* c : candidates) {
    if (c->time_ms) largest.time_ms = std::max(largest.time_ms.value_or(0), *c->time_ms);
    if (c->workspace_bytes) largest.workspace_bytes = std::max(largest.workspace_bytes.value_or(0), *c->workspace_bytes);
    if (c->energy_mj) largest.energy_mj = std::max(largest.energy_mj.value_or(0), *c->energy_mj);
  }
  std::string html =
      "<div class=wide><table class=candidates><thead><tr><th>candidate</th><th class=num>time</th><th "
      "class=num>workspace</th>" +
      std::string(largest.energy_mj ? "<th class=num>energy</th>" : "") + "</tr></thead><tbody>";
  for (const LoggedCandidate* c : candidates) html += candidate_row(u, *c, largest);
  return html + "</tbody></table></div>";
}

std::string problem_section(const Usage& u, const Total& all, bool open) {
  std::vector<const LoggedCandidate*> able, refused;
  for (const LoggedCandidate& c : u.candidates) (c.status == CandidateStatus::Unsupported ? refused : able).push_back(&c);
  const LoggedCandidate* chosen = u.chosen();
  if (chosen && std::ranges::find(u.candidates, chosen->identity(), &LoggedCandidate::identity) == u.candidates.end())
    able.push_back(chosen);
  std::ranges::stable_sort(able, {}, [](const LoggedCandidate* c) { return c->time_ms.value_or(HUGE_VAL); });
  // What is far slower would make a dot of every other bar.
  const double far = able.empty() ? HUGE_VAL : kFar * able.front()->time_ms.value_or(HUGE_VAL);
  const auto first_slow = std::ranges::stable_partition(
      able, [&](const LoggedCandidate* c) { return c == chosen || c->framework_choice || !(c->time_ms && *c->time_ms > far); });
  const std::vector<const LoggedCandidate*> slow(first_slow.begin(), first_slow.end());
  able.erase(first_slow.begin(), first_slow.end());

  std::vector<std::string> facts{counted(u.calls, "call"), u.api + " API"};
  if (chosen) facts.push_back("ran " + u.ran.front().choice.ran);
  if (u.failed) facts.push_back("failed");
  if (chosen && chosen->time_ms && all.time_ms > 0)
    facts.push_back(std::to_string(std::lround(*chosen->time_ms * static_cast<double>(u.calls) / all.time_ms * 100)) + " % of the time");
  if (const auto gained = u.gained_ms(); gained && *gained != 0)
    facts.push_back((*gained > 0 ? "gained " : "lost ") + milliseconds(std::abs(*gained)));
  if (!u.ran.empty() && !u.ran.front().choice.rule.empty()) facts.push_back("by " + u.ran.front().choice.rule);

  std::string html = "<details class=problem" + std::string(open ? " open" : "") + "><summary><code>" + escaped(u.text) +
                     "</code><span class=facts>" + (u.labels.empty() ? "" : "<b>" + escaped(join(u.labels, ", ")) + "</b> · ") +
                     escaped(join(facts, " · ")) + "</span></summary>";
  if (u.failed) html += element("div", escaped("it failed: " + u.failed->reason), "class=more");
  if (!able.empty()) html += candidates_table(u, able);
  if (!slow.empty())
    html += "<details class=more><summary>" + std::to_string(slow.size()) +
            " more than five times as slow as the fastest</summary>" + candidates_table(u, slow) + "</details>";
  if (!refused.empty()) {
    html += "<details class=more><summary>" + std::to_string(refused.size()) + " not supported</summary><ul>";
    for (const LoggedCandidate* c : refused) {
      const std::string algorithm =
          c->algorithm < 0 ? "" : std::to_string(c->algorithm) + " " + algorithm_name(c->operation, c->algorithm) + ", ";
      html += element("li", escaped(algorithm + (c->engine.engine < 0 ? "legacy" : to_tag(c->engine)) + ": " + c->reason));
    }
    html += "</ul></details>";
  }
  return html + "</details>\n";
}

std::string tile(const std::string& value, const std::string& what) {
  return "<div class=tile><b>" + escaped(value) + "</b>" + escaped(what) + "</div>";
}

}  // namespace

std::string report_page(const Report& r) {
  constexpr std::size_t kOpen = 12;  // the sections that are open at first
  std::string html =
      "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport content=\"width=device-width, initial-scale=1\">"
      "<meta name=color-scheme content=\"light dark\"><title>convpin report</title><style>" +
      std::string(kReportStyle) + "</style></head><body><h1>Convolutions</h1>\n";
  for (const Run& run : r.runs)
    html += "<p class=run>" + escaped(run.gpu.empty() ? "no GPU" : run.gpu) + ", cuDNN " +
            escaped(run.cudnn.empty() ? "not loaded" : run.cudnn) + (run.rank >= 0 ? ", rank " + std::to_string(run.rank) : "") +
            ": <code>" + escaped(run.command) + "</code></p>\n";
  if (!r.warnings.empty()) {
    html += "<section class=warnings><h2>Warnings</h2><ul>";
    for (const std::string& warning : r.warnings) html += element("li", escaped(warning));
    html += "</ul></section>\n";
  }
  html += "<div class=tiles>" + tile(std::to_string(r.all.problems), r.all.problems == 1 ? "problem" : "problems") +
          tile(std::to_string(r.all.calls), r.all.calls == 1 ? "call" : "calls");
  if (r.all.time_ms > 0) {
    html += tile(milliseconds(r.all.time_ms), "calls × time of what ran");
    const double before = r.all.time_ms + r.all.gained_ms, percent = before > 0 ? 100 * std::abs(r.all.gained_ms) / before : 0;
    html += tile(milliseconds(std::abs(r.all.gained_ms)),
                 std::string(r.all.gained_ms < 0 ? "lost by the pins" : "gained by the pins") + ", " + four_digits(percent) + " %");
    if (r.all.energy_mj > 0) html += tile(four_digits(r.all.energy_mj / 1000) + " J", "calls × energy of what ran");
  }
  html += "</div>\n<h2>By operation</h2>" + totals_table("operation", r.by_operation, r.all);
  if (!r.by_label.empty()) html += "<h2>By layer</h2>" + totals_table("layer", r.by_label, r.all);
  html +=
      "\n<h2>Problems, most time first</h2><p><input id=filter type=search placeholder=\"show only what contains …\" aria-label=\"show "
      "only what contains\"></p>\n";
  for (std::size_t i = 0; i < r.usages.size(); ++i) html += problem_section(r.usages[i], r.all, i < kOpen);
  const bool tuned = std::ranges::all_of(r.runs, [](const Run& run) { return run.command.starts_with("convpin tune"); });
  html += "<footer>The bars of a table are drawn to its largest value. Times are medians" +
          std::string(tuned ? " that convpin tune measured" : " taken inside the running program, and so indications") +
          " (their spread is in convpin report --csv); memory is workspace. Gained: against the framework’s own choice, over the calls that "
          "were made. convpin " CONVPIN_VERSION "</footer><script>" +
          std::string(kReportScript) + "</script></body></html>\n";
  return html;
}

}  // namespace convpin::cli
