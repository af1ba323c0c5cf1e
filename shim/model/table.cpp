// What stderr shows: the table of candidates, and the single lines.
#include <algorithm>
#include <array>
#include <cmath>

#include "shim/model/record.hpp"
#include "shim/model/text.hpp"

namespace convpin {
namespace {

constexpr std::size_t kLongestReason = 160;

// One row, a text a column. The last column has no width.
using Row = std::array<std::string, 6>;  // algo, engine, time, workspace, notes, remark
constexpr std::array<std::size_t, 5> kWidths = {28, 9, 11, 12, 21};  // the narrowest

std::string titled(const Problem& problem, const std::string& label) {
  return to_text(problem) + (label.empty() ? "" : " [" + label + "]");
}

bool possible(const Candidate& c) { return c.status != CandidateStatus::Unsupported; }

bool is_runnable(const Candidate& c) {
  return c.status == CandidateStatus::Ok || c.status == CandidateStatus::TooSlow;
}

// Fastest first, refused last; within one kind as they came.
void sort_for_reading(std::vector<Candidate>& candidates) {
  const auto group = [](const Candidate& c) {
    switch (c.status) {
      case CandidateStatus::Ok:
        return c.time_ms ? 0 : 1;
      case CandidateStatus::TooSlow:
        return 2;
      case CandidateStatus::NoMemory:
        return 3;
      case CandidateStatus::Skipped:
        return 4;
      case CandidateStatus::Unsupported:
        break;
    }
    return 5;
  };
  std::ranges::stable_sort(candidates, {}, [&](const Candidate& c) {
    return std::pair(group(c), c.time_ms && !std::isnan(*c.time_ms) ? *c.time_ms : HUGE_VAL);
  });
}

// The one that runs, as read back. Where nobody says, as in a list made without running: what was asked for if it can
// be, else what the framework chose.
const Candidate* running(const std::vector<Candidate>& candidates) {
  for (const Candidate& c : candidates)
    if (c.running) return &c;
  for (const Candidate& c : candidates)
    if (c.requested && possible(c)) return &c;
  for (const Candidate& c : candidates)
    if (c.framework_choice) return &c;
  return nullptr;
}

std::string algo_text(const Candidate& c) {
  if (c.algorithm < 0) return "-";
  return std::to_string(c.algorithm) + " " + algorithm_name(c.operation, c.algorithm);
}

// An engine without its knobs, unless only they tell two rows apart.
std::string engine_text(const Candidate& c, const std::vector<Candidate>& all) {
  if (!c.parts.empty()) return "apart";
  if (c.engine.engine < 0) return "-";
  const auto same = [&](const Candidate& other) { return other.engine.engine == c.engine.engine; };
  return std::ranges::count_if(all, same) > 1 ? to_tag(c.engine) : "eng" + std::to_string(c.engine.engine);
}

std::string time_text(const Candidate& c) {
  if (!possible(c)) return "-1";
  return c.time_ms ? four_digits(*c.time_ms) : "-";
}

std::string notes_text(const Candidate& c, DataType type) {
  constexpr int kNondeterministic = 4, kRuntimeCompilation = 0, kDefaultMath = 0;
  std::vector<std::string> notes;
  for (const int note : c.numerical_notes) notes.push_back(numerical_note_name(note, type));
  if (c.deterministic == false && std::ranges::count(c.numerical_notes, kNondeterministic) == 0)
    notes.push_back(numerical_note_name(kNondeterministic, type));
  if (std::ranges::count(c.behavior_notes, kRuntimeCompilation) > 0)
    notes.push_back(lower(cudnn_behavior_note(kRuntimeCompilation)));
  if (c.math_type > kDefaultMath) notes.push_back(lower(cudnn_math_type(c.math_type)));
  return join(notes, ",");
}

std::string refusal(const Candidate& c) {
  const char* what = nullptr;
  switch (c.status) {
    case CandidateStatus::Ok:
      return {};
    case CandidateStatus::Unsupported:
      what = "not supported";
      break;
    case CandidateStatus::NoMemory:
      what = "not enough memory";
      break;
    case CandidateStatus::TooSlow:
      what = "too slow";
      break;
    case CandidateStatus::Skipped:
      what = "skipped";
      break;
  }
  const std::string reason = one_line(c.reason, kLongestReason);
  if (reason.starts_with(what)) return reason;  // cuDNN's own "not supported: arch mismatch"
  return reason.empty() ? what : what + (": " + reason);
}

std::string remark_text(const Candidate& c) {
  if (!c.parts.empty()) return "not fused: " + join(c.parts, ", ");
  if (c.requested && c.framework_choice) return "requested; same as the framework's choice";
  if (c.requested) return "requested";
  return c.framework_choice ? "the framework's choice" : "";
}

Row row_of(const Candidate& c, const std::vector<Candidate>& all, DataType type) {
  const std::string refused = refusal(c);
  return {algo_text(c),
          engine_text(c, all),
          time_text(c),
          c.workspace_bytes && possible(c) ? std::to_string(*c.workspace_bytes) : "",
          refused.empty() ? notes_text(c, type) : refused + (remark_text(c).empty() ? "" : "; " + remark_text(c)),
          refused.empty() ? remark_text(c) : ""};
}

std::string line_of(const Row& row, const std::array<std::size_t, 5>& widths, bool marked) {
  std::string line = marked ? "* " : "  ";
  for (std::size_t i = 0; i < row.size(); ++i) {
    line += row[i];
    if (i < widths.size()) line.append(widths[i] > row[i].size() ? widths[i] - row[i].size() : 1, ' ');
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

// A refusal's reason may be long; what stands behind it need not move all other rows.
std::array<std::size_t, 5> widths_of(const std::vector<Row>& rows, const std::vector<Candidate>& candidates) {
  std::array<std::size_t, 5> widths = kWidths;
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (i != 4 || candidates[r].status == CandidateStatus::Ok)
        widths[i] = std::max(widths[i], rows[r][i].size() + 2);
  return widths;
}

std::string place(const Device& device, const std::string& cudnn_version) {
  std::vector<std::string> parts;
  if (!device.name.empty()) parts.push_back(device.name);
  if (!cudnn_version.empty()) parts.push_back("cuDNN " + cudnn_version);
  return parts.empty() ? "" : "   (" + join(parts, ", ") + ")";
}

// By number, each once; the candidates come sorted.
std::string supported_line(const Problem& problem, const std::vector<Candidate>& sorted) {
  std::vector<int> numbers;
  std::string text;
  for (const Candidate& c : sorted) {
    if (!is_runnable(c) || c.algorithm < 0 || std::ranges::count(numbers, c.algorithm) > 0) continue;
    numbers.push_back(c.algorithm);
    text += " " + std::to_string(c.algorithm);
  }
  std::string untimed;
  for (const Candidate& c : sorted) {
    if (!possible(c) || c.algorithm < 0 || std::ranges::count(numbers, c.algorithm) > 0) continue;
    numbers.push_back(c.algorithm);
    untimed += " " + std::to_string(c.algorithm);
  }
  return "convpin: supported " + words_for(problem.operation) +
         " algorithms, fastest first:" + (text.empty() ? " none" : text) +
         (untimed.empty() ? "" : "; not timed:" + untimed) + "\n";
}

std::string short_text(const Candidate& c) {
  std::vector<std::string> parts;
  if (c.algorithm >= 0) parts.push_back(algo_text(c));
  if (c.engine.engine >= 0) parts.push_back("eng" + std::to_string(c.engine.engine));
  if (c.time_ms) parts.push_back(four_digits(*c.time_ms) + " ms");
  return join(parts, " ");
}

std::string plural(std::uint64_t count, const char* word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

}  // namespace

std::string four_digits(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : "inf";
  if (value == 0) return "0";
  // Rounded to four digits first, since 9.9999 has one digit less behind the point than 9.999.
  std::array<char, 400> text;
  auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific, 3).ptr;
  *end = '\0';  // to_chars writes none, and strtol below reads on to it
  double rounded = 0;
  std::from_chars(text.data(), end, rounded);
  const std::string_view scientific(text.data(), static_cast<std::size_t>(end - text.data()));
  const int exponent =
      static_cast<int>(std::strtol(scientific.data() + scientific.find('e') + 1, nullptr, 10));
  const int decimals = std::clamp(3 - exponent, 0, 12);
  end =
      std::to_chars(text.data(), text.data() + text.size(), rounded, std::chars_format::fixed, decimals).ptr;
  return std::string(text.data(), end);
}

std::string candidate_table(const Problem& problem, std::vector<Candidate> candidates, const Device& device,
                            const std::string& cudnn_version, const std::string& label) {
  sort_for_reading(candidates);
  const Candidate* marked = running(candidates);
  std::vector<Row> rows;
  for (const Candidate& c : candidates) rows.push_back(row_of(c, candidates, problem.x.type));
  const auto widths = widths_of(rows, candidates);
  std::string table = "convpin: " + titled(problem, label) + place(device, cudnn_version) + "\n";
  table += line_of({"algo", "engine", "time ms", "workspace", "notes", ""}, widths, false);
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    // At level engines most of eighty are refused; the log has them all, with their reasons.
    if (!possible(candidates[i]) && candidates[i].algorithm < 0 && !candidates[i].requested)
      ++left_out;
    else
      table += line_of(rows[i], widths, &candidates[i] == marked);
  }
  if (left_out > 0) table += "  and " + plural(left_out, "engine") + " not supported here: the log says why\n";
  const bool any = std::ranges::any_of(candidates, [](const Candidate& c) { return c.algorithm >= 0; });
  return any ? table + supported_line(problem, candidates) : table;
}

std::string candidate_summary(const Problem& problem, const std::vector<Candidate>& candidates, const std::string& label) {
  std::vector<std::string> parts;
  if (const Candidate* runs = running(candidates)) {
    const char* why = runs->requested ? " (requested)" : " (the framework's choice)";
    parts.push_back(short_text(*runs) + why);
  }
  std::vector<Candidate> sorted = candidates;
  sort_for_reading(sorted);
  if (!sorted.empty() && sorted.front().status == CandidateStatus::Ok && sorted.front().time_ms)
    parts.push_back("fastest " + short_text(sorted.front()));
  const auto runnable = std::ranges::count_if(candidates, is_runnable);
  parts.push_back(std::to_string(runnable) + " of " + std::to_string(candidates.size()) + " supported");
  return "convpin: " + titled(problem, label) + ": " + join(parts, "; ") + "\n";
}

std::string choice_line(const Problem& problem, const Choice& choice, const std::string& label) {
  const bool engine = choice.requested.starts_with("eng"), policy = choice.requested.starts_with("the ");
  const std::string what = "requested " + words_for(problem.operation) +
                           (engine ? " engine " : policy ? ": " : " algorithm ") + choice.requested;
  const std::string instead =
      "the framework's choice runs instead" + (choice.ran.empty() ? "" : " (" + choice.ran + ")");
  const std::string reason =
      choice.reason.empty() ? "no reason was given" : one_line(choice.reason, kLongestReason);
  switch (choice.kind) {
    case ChoiceKind::LeftAlone:
    case ChoiceKind::Tuned:
      return {};
    case ChoiceKind::Set:
      return "convpin: " + what + " is set";
    case ChoiceKind::Unsupported:
      return "convpin: warning: " + what + " is not possible for " + titled(problem, label) + ": " + reason + "; " +
             instead;
    case ChoiceKind::Refused:
      return "convpin: warning: " + what + " for " + titled(problem, label) +
             " was not taken by the framework: " + reason + "; " + instead;
  }
  return {};
}

std::string end_line(const Totals& totals) {
  if (totals.problems == 0 && totals.calls == 0) return "convpin: 0 convolutions reached";
  return "convpin: " + plural(totals.problems, "problem") + ", " + plural(totals.calls, "call") + ", " +
         std::to_string(totals.pinned_problems) + " pinned, " + std::to_string(totals.unsupported_problems) + " unsupported" +
         (totals.failed_problems == 0 ? "" : ", " + std::to_string(totals.failed_problems) + " failed");
}

}  // namespace convpin
