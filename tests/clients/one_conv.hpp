// One small convolution, for the clients that are about how a program reaches cuDNN and not about what it
// asks.
#pragma once

#include <cudnn.h>

#include <cstdio>
#include <string>

#include "tools/convclient/run.hpp"
#include "tools/convclient/status.hpp"

namespace clients {

inline constexpr const char* kProblem = "x=[2,8,14,14] w=[8,8,3,3] float nchw pad=1,1";

// "graph eng28_k2=4 checksum=0123456789abcdef", or "graph failed: ..." with `good` false.
struct OneConv {
  bool good = false;
  std::string text;
};

inline OneConv one_conv(convclient::Api api) {
  const std::string name = api == convclient::Api::Graph ? "graph " : "legacy ";
  const auto fail = [&](const std::string& why) { return OneConv{false, name + "failed: " + why}; };
  const auto problem = convpin::parse_problem(kProblem);
  if (!problem) return fail(problem.error);
  const auto device = convclient::Device::open();
  if (!device) return fail(device.error);
  cudnnHandle_t handle = nullptr;
  if (auto status = cudnnCreate(&handle); status != CUDNN_STATUS_SUCCESS)
    return fail(convclient::failure("cudnnCreate", status));
  cudnnSetStream(handle, device->stream());

  convclient::Options options;
  options.check = true;
  OneConv one;
  {
    const auto load = convclient::Workload::make(*problem, options, *device);
    const auto outcome = !load ? convpin::Parsed<convclient::Outcome>::fail(load.error)
                         : api == convclient::Api::Graph ? convclient::run_graph(*load, options, handle)
                                                         : convclient::run_legacy(*load, options, handle);
    if (!outcome) {
      one = fail(outcome.error);
    } else {
      char checksum[32];
      std::snprintf(checksum, sizeof checksum, "%016llx",
                    static_cast<unsigned long long>(*outcome->checksum));
      one.good = *outcome->error <= *outcome->bound;
      one.text = name + outcome->ran + " checksum=" + checksum + (one.good ? "" : " wrong");
    }
  }
  cudnnDestroy(handle);
  return one;
}

// Prints "<who>: <what ran>" at once (stdio's buffer would be doubled by a fork and lost by _exit).
inline bool print_one_conv(const char* who, convclient::Api api) {
  const OneConv one = one_conv(api);
  std::printf("%s: %s\n", who, one.text.c_str());
  std::fflush(stdout);
  return one.good;
}

inline bool print_both(const char* who) {
  const bool graph = print_one_conv(who, convclient::Api::Graph);
  return print_one_conv(who, convclient::Api::Legacy) && graph;
}

}  // namespace clients
