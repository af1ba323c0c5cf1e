// Logs (JSON lines, schema 1, written by shim/model/record.cpp) as plain structs. One file may hold several runs, told
// apart by run_id. What a killed process left behind does not stop the reading: each such line is one warning.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shim/model/candidate.hpp"
#include "shim/model/problem.hpp"
#include "shim/model/record.hpp"

namespace convpin::cli {

struct LoggedCandidate : Candidate {
  std::string identity() const;                  // as `ran` has it: "eng38_k2=1", "1 IMPLICIT_PRECOMP_GEMM"
};

struct LoggedChoice : Choice {
  LoggedCandidate plan;                          // what ran: identity and properties, without times
};

// One problem of one run.
struct LoggedProblem {
  std::string text;                              // canonical
  Problem problem;
  std::string api, gpu, cudnn;                   // "graph" or "legacy"; "" where the log doesn't say
  std::vector<std::string> labels;               // the layers that ran it, where somebody named them
  std::vector<LoggedCandidate> candidates;       // the last record of each identity
  std::vector<LoggedChoice> choices;             // the last of each `ran`, which is empty where it failed, in their order
  std::map<std::string, std::uint64_t> calls;    // by `ran`: the last count of each
};

// A kind of call that cuDNN failed, as record.hpp has it.
struct LoggedFailure : Failure {
  int id = 0;
};

struct Run {
  std::string id, file, convpin, cudnn, gpu, host, command;
  int rank = -1, pid = 0;
  int compute_capability = 0;
  std::vector<std::pair<std::string, std::string>> settings;
  int warmup = 0, repeats = 0;
  bool ended = false;                            // an orderly exit
  std::map<int, LoggedProblem> problems;         // by problem_id
  std::vector<LoggedFailure> failures;           // the last record of each
};

struct Log {
  std::vector<Run> runs;                         // in order of their headers
  std::vector<std::string> warnings;             // "run.jsonl:7: ..."
};

// Adds what `text`, the content of the file called `name`, holds. Throws BadUse with file and line for another schema, and
// where there is no run in it at all.
void read_log(std::string_view text, const std::string& name, Log&);
// The files, in order; "-" is standard input. Throws BadUse.
Log read_logs(const std::vector<std::string>& files);

}  // namespace convpin::cli
