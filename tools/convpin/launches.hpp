// Launches in a row without the host in between. A plan's launch takes the host 10 to 30 us, longer than many
// a kernel runs: of launches one by one it would be the host that is timed.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "tools/convpin/cuda.hpp"

namespace convpin::cli {

// A CUDA graph of what was put on a stream.
class LaunchGraph {
 public:
  LaunchGraph() = default;
  // Captures `count` calls of `launch`, which puts its work on `stream` and is false where it can't. Empty
  // where the driver or an engine refuses to be captured; the stream is then as it was.
  static LaunchGraph capture(const Cuda&, CUstream stream, int count, const std::function<bool()>& launch);
  LaunchGraph(LaunchGraph&& other) noexcept { *this = std::move(other); }
  LaunchGraph& operator=(LaunchGraph&& other) noexcept {
    std::swap(cuda_, other.cuda_);
    std::swap(executable_, other.executable_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~LaunchGraph();

  explicit operator bool() const { return executable_ != nullptr; }
  int count() const { return count_; }  // launches in it
  bool launch(CUstream) const;          // all of them; doesn't wait

 private:
  const Cuda* cuda_ = nullptr;
  CUgraphExec executable_ = nullptr;
  int count_ = 0;
};

}  // namespace convpin::cli
