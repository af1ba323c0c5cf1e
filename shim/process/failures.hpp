// The program's own calls that cuDNN failed, for the log: each kind once, with how often. Only where a log is written.
#pragma once

#include <cudnn.h>

#include <optional>
#include <string>

#include "shim/process/runtime.hpp"

namespace convpin {

struct FailedCall {
  const char* call = "";                         // the function's name
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  int descriptor = -1, attribute = -1;           // cudnnBackendDescriptorType_t, cudnnBackendAttributeName_t; -1: none known
  std::optional<Problem> problem;
  Api api = Api::Graph;
  Candidate candidate;                           // engine or algorithm, where it is known
};
// `text` is cuDNN's own, as the program finds it (keep_last_error).
void note_failed_call(const Library&, const FailedCall&, const std::string& text);

void log_failure_counts();                       // before the end record
std::uint64_t failed_calls();                    // how many, refusals (NOT_SUPPORTED, which is routine) not counted
std::string failures_summary();                  // "" where there was nothing but refusals
void renew_failures_in_child() noexcept;         // after fork

}  // namespace convpin
