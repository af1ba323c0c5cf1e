// The two ways to run a problem.
#pragma once

#include <cudnn.h>

#include "tools/convclient/options.hpp"
#include "tools/convclient/workload.hpp"

namespace convclient {

// Operation graph, heuristics, plan, variant pack, execute: as PyTorch does it by default.
convpin::Parsed<Outcome> run_graph(const Workload&, const Options&, cudnnHandle_t);

// The plan that run_graph would run on the device of options.device_json. Needs no GPU.
convpin::Parsed<Outcome> plan_graph(const convpin::Problem&, const Options&);

// cudnnGet... or cudnnFind..., then cudnnConvolutionForward: as PyTorch does it with its graph API off.
convpin::Parsed<Outcome> run_legacy(const Workload&, const Options&, cudnnHandle_t);

}  // namespace convclient
