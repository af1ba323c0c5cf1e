// What the command line asks for, and what running one problem gave.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace convclient {

enum class Api { Graph, Legacy };

struct Options {
  Api api = Api::Graph;
  bool benchmark = false;                     // time what there is and take the fastest
  std::optional<int> fixed;                   // legacy: this algorithm, without asking for one
  int repeat = 1;                             // executions of each problem
  bool own_config = false;                    // graph: engine configurations built from engine and knobs
  bool from_json = false;                     // graph: the plan is restored from its own JSON text
  std::string plan_json;                      // graph: the text of the plan to run, instead of the heuristics' choice
  bool cuda_graph = false;                    // graph: the plan is put into a CUDA graph, and that launched
  std::vector<int> denied_notes;              // cudnnBackendNumericalNote_t
  std::optional<std::int64_t> max_workspace;  // bytes
  int math = 0;                               // legacy: cudnnMathType_t
  double beta = 0;                            // y = conv(x, w) + beta * y, and so for dx and dw
  std::uint64_t seed = 1;
  std::string device_json;  // the text of a device's properties: plans only, nothing runs
  bool check = false;       // compare with a float64 reference
  bool time = false;        // print the median time of the executions
  bool in_a_row = false;    // with `time`: not each, but all after one more, so that the host's time is not in it; their mean
  bool json = false;        // print the plan as its own JSON text
};

struct Outcome {
  std::string ran;  // "eng38_k2=1" read back from the plan, or "algo1"
  std::int64_t workspace = 0;
  std::vector<std::string> notes;
  std::optional<std::uint64_t> checksum;  // FNV-1a over the output's bytes
  std::optional<double> error;            // max |out - ref| / max |ref|
  std::optional<double> bound;            // what `error` may be
  std::optional<double> time_ms;
  std::string json;  // of the plan, where it was asked for
};

}  // namespace convclient
