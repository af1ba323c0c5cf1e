// A fused graph's operations one after the other, each as a plan of its own: what fusing is worth is seen beside it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shim/graph/mirror.hpp"
#include "shim/profile/buffer.hpp"

namespace convpin::graph {

struct Part {
  std::string what;                  // "convolution eng41", "relu eng0"
  Plan plan;
  std::vector<std::int64_t> ids;     // of its tensors
};

struct Parts {
  std::vector<Part> parts;           // in an order in which they can run
  std::string reason;                // where one of them can't be built
  struct Between {                   // a tensor that the fused graph keeps to itself
    std::int64_t id;
    std::size_t bytes;
  };
  std::vector<Between> between;
  std::int64_t workspace_bytes = 0;  // the largest part's
};

// What is between two operations gets the type of the graph's result, as a framework that doesn't fuse would have it. Each
// part is the heuristics' first configuration that builds and doesn't convert its inputs down.
Parts take_apart(const Library&, const ConvolutionGraph&, const Target&);

}  // namespace convpin::graph
