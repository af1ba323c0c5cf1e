// A convolution through the backend (graph) API, in the order in which PyTorch goes about it.

#include <algorithm>
#include <array>
#include <optional>

#include "shim/model/candidate.hpp"
#include "tools/convclient/conv_graph.hpp"
#include "tools/convclient/cuda_graph.hpp"
#include "tools/convclient/plan.hpp"
#include "tools/convclient/run.hpp"
#include "tools/convclient/status.hpp"

namespace convclient {

using convpin::Parsed;
using convpin::Problem;

namespace {

constexpr std::size_t kBenchmarkLimit = 10;  // plans timed, as torch.backends.cudnn.benchmark_limit

// The heuristics' configurations without those that have a denied note. What is dropped is destroyed here,
// before a plan is built from any.
std::vector<Descriptor> configurations(const Descriptor& graph, cudnnBackendHeurMode_t mode,
                                       const Target& target, const Options& options, std::string& error) {
  auto configs = ask_heuristics(graph, mode, target, error);
  if (!options.denied_notes.empty())
    std::erase_if(configs, [&](Descriptor& config) {
      return !allowed(read_configuration(config).notes, options.denied_notes);
    });
  return configs;
}

bool fits(const Plan& plan, const Options& options) {
  return !options.max_workspace || plan.workspace <= *options.max_workspace;
}

std::string too_large(const Plan& plan) {
  return "its workspace of " + std::to_string(plan.workspace) + " bytes is over the limit";
}

// The variant pack holds what differs from one execution to the next: the pointers, each beside its tensor's
// id, and the workspace. The same plan runs with any number of them.
Descriptor make_variant_pack(const Workload& load, void* workspace) {
  const std::array<std::int64_t, 5> ids{kX, kW, kY, kBias, kZ};
  const std::array<void*, 5> pointers{load.x(), load.w(), load.y(), load.bias(), load.z()};
  const std::int64_t count = load.z() ? 5 : load.bias() ? 4 : 3;
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack");
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data())
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data())
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace)
      .finalize();
  return pack;
}

Outcome describe(Plan& plan, const Problem& problem, const Options& options) {
  const Configuration ran = read_configuration_of_plan(plan.descriptor);
  Outcome outcome;
  outcome.ran = convpin::to_tag(ran.engine);
  outcome.workspace = plan.workspace;
  if (options.json) outcome.json = json_of(plan).c_str();  // up to its NUL
  for (int note : ran.notes) outcome.notes.push_back(convpin::numerical_note_name(note, problem.x.type));
  return outcome;
}

// The plan for a configuration, by the way that was asked for.
Plan build_plan(Descriptor& config, const Descriptor& graph, const Target& target, const Options& options) {
  Plan plan;
  if (options.own_config) {
    const OwnConfiguration own = make_configuration(read_configuration(config).engine, graph, target);
    plan = make_plan(own.config, target);
  } else {
    plan = make_plan(config, target);
  }
  if (!options.from_json || !plan.descriptor.ok()) return plan;
  const std::string json = json_of(plan);
  if (!plan.descriptor.ok()) return plan;
  plan = {};  // destroyed: what runs is made from the text alone
  return restore_plan(json, target);
}

// Not cudnnBackendExecute but cuDNN's own nodes in a CUDA graph: put there for the first execution, given the
// pointers anew for each other. Only engines with the behavior note SUPPORTS_CUDA_GRAPH_NATIVE_API can do so.
std::string run_in_cuda_graph(const Workload& load, const Options& options, cudnnHandle_t handle, Plan& plan,
                              void* workspace, Outcome& outcome) {
  auto graph = CudaGraph::make(load.device());
  if (!graph) return graph.error;
  std::string error;
  bool populated = false;
  const auto launch = [&] {
    const Descriptor pack = make_variant_pack(load, workspace);
    if (!pack.ok()) return CUDNN_STATUS_BAD_PARAM;
    const auto put = populated ? cudnnBackendUpdateCudaGraph : cudnnBackendPopulateCudaGraph;
    const cudnnStatus_t status = put(handle, plan.descriptor.raw(), pack.raw(), graph->get());
    if (status != CUDNN_STATUS_SUCCESS) return status;
    populated = true;
    error = graph.value->launch(load.device());
    return error.empty() ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
  };
  const std::string why = load.run("cudnnBackendPopulateCudaGraph", launch, options, outcome);
  return error.empty() ? why : error;
}

// One plan, run as often as asked. A variant pack is made for each execution, as frameworks do.
Parsed<Outcome> run_plan(const Workload& load, const Options& options, cudnnHandle_t handle, Plan& plan) {
  auto workspace = load.device().allocate(static_cast<std::size_t>(plan.workspace));
  if (!workspace) return Parsed<Outcome>::fail(workspace.error);
  Outcome outcome;
  const auto launch = [&] {
    const Descriptor pack = make_variant_pack(load, workspace->data());
    return pack.ok() ? cudnnBackendExecute(handle, plan.descriptor.raw(), pack.raw())
                     : CUDNN_STATUS_BAD_PARAM;
  };
  const std::string error = options.cuda_graph
                                ? run_in_cuda_graph(load, options, handle, plan, workspace->data(), outcome)
                                : load.run("cudnnBackendExecute", launch, options, outcome);
  if (!error.empty()) return Parsed<Outcome>::fail(error);
  // Read back only now, and from the plan itself: this is what ran.
  Outcome plan_is = describe(plan, load.problem(), options);
  outcome.ran = plan_is.ran;
  outcome.notes = plan_is.notes;
  outcome.workspace = plan_is.workspace;
  outcome.json = plan_is.json;
  return Parsed<Outcome>::ok(std::move(outcome));
}

// The first configuration that can be built and run: INSTANT's, and if there is none the FALLBACK list's.
Parsed<Outcome> first_that_runs(const Descriptor& graph, const Workload& load, const Options& options,
                                cudnnHandle_t handle) {
  const Target target{handle};
  std::string error = "the heuristics offer nothing that is allowed";
  for (auto mode : {CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_FALLBACK}) {
    for (Descriptor& config : configurations(graph, mode, target, options, error)) {
      Plan plan = build_plan(config, graph, target, options);
      if (!plan.descriptor.ok()) {
        error = plan.descriptor.error();
      } else if (!fits(plan, options)) {
        error = too_large(plan);
      } else {
        auto outcome = run_plan(load, options, handle, plan);
        if (outcome) return outcome;
        error = outcome.error;
      }
    }
  }
  return Parsed<Outcome>::fail("no engine runs this: " + error);
}

// Builds the plans of both lists, times the first ten that run, each once after a warm-up, and runs the
// fastest.
Parsed<Outcome> fastest_that_runs(const Descriptor& graph, const Workload& load, const Options& options,
                                  cudnnHandle_t handle) {
  const Target target{handle};
  std::string error = "the heuristics offer nothing that is allowed";
  std::vector<Plan> plans;
  for (auto mode : {CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_FALLBACK}) {
    for (Descriptor& config : configurations(graph, mode, target, options, error)) {
      Plan plan = build_plan(config, graph, target, options);
      if (!plan.descriptor.ok())
        error = plan.descriptor.error();
      else if (!fits(plan, options))
        error = too_large(plan);
      else
        plans.push_back(std::move(plan));
    }
  }

  std::vector<std::optional<double>> times(plans.size());
  std::size_t timed = 0;
  for (std::size_t i = 0; i < plans.size() && timed < kBenchmarkLimit; ++i) {
    auto workspace = load.device().allocate(static_cast<std::size_t>(plans[i].workspace));
    if (!workspace) {
      error = workspace.error;
      continue;
    }
    const Descriptor pack = make_variant_pack(load, workspace->data());
    const auto launch = [&] {
      const cudnnStatus_t status = cudnnBackendExecute(handle, plans[i].descriptor.raw(), pack.raw());
      if (status != CUDNN_STATUS_SUCCESS) error = failure("cudnnBackendExecute", status);
      return status == CUDNN_STATUS_SUCCESS;
    };
    if (pack.ok() && launch() && load.device().synchronize().empty()) {
      times[i] = load.device().time_ms(launch);
      ++timed;
    }
    (void)load.device().synchronize();  // before the workspace goes
  }
  for (std::size_t i : fastest_first(times)) {
    auto outcome = run_plan(load, options, handle, plans[i]);
    if (outcome) return outcome;
    error = outcome.error;
  }
  return Parsed<Outcome>::fail("no engine runs this: " + error);
}

}  // namespace

Parsed<Outcome> run_graph(const Workload& load, const Options& options, cudnnHandle_t handle) {
  if (!options.plan_json.empty()) {
    Plan plan = restore_plan(options.plan_json, {handle});
    return plan.descriptor.ok() ? run_plan(load, options, handle, plan)
                                : Parsed<Outcome>::fail(plan.descriptor.error());
  }
  const ConvGraph g = build_conv_graph(load.problem(), options.beta, handle);
  if (!g.graph.ok()) return Parsed<Outcome>::fail(g.graph.error());
  return options.benchmark ? fastest_that_runs(g.graph, load, options, handle)
                           : first_that_runs(g.graph, load, options, handle);
}

Parsed<Outcome> plan_graph(const Problem& problem, const Options& options) {
  const Descriptor properties = make_properties(options.device_json);
  if (!properties.ok()) return Parsed<Outcome>::fail(properties.error());
  const ConvGraph g = build_conv_graph(problem, options.beta, nullptr);
  if (!g.graph.ok()) return Parsed<Outcome>::fail(g.graph.error());

  const Target target{nullptr, &properties};
  std::string error = "the heuristics offer nothing that is allowed";
  for (auto mode : {CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_FALLBACK}) {
    for (Descriptor& config : configurations(g.graph, mode, target, options, error)) {
      Plan plan = build_plan(config, g.graph, target, options);
      if (plan.descriptor.ok() && fits(plan, options))
        return Parsed<Outcome>::ok(describe(plan, problem, options));
      error = plan.descriptor.ok() ? too_large(plan) : plan.descriptor.error();
    }
  }
  return Parsed<Outcome>::fail("no engine can be built: " + error);
}

}  // namespace convclient
