// What the runs of a log say together of each convolution: how often it ran, by what, and what each candidate costs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shim/model/match.hpp"
#include "tools/convpin/log.hpp"

namespace convpin::cli {

// One way in which a problem ran.
struct Ran {
  LoggedChoice choice;                           // the last that a run made of it
  std::uint64_t calls = 0;                       // over all runs
  int runs = 0;                                  // how many of them
};

// A problem on one GPU with one cuDNN, through one of the APIs.
struct Usage {
  std::string text;
  Problem problem;
  std::string api, gpu, cudnn;
  std::vector<std::string> labels;
  std::vector<Ran> ran;                          // most calls first
  std::optional<LoggedChoice> failed;            // of the last run in which it failed and never ran: what was asked, and why
  std::vector<LoggedCandidate> candidates;       // of the last run that has any
  std::uint64_t calls = 0;

  // The candidate that ran most, with its times where it was profiled; null where nothing is known.
  const LoggedCandidate* chosen() const;
  // By the profile; without one what ran most, where that was the framework's own choice.
  const LoggedCandidate* framework_choice() const;
  bool is_framework_choice(const LoggedCandidate& c) const { return c.framework_choice || &c == framework_choice(); }
  // Null where it was not profiled.
  const LoggedCandidate* find(const std::string& identity) const;
  // What it gained over the framework's choice in the calls that it ran, where both were timed.
  std::optional<double> gained_ms() const;
};

// In order of first meeting. What was asked about but neither ran nor failed (a query alone) is left out where others ran.
std::vector<Usage> usages_of(const Log&);
// The same, most time first: by calls x the time of what ran, then by calls.
void sort_by_weight(std::vector<Usage>&);

// "9.19.0" as cudnnGetVersion() gives it: 91900; 0 for what is no version.
std::size_t version_from(const std::string& text);
Place place_of(const Usage&);

}  // namespace convpin::cli
