// Which candidates of a problem are run again: by name, or as a log has them.
#pragma once

#include <string>
#include <vector>

#include "shim/model/algorithm.hpp"
#include "shim/model/candidate.hpp"
#include "tools/convpin/usage.hpp"

namespace convpin::cli {

struct Wanted {
  EngineConfig engine;                 // engine -1: `algorithm` on the legacy API
  int algorithm = -1, math_type = -1;  // math_type -1: the default
  // As it is asked for, whatever cuDNN makes of it: "-1", "eng38" (the heuristics' own knobs), "eng38_k2=1",
  // "algo1".
  std::vector<std::string> names;
  std::vector<std::string> logs;  // the files in which it ran most
  bool is_legacy() const { return engine.engine < 0; }
};

// One log, and what it says of each problem.
struct NamedLog {
  std::string name;
  std::vector<Usage> usages;
};
std::vector<NamedLog> read_named_logs(const std::vector<std::string>& files);  // throws BadUse

// Adds it, or its names and logs where the same is wanted already.
void want(std::vector<Wanted>&, Wanted);
// What ran most in each of the logs, on either API, each once.
std::vector<Wanted> ran_most(const std::vector<NamedLog>&, const Problem&);
// What a name stands for among the configurations that there are, the heuristics' best first: an algorithm
// may be several engines, and none at all. `legacy`: the legacy API's own algorithm. Throws BadUse for what
// is no name.
std::vector<Wanted> named(const std::string& name, const Problem&, const std::vector<EngineConfig>& known,
                          std::size_t cudnn_version, bool legacy);

}  // namespace convpin::cli
