// What a report says, before it is a page, a text or a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/convpin/table.hpp"
#include "tools/convpin/usage.hpp"

namespace convpin::cli {

// Of all problems, of one operation, or of one layer.
struct Total {
  std::string name;
  int problems = 0;
  std::uint64_t calls = 0;
  double time_ms = 0;                            // calls x the time of what ran, over the problems that were profiled
  double gained_ms = 0;                          // against the framework's choice
  double energy_mj = 0;                          // calls x the energy of what ran, where it was measured
  std::uint64_t untimed_calls = 0;               // of problems without a time
};

struct Report {
  std::vector<std::string> warnings;             // what the reader should know first
  std::vector<Run> runs;
  std::vector<Usage> usages;                     // most time first
  Total all;
  std::vector<Total> by_operation, by_label;     // most time first; by_label is empty where nobody named layers
};

Report make_report(const Log&);

std::string report_page(const Report&);          // HTML, with nothing from elsewhere
std::string report_text(const Report&);
Table report_table(const Report&);               // a row a candidate, and one for what failed

}  // namespace convpin::cli
