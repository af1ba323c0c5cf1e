// A candidate: one way to run a problem, with what it costs, or the reason it was refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shim/model/algorithm.hpp"
#include "shim/model/problem.hpp"

namespace convpin {

enum class CandidateStatus : std::uint8_t { Ok, Unsupported, NoMemory, TooSlow, Skipped };
const char* name_of(CandidateStatus);            // "ok", "unsupported", "no_memory", "too_slow", "skipped"

// cudnnBackendNumericalNote_t and the legacy cudnnMathType_t, in one set of words for people.
// NumericalNote values are cuDNN's (0 TENSOR_CORE ... 9 STRICT_NAN_PROP).
std::string numerical_note_name(int note, DataType type);  // "tf32" for TENSOR_CORE on float, else "tensor_core"; "fft", ...
// cuDNN's own words without their prefix, for the log: "TENSOR_CORE", "RUNTIME_COMPILATION", "FMA_MATH".
// A value that no table knows is written as its number.
std::string cudnn_numerical_note(int note);
std::string cudnn_behavior_note(int note);
std::string cudnn_math_type(int math_type);

struct Candidate {
  int algorithm = -1;                            // -1: an engine that no legacy algorithm stands for
  EngineConfig engine;                           // engine -1 on the legacy API
  int math_type = -1;                            // cudnnMathType_t on the legacy API, else -1
  CandidateStatus status = CandidateStatus::Skipped;
  std::string reason;                            // why not Ok, in cuDNN's own words where it has any
  std::optional<double> time_ms, time_iqr_ms;    // median and interquartile range of `samples`, CUDA events
  int samples = 0;
  bool host_timed = false;                       // launched one by one: the host's time of a launch may be in time_ms
  std::optional<double> energy_mj, energy_sd_mj; // of one run, all that the GPU takes meanwhile; its standard deviation
  std::optional<double> power_w;                 // the GPU's, while it was measured
  std::vector<std::string> parts;                // not one plan but several in turn: "convolution eng41", "relu eng0"
  std::optional<int> kernels;                    // that one run launches
  std::optional<double> build_ms;                // building the plan
  std::optional<std::int64_t> workspace_bytes;
  std::optional<bool> deterministic;
  std::vector<int> numerical_notes;              // cudnnBackendNumericalNote_t
  std::vector<int> behavior_notes;               // cudnnBackendBehaviorNote_t
  std::optional<double> error;                   // max |out - ref| / max |ref|, ref: the framework's own choice
  bool requested = false;
  bool framework_choice = false;                 // what would have run without us
  bool running = false;                          // what runs: read back from the executed plan or call
  int heuristics_rank = -1;                      // place in the heuristics' list, from 0; -1: not in it
  Operation operation = Operation::Forward;      // whose algorithm numbers these are
};

// What runs for a problem, read back after its first execution.
enum class ChoiceKind : std::uint8_t {
  LeftAlone,       // no rule asked for anything
  Set,             // the request runs
  Unsupported,     // the request can't run this problem
  Refused,         // the framework dropped what was offered (its own filter, or memory)
  Tuned,           // in tune's log: found to be the best, the framework's own choice or not
};
const char* name_of(ChoiceKind);                 // "left_alone", "set", "unsupported", "refused", "tuned"
// Whether what ran is the framework's own choice: all but Set and Tuned.
bool by_framework(ChoiceKind);

struct Choice {
  ChoiceKind kind = ChoiceKind::LeftAlone;
  std::string api;                               // "graph" or "legacy"
  std::string ran;                               // what ran: an engine tag or a legacy algorithm, e.g. "1 IMPLICIT_PRECOMP_GEMM"
  std::string rule;                              // "CONV_FWD_ALGO", "pins.toml:12", or empty
  std::string requested;                         // Request::to_text(), or empty
  std::string reason;                            // why it is not as asked; what denials took that came before what ran
};

}  // namespace convpin
