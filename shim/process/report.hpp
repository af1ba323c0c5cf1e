// What this process tells of its problems: records for its log, and words for a person.
#pragma once

#include <string>
#include <vector>

#include "shim/process/runtime.hpp"

namespace convpin {

// Writes the problem's record where this process's log has none yet: before any other record of it.
void announce(ProblemState&);
void record(const std::string& line);         // to the log, with the header before the first
void log_counts();                            // count records for what changed since the last

const Device& device_of_process(const Library&);         // the first problem's device
std::string cudnn_version_text(const Library&);          // "9.19.0"

// After the first execution in this way: logs and says the choice; once for each way a problem ran.
void report_choice(ProblemState&, const Choice&, const Candidate& ran, const Library&);
// Logs that it fails, and why: once for each time that is said (say_failure). `asked`: what its rule names.
void report_failed(ProblemState&, const Choice&, const Candidate& asked);
// Says `candidates` as a table (the first three problems) or as a line, and logs them.
void report_profile(ProblemState&, const std::vector<Candidate>& candidates, const Library&);

Totals totals();                              // for the end line and its record

}  // namespace convpin
