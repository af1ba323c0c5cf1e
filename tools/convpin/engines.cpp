#include "tools/convpin/engines.hpp"

#include <algorithm>
#include <utility>

#include "shim/hooks/reason.hpp"

namespace convpin::cli {
namespace {

using graph::Descriptor;

Candidate judge(const Library& library, const OperationGraph& g, const graph::Target& target, const EngineConfig& wanted,
                bool device_is_here) {
  Candidate c;
  c.engine = wanted;
  c.status = CandidateStatus::Unsupported;
  const Descriptor config(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  const ReasonScope words(library, Listen::Yes);
  cudnnStatus_t status = graph::fill_config(library, config.get(), g.graph.get(), wanted, target);
  if (status) {
    c.reason = words.text(status);
  } else {
    const graph::Notes notes = graph::read_notes(library, config.get());
    c.numerical_notes = notes.numerical;
    c.behavior_notes = notes.behavior;
    c.deterministic = !notes.has_numerical(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
    const graph::Plan plan = graph::build_plan(library, config.get(), target);
    status = plan.status;
    c.reason = plan.reason;
    if (!status) {
      c.status = CandidateStatus::Ok;
      c.workspace_bytes = plan.workspace_bytes;
    }
  }
  if (status && !device_is_here && needs_the_device(c.reason, status)) c.status = CandidateStatus::Skipped;
  return c;
}

// Engines of plain graphs that cuDNN refuses wherever there is no GPU, also where they run with one, and without a word why:
// FFT and the non-fused Winograd, and these (303 problems on an H200 with cuDNN 9.19: tests/gpu/results/list_agreement.md).
bool refused_without_a_gpu(const Candidate& c) {
  static constexpr std::pair<Operation, int> kOthers[] = {
      {Operation::Forward, 58}, {Operation::BackwardData, 63}, {Operation::BackwardFilter, 62}, {Operation::BackwardFilter, 4}};
  const std::string name = algorithm_name(c.operation, c.algorithm);
  return name.starts_with("FFT") || name == "WINOGRAD_NONFUSED" ||
         std::ranges::count(kOthers, std::pair(c.operation, c.engine.engine)) > 0;
}

}  // namespace

bool needs_the_device(const std::string& reason, cudnnStatus_t status) {
  static constexpr const char* kWords[] = {"libcuda", "cublas", "Cublas", "CUBLAS", "nvrtc", "driver", "runtime prerequisite"};
  constexpr int kRuntimePrerequisiteMissing = 3008;  // CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING
  return static_cast<int>(status) == kRuntimePrerequisiteMissing ||
         std::ranges::any_of(kWords, [&](const char* word) { return reason.find(word) != std::string::npos; });
}

std::vector<Listed> heuristics_of(const Library& library, const OperationGraph& g, const graph::Target& target) {
  std::vector<Listed> list;
  for (const auto mode : {CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_FALLBACK})
    for (const Descriptor& config : graph::query_heuristics(library, g.graph.get(), mode, target))
      list.push_back({graph::read_config(library, config.get()), static_cast<int>(list.size())});
  return list;
}

EngineList list_engines(const Cudnn& cudnn, const Device& device, const Problem& problem) {
  const Library& library = cudnn.library;
  const graph::Target target = device.target();
  EngineList out;
  const OperationGraph g = build_graph(library, problem, target);
  if (g.status) {
    out.reason = g.reason;
    return out;
  }
  const auto heuristics = heuristics_of(library, g, target);
  for (int engine = 0; engine < graph::engine_count(library, g.graph.get()); ++engine) {
    const auto listed = std::ranges::find(heuristics, engine, [](const Listed& l) { return l.config.engine; });
    const bool known = listed != heuristics.end();
    Candidate c = judge(library, g, target, known ? listed->config : EngineConfig{engine, {}}, device.is_present());
    c.operation = problem.operation;
    c.algorithm = problem.fused_count > 0 ? -1 : algorithm_of_engine(problem.operation, library.version, engine);
    c.heuristics_rank = known ? listed->rank : -1;
    if (c.status == CandidateStatus::Unsupported && !device.is_present() && c.reason == "not supported" && problem.fused_count == 0 &&
        refused_without_a_gpu(c)) {
      c.status = CandidateStatus::Skipped;
      c.reason = "refused without a word wherever there is no GPU";
    }
    out.engines.push_back(std::move(c));
  }
  return out;
}

}  // namespace convpin::cli
