// What the tests ask of the stand-in through the environment, and what it tells them. README.md lists
// the variables; each is read when it is used, so a test may change it while it runs.
#pragma once

#include <cudnn.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>

#include "tests/standin/conv.hpp"

namespace standin {

// Remembers the reason for this thread's cudnnGetLastErrorString and returns the status.
cudnnStatus_t refuse(cudnnStatus_t, const std::string& reason);

// Whether the variable's comma-separated list names this: "eng28", or "algo2" for a legacy call; either
// alone or of one operation, "backward_data/eng28".
bool named_in(const char* variable, Operation, const std::string& what);

// The faults asked for at an execution of `what`: a delay, a crash, a failure.
cudnnStatus_t injected_fault(Operation, const std::string& what);

// What an event of the driver's is set to. Under STANDIN_SLOW it tells how long this thread's executions were to take, so
// that which is the fastest does not depend on what else the machine does.
std::chrono::steady_clock::time_point device_now();

// One line for STANDIN_TRACE, of three words: "graph eng28 implicit_gemm", "legacy/backward_data 0 scatter".
void trace(const std::string& api, Operation, const std::string& what, const char* how);

// One line for STANDIN_TRACE_PLANS, each time a plan of the engine is to be finalized: "eng28".
void trace_plan(const std::string& engine);

}  // namespace standin
