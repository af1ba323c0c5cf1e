// The log's records (JSON lines, schema version 1) and the table on stderr, as pure functions on plain data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "shim/model/candidate.hpp"
#include "shim/model/problem.hpp"

namespace convpin {

struct Device {
  std::string name;                              // "NVIDIA H200"; "" where there is none
  std::string uuid, pci;
  int ordinal = -1;
  int compute_capability = 0;                    // 90
  int driver_version = 0;                        // cuDriverGetVersion: 13000
  std::string driver;                            // NVML's: "580.159.04", "" if unknown
  std::int64_t memory_bytes = 0;
  std::optional<int> sm_clock_mhz, memory_clock_mhz, power_limit_mw;
  std::optional<bool> mig;
};

struct Header {
  std::string run_id, convpin_version, cudnn_version, host, command;
  std::int64_t started_unix_us = 0;
  int pid = 0, rank = -1, local_rank = -1;
  Device device;
  std::vector<std::pair<std::string, std::string>> settings;   // not default: name, value
  int warmup = 0, repeats = 0;
};

// How one convolution is known in the log: its number, counted from 1 in order of first meeting.
using ProblemId = int;

// Each is one line without its newline, under PIPE_BUF (4096) bytes; over-long free texts are cut. `type` says which.
std::string header_record(const Header&);
std::string problem_record(ProblemId, const Problem&, const std::string& api, const Device&, const std::string& cudnn_version);
std::string try_record(ProblemId, const Problem&, const Candidate&);  // "about to try", before each launch
std::string candidate_record(ProblemId, const Problem&, const Candidate&);
std::string choice_record(ProblemId, const Problem&, const Choice&, const Candidate& ran);
// The same of a problem that fails, so that nothing ran; `asked`: what its replay line names.
std::string failed_choice_record(ProblemId, const Problem&, const Choice&, const Candidate& asked);
std::string query_record(ProblemId, const std::string& function, const std::vector<Candidate>& got);  // application's own Get or Find
std::string count_record(ProblemId, const std::string& ran, std::uint64_t calls);
std::string label_record(ProblemId, const std::string& label);  // a module of the program that ran it

// A call of the program's that cuDNN failed. Empty texts: not known, or there is none.
struct Failure {
  std::string call;                              // "cudnnBackendFinalize"
  std::string descriptor, attribute;             // "OPERATIONGRAPH", "TENSOR_DIMENSIONS"
  std::string status, reason;                    // "CUDNN_STATUS_BAD_PARAM", cuDNN's own words
  std::string problem, replay;                   // text form, and the command line that does it again
  ProblemId problem_id = 0;                      // 0: the log has no such problem (yet)
  std::uint64_t times = 1;
};
// Written at the first failure of its kind, and again with the last count at the end: the last of an id counts.
std::string failure_record(int failure_id, const Failure&);
// "convpin replay 'forward x=...' --candidate eng38_k2=1", to paste into a shell; with --legacy where the candidate has a
// math type. One with neither engine nor algorithm: without --candidate.
std::string replay_line(const Problem&, const Candidate&);

// The same record with the id of the run it belongs to: processes may share a file.
std::string with_run_id(const std::string& record, const std::string& run_id);
struct Totals {
  std::uint64_t problems = 0, calls = 0, pinned_problems = 0, unsupported_problems = 0, pinned_calls = 0;
  std::uint64_t failed_problems = 0;             // that failed by a rule, a denial or a setting, and never ran
  std::uint64_t failed_calls = 0;                // calls that cuDNN failed, other than by refusing
};
std::string end_record(const Totals&);

// The table: the problem's line, one line a candidate (fastest first, refused last, the running one marked `*`),
// "supported forward algorithms, fastest first: ...". Lines end in '\n' and begin as the README shows. `label`, of the
// module that ran the problem, stands behind it; empty for none.
std::string candidate_table(const Problem&, std::vector<Candidate>, const Device&, const std::string& cudnn_version,
                            const std::string& label = {});
// One line instead of the table, for the fourth problem and later. Ends in '\n' as the table does.
std::string candidate_summary(const Problem&, const std::vector<Candidate>&, const std::string& label = {});
// "convpin: requested forward algorithm 1 (IMPLICIT_PRECOMP_GEMM) is set", or why it is not and what runs
// instead; empty for LeftAlone and Tuned. Without a newline, as end_line.
std::string choice_line(const Problem&, const Choice&, const std::string& label = {});
std::string end_line(const Totals&);             // problems, calls, pinned, unsupported, failed if any; "0 convolutions reached"

std::string four_digits(double);                 // four significant digits, never in exponent form: 0.1088, 12.60, 1234

}  // namespace convpin
