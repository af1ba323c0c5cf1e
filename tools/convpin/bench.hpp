// Running one problem with any engine on the GPU that is here: what it takes, how far it is from float64. replay and tune
// share it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shim/model/candidate.hpp"
#include "shim/model/parsed.hpp"
#include "tools/convclient/memory.hpp"
#include "tools/convclient/reference.hpp"
#include "tools/convpin/cuda.hpp"
#include "tools/convpin/engines.hpp"
#include "tools/convpin/launches.hpp"
#include "tools/convpin/nvml.hpp"
#include "tools/convpin/operation_graph.hpp"

namespace convpin::cli {

// The GPU with a stream of ours, and cuDNN's handle on it. Throws BadUse where there is none.
struct Gpu {
  explicit Gpu(const Cudnn&);
  const Cudnn& cudnn;
  Cuda cuda;
  convclient::Device memory;
  Device device;
  std::string name;                              // as a log has it
  Parsed<Nvml> nvml = Parsed<Nvml>::fail("");    // that GPU's, where there is one
  mutable convclient::Buffer downloads;          // where results are compared: pinning memory takes long, so it is kept
};

// A configuration with a finished plan; `candidate` says why where there is none.
struct Runnable {
  Candidate candidate;
  graph::Descriptor config;  // until it is built
  graph::Plan plan;
  // Made at its first launch, and again when the workspace has moved.
  graph::Descriptor pack;
  void* workspace = nullptr;
  LaunchGraph launches;
  bool refuses_capture = false;
  double alone_ms = 0;  // of one launch by itself: rough
  explicit operator bool() const { return candidate.status == CandidateStatus::Ok; }
};

class Bench {
 public:
  // Random finite data, and the float64 results of some of the output's elements. Fails for what those can't be computed
  // of (convclient::has_reference), and where no graph can be built.
  static Parsed<std::unique_ptr<Bench>> make(const Gpu&, const Problem&, std::uint64_t seed);

  // The first `listed` of the heuristics' configurations, best first; of the rest of their list the first of each engine
  // that isn't there yet; then the default of every engine that they don't list.
  std::vector<EngineConfig> configurations(std::size_t listed) const;
  // What cuDNN says of it before there is a plan: its notes. Skipped as yet; or refused, and without `config`.
  Runnable configure(const EngineConfig&) const;
  // Builds the plan of one that has a `config`, which takes up to seconds where it is compiled at run time; runs it once on an
  // output full of NaNs, and compares. More than error_bound from the reference is a refusal.
  void build(Runnable&, std::optional<std::int64_t> workspace_limit);
  // GPU time of one launch, the mean of about `launches` in a row; nothing where a launch failed. In a row
  // they are one CUDA graph, so that no time of the host's is in it; where an engine refuses that,
  // candidate.host_timed says so. 0 launches: one by itself, roughly, with the host's time.
  std::optional<double> time_ms(Runnable&, int launches);
  // Launches for some milliseconds without a pause, and waits for them: how many; 0 where one failed.
  int keep_busy(Runnable&);
  // Before each launch the caches are filled with something else.
  void set_cold(bool cold) { cold_ = cold; }

  const Problem& problem() const { return problem_; }
  const Gpu& gpu() const { return gpu_; }

 private:
  Bench(const Gpu& gpu, const Problem& problem) : gpu_(gpu), problem_(problem) {}
  std::string fill(std::uint64_t seed);
  std::string grow_workspace(std::size_t needed);
  cudnnStatus_t launch(Runnable&);
  const LaunchGraph* launches_of(Runnable&, int count);
  std::optional<double> time_cold_ms(Runnable&, int launches);
  const convclient::Buffer& output() const;
  double error_of_output();

  const Gpu& gpu_;
  Problem problem_;
  OperationGraph graph_;
  std::vector<Listed> listed_;        // by the heuristics, each once
  convclient::Inputs host_;           // without the output, which is not read
  convclient::Buffer x_, w_, y_, flush_;
  std::vector<convclient::Buffer> operands_;     // of the fused operations: z where there is one, then the bias
  convclient::Buffer workspace_;                 // of all plans: they run one after the other, on one stream
  std::vector<std::int64_t> elements_;           // of the output, that are compared
  std::vector<double> reference_;                // and what they should be
  bool cold_ = false;
};

}  // namespace convpin::cli
