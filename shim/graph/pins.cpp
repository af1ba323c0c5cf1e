#include "shim/graph/pins.hpp"

#include <algorithm>
#include <optional>

#include "shim/hooks/reason.hpp"
#include "shim/profile/driver.hpp"

namespace convpin::graph {
namespace {

constexpr std::int64_t kMemoryMargin = 64 << 20;  // allocators round up, and free memory may be in pieces

std::vector<int> engines_of(const Request& request, const Problem& problem, std::size_t cudnn_version) {
  if (request.kind != Request::Kind::Algorithm) return {request.engine.engine};
  if (problem.fused_count > 0) return {};
  for (const Algorithm& algorithm : algorithms(request.operation, cudnn_version))
    if (algorithm.number == request.algorithm) return {algorithm.engines.begin(), algorithm.engines.end()};
  return {};
}

bool contains(const std::vector<int>& engines, int engine) {
  return std::find(engines.begin(), engines.end(), engine) != engines.end();
}

}  // namespace

std::vector<Listed> read_list(const Library& library, const std::vector<Descriptor>& configs) {
  std::vector<Listed> out;
  for (const auto& config : configs)
    out.push_back({read_config(library, config.get()),
                   read_notes(library, config.get()).has_numerical(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)});
  return out;
}

std::vector<EngineConfig> wanted_configs(const Request& request, const Problem& problem, std::size_t cudnn_version,
                                         const std::vector<Listed>& heuristics) {
  if (request.kind == Request::Kind::ExactEngine) return {request.engine};
  const bool algorithm = request.kind == Request::Kind::Algorithm;
  const std::vector<int> engines = engines_of(request, problem, cudnn_version);
  std::vector<EngineConfig> out;
  std::vector<int> listed;
  for (const Listed& entry : heuristics) {
    if (!contains(engines, entry.config.engine)) continue;
    listed.push_back(entry.config.engine);
    if (algorithm && entry.down_converts) continue;
    if (std::find(out.begin(), out.end(), entry.config) == out.end()) out.push_back(entry.config);
  }
  for (int engine : engines)
    if (!contains(listed, engine)) out.push_back({engine, {}});
  if (!algorithm && out.size() > 1) out.resize(1);
  return out;
}

int algorithm_in(const Problem& problem, std::size_t cudnn_version, int engine) {
  return problem.fused_count > 0 ? -1 : algorithm_of_engine(problem.operation, cudnn_version, engine);
}

bool satisfies(const Request& request, const Problem& problem, std::size_t cudnn_version, const EngineConfig& ran) {
  if (!contains(engines_of(request, problem, cudnn_version), ran.engine)) return false;
  return std::all_of(request.engine.knobs.begin(), request.engine.knobs.end(), [&](const Knob& knob) {
    return std::find(ran.knobs.begin(), ran.knobs.end(), knob) != ran.knobs.end();
  });
}

std::string means_nothing(const Problem& problem) {
  return problem.fused_count > 0 ? "a graph with operations fused to the convolution numbers its engines apart, and none is "
                                   "known to be this algorithm; an engine can be named (eng10)"
                                 : "no engine of the graph API is known to run this algorithm";
}

Pins possible_pins(const Library& library, cudnnBackendDescriptor_t graph, const Target& target,
                   const std::vector<EngineConfig>& wanted, std::int64_t limit, Compiled compiled) {
  std::size_t free = 0, total = 0;
  const Driver* d = driver(library);
  const bool memory_known = d && d->memory_info(&free, &total) == CUDA_SUCCESS;

  Pins out;
  std::vector<EngineConfig> unlikely;  // they build, but may not fit into memory
  std::optional<std::size_t> refused;  // the last that cuDNN refused
  // The rest of a family goes along untried: a framework takes the first that passes its filter.
  const auto from = [&](std::size_t i) { out.configs.assign(wanted.begin() + static_cast<std::ptrdiff_t>(i), wanted.end()); };
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const ReasonScope quiet(library);
    const Descriptor config(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (fill_config(library, config.get(), graph, wanted[i], target)) {
      refused = i;
      continue;
    }
    if (compiled == Compiled::Untried && read_notes(library, config.get()).compiled_at_run_time()) return from(i), out;
    const Plan plan = build_plan(library, config.get(), target);
    if (plan.status != CUDNN_STATUS_SUCCESS) {
      refused = i;
      continue;
    }
    if (limit >= 0 && plan.workspace_bytes > limit) {
      out.reason = to_tag(wanted[i]) + " needs a workspace of " + std::to_string(plan.workspace_bytes) +
                   " bytes, more than the limit of " + std::to_string(limit);
      continue;
    }
    if (memory_known && plan.workspace_bytes > 0 &&
        plan.workspace_bytes + kMemoryMargin > static_cast<std::int64_t>(free)) {
      unlikely.push_back(wanted[i]);
      continue;
    }
    return from(i), out;
  }
  out.configs = std::move(unlikely);
  if (out.configs.empty() && out.reason.empty() && refused) {
    const ReasonScope listening(library, Listen::Yes);  // again, to hear why
    out.reason = to_tag(wanted[*refused]) + ": " + build_plan(library, graph, wanted[*refused], target).reason;
  }
  return out;
}

}  // namespace convpin::graph
