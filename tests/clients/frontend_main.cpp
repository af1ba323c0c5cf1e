#include "tests/clients/frontend_main.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "tools/convclient/status.hpp"

namespace clients {

namespace {

using convclient::Outcome;
using convpin::Problem;

void print(const Problem& p, const Outcome& o) {
  std::cout << convpin::to_text(p) << ": " << o.ran << " workspace=" << o.workspace;
  if (!o.notes.empty()) std::cout << " notes=" << CLI::detail::join(o.notes, ",");
  char text[64];
  if (o.checksum) {
    std::snprintf(text, sizeof text, " checksum=%016llx", static_cast<unsigned long long>(*o.checksum));
    std::cout << text;
  }
  if (o.error) {
    std::snprintf(text, sizeof text, " error=%.3g", *o.error);
    std::cout << text;
  }
  std::cout << std::endl;
}

}  // namespace

int frontend_main(int argc, char** argv, const char* name, const RunProblem& run_problem) {
  Request request;
  std::vector<std::string> texts;
  bool no_tf32 = false;
  CLI::App app("Runs convolutions through cudnn-frontend.", name);
  app.add_option("problem", texts, "convolutions, e.g. \"x=[2,8,14,14] w=[8,8,3,3] half nhwc pad=1,1\"")
      ->required();
  app.add_flag("--benchmark", request.benchmark, "time the plans and take the fastest");
  app.add_flag("--deterministic", request.deterministic, "drop what is not");
  app.add_flag("--no-tf32", no_tf32, "drop what runs float on tensor cores");
  app.add_option("--max-workspace", request.max_workspace, "bytes; drop what needs more");
  app.add_option("--repeat", request.options.repeat, "executions of each problem");
  app.add_option("--seed", request.options.seed, "of the data");
  app.add_flag("--check", request.options.check, "compare with a float64 reference");
  CLI11_PARSE(app, argc, argv);
  request.allow_tf32 = !no_tf32;
  // Workload takes the bound of the error from these.
  if (no_tf32) request.options.denied_notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};

  const auto complain = [&](const std::string& what) {
    std::cerr << name << ": " << what << '\n';
    return 1;
  };
  const auto device = convclient::Device::open();
  if (!device) return complain(device.error);
  cudnnHandle_t handle = nullptr;
  if (auto status = cudnnCreate(&handle); status != CUDNN_STATUS_SUCCESS)
    return complain(convclient::failure("cudnnCreate", status));
  if (auto status = cudnnSetStream(handle, device->stream()); status != CUDNN_STATUS_SUCCESS)
    return complain(convclient::failure("cudnnSetStream", status));

  int exit_status = 0;
  for (const std::string& text : texts) {
    const auto problem = convpin::parse_problem(text);
    if (!problem) {
      exit_status = complain(problem.error);
      continue;
    }
    const auto load = convclient::Workload::make(*problem, request.options, *device);
    if (!load) {
      exit_status = complain(load.error);
      continue;
    }
    try {
      const Outcome outcome = run_problem(*load, request, handle);
      print(*problem, outcome);
      if (outcome.error && !(*outcome.error <= *outcome.bound))
        exit_status = complain("the error is over its bound");
    } catch (const std::exception& e) {
      exit_status = complain(text + ": " + e.what());
    }
  }
  cudnnDestroy(handle);
  return exit_status;
}

}  // namespace clients
