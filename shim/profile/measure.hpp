// Timing candidates on the application's own data: its inputs read-only, outputs and workspace of ours, its stream.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shim/model/candidate.hpp"
#include "shim/profile/driver.hpp"

namespace convpin {

// A tensor that the candidates write.
struct OutputBuffer {
  std::size_t bytes = 0;
  DataType type = DataType::Float;
  bool read = false;        // read before it is written (beta is not 0): starts as zeros, else as NaNs
};

// One candidate, ready to run: or refused, where `run` is empty and the candidate says why.
struct Attempt {
  Candidate candidate;      // status, reason, workspace_bytes, build_ms and notes as known before running
  std::function<cudnnStatus_t(const std::vector<void*>& outputs, void* workspace)> run;
};

struct Subject {
  CUstream stream = nullptr;
  std::vector<OutputBuffer> outputs;
  // Made one after the other, so that only one plan of ours lives at a time. The first is the framework's own choice,
  // which the others' errors are measured against.
  std::vector<std::function<Attempt()>> attempts;
  std::function<void(const Candidate&)> about_to_try;   // before each first launch: explains a crash inside cuDNN
  std::function<std::string(cudnnStatus_t)> why;        // words for a failing launch
  // How many kernels one run launches, nothing if that can't be found out; may be empty.
  std::function<std::optional<int>(const std::function<cudnnStatus_t()>&)> count_kernels;
};

// Whether work may be measured on `stream` now: no capture is under way there. Any answer of the driver but a clean
// "no" counts as capturing.
bool may_measure(const Driver&, CUstream stream) noexcept;

// The one place to measure in this process.
class MeasuringTurn {
 public:
  enum class Wait : bool { No, Yes };   // Yes: while another problem is measured, for at most the profile's budget
  explicit MeasuringTurn(Wait = Wait::No);
  ~MeasuringTurn();
  MeasuringTurn(const MeasuringTurn&) = delete;
  MeasuringTurn& operator=(const MeasuringTurn&) = delete;
  bool taken() const { return taken_; }
  // Why nothing may be measured, empty if it may: asked once, right before. It counts the problem.
  std::string refused();

 private:
  const bool taken_;
  bool begun_ = false;
};
void renew_measuring_in_child() noexcept;   // after fork

// Runs all attempts. Inside the turn's budget: what comes after its end is Skipped. Never throws for a CUDA failure;
// the candidate says it.
std::vector<Candidate> measure(const Driver&, const Subject&);

// "convpin: profiling 23 problems took 3.1 s\n", with what the budget cut; empty if nothing was profiled.
std::string measuring_summary();

}  // namespace convpin
