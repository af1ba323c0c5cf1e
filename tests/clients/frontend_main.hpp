// What the two cudnn-frontend clients share: command line, device, handle, one line a problem.
#pragma once

#include <cudnn.h>

#include <functional>

#include "tools/convclient/options.hpp"
#include "tools/convclient/workload.hpp"

namespace clients {

struct Request {
  bool benchmark = false;
  bool deterministic = false;
  bool allow_tf32 = true;
  std::int64_t max_workspace = INT64_MAX;
  convclient::Options options;  // for Workload: repeat, seed, check
};

// Chooses a plan for the workload's problem, runs it (Workload::run) and says what ran. May throw.
using RunProblem =
    std::function<convclient::Outcome(const convclient::Workload&, const Request&, cudnnHandle_t)>;

// The whole program: exit status 0 where every problem ran (and with --check is within its bound).
int frontend_main(int argc, char** argv, const char* name, const RunProblem&);

}  // namespace clients
