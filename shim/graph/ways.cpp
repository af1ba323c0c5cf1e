#include "shim/graph/ways.hpp"

#include <algorithm>

#include "shim/graph/answer.hpp"
#include "shim/graph/decide.hpp"
#include "shim/graph/packs.hpp"
#include "shim/hooks/reason.hpp"
#include "shim/hooks/trouble.hpp"
#include "shim/process/rules.hpp"
#include "shim/profile/driver.hpp"
#include "shim/profile/measure.hpp"

namespace convpin::graph {
namespace {

bool capturing(const Library& library, cudnnHandle_t handle) {
  const Driver* cuda = driver(library);
  cudaStream_t stream = nullptr;
  if (!cuda || !library.cudnnGetStream || library.cudnnGetStream(handle, &stream)) return true;  // not a clean "no"
  return !may_measure(*cuda, stream);
}

// A way by a plan of ours; null with the reason where it can't be built.
std::unique_ptr<Way> build_way(const Library& library, cudnnBackendDescriptor_t graph, const EngineConfig& config,
                               cudnnHandle_t handle, std::string& reason) {
  Plan built = build_plan(library, graph, config, {handle, nullptr});
  if (built.status != CUDNN_STATUS_SUCCESS) {
    reason = to_tag(config) + ": " + built.reason;
    return nullptr;
  }
  auto way = own_way(library, built.descriptor.get());
  way->plan = std::move(built.descriptor);
  return way;
}

// The way with this configuration, made if it is not there; null where it can't be.
Way* way_for(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t graph, PlanNode& plan, const EngineConfig& config,
             std::string& reason) {
  for (const auto& known : plan.ways)
    if (known->config == config) return known.get();
  auto way = build_way(library, graph, config, handle, reason);
  if (!way) return nullptr;
  way->live = true;
  way->own_workspace = way->workspace_bytes > plan.own().workspace_bytes;
  plan.ways.push_back(std::move(way));
  return plan.ways.back().get();
}

// What the rules ask for now; the program's own plan where nothing else is possible.
Way* choose(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t descriptor, PlanNode& plan) {
  ProblemState& state = *plan.state;
  const bool asked = asks(rule_of(state));
  if (asked && satisfies(state, library.version, plan.own().config)) return &plan.own();
  const bool own_is_its_choice = !plan.own_choice || *plan.own_choice == plan.own().config;
  if (!asked && own_is_its_choice) return &plan.own();
  const ReasonScope quiet(library);
  const Descriptor config = config_of_plan(library, descriptor);
  const Descriptor graph = config ? graph_of_config(library, config.get()) : Descriptor();
  if (!graph) return &plan.own();
  std::string reason;
  std::vector<EngineConfig> wanted;
  if (asked) {
    const Target target{handle, nullptr};
    const auto instant = read_list(library, query_heuristics(library, graph.get(), CUDNN_HEUR_MODE_INSTANT, target));
    Decision decision = decide(library, state, *plan.graph, graph.get(), target, instant);
    wanted = std::move(decision.configs);
    reason = std::move(decision.reason);
  }
  if (wanted.empty() && !own_is_its_choice) wanted.push_back(*plan.own_choice);
  for (const EngineConfig& each : wanted)
    if (Way* way = way_for(library, handle, graph.get(), plan, each, reason)) return way;
  std::lock_guard hold(state.lock);
  state.unsupported_reason = reason;
  return &plan.own();
}

// A plan of ours on a workspace of ours, with the data of the program's variant pack. Nothing: it was not seen, or there
// is no memory.
std::optional<cudnnStatus_t> run_on_own_workspace(const Library& library, cudnnHandle_t handle, const Way& way,
                                                  cudnnBackendDescriptor_t variant_pack) {
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  const Driver* cuda = driver(library);
  cudaStream_t stream = nullptr;
  if (!cuda || !library.cudnnGetStream || library.cudnnGetStream(handle, &stream)) return std::nullopt;
  if (!read_variant_pack(variant_pack, ids, pointers)) return std::nullopt;
  const CudaScope scope(*cuda);
  CUdeviceptr workspace = 0;
  if (cuda->allocate(&workspace, static_cast<std::size_t>(way.workspace_bytes), stream) != CUDA_SUCCESS) return std::nullopt;
  const cudnnStatus_t status = execute(library, handle, way.plan.get(), ids, std::move(pointers), reinterpret_cast<void*>(workspace));
  cuda->release(workspace, stream);
  return status;
}

void note_refusal(PlanNode& plan, const char* why) {
  std::lock_guard hold(plan.state->lock);
  if (plan.state->refused_reason == why) return;
  plan.state->refused_reason = why;
  plan.own().reported = false;  // to be told again, with the reason
  plan.own().look = true;
}

}  // namespace

std::unique_ptr<Way> own_way(const Library& library, cudnnBackendDescriptor_t plan) {
  auto way = std::make_unique<Way>();
  way->workspace_bytes = workspace_of_plan(library, plan);
  if (const Descriptor config = config_of_plan(library, plan)) {
    way->config = read_config(library, config.get());
    way->notes = read_notes(library, config.get());
  }
  way->ran = to_tag(way->config);
  return way;
}

void reconsider(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t descriptor, PlanNode& plan) noexcept {
  try {
    if (capturing(library, handle)) {
      if (!satisfies(*plan.state, library.version, plan.own().config)) note_refusal(plan, "the stream is being captured: the program's own plan runs");
      plan.way = &plan.own();
      return;
    }
    std::lock_guard hold(plan.changing);
    const std::uint32_t now = rules_generation();
    if (plan.generation == now) return;
    Way* chosen = choose(library, handle, descriptor, plan);
    if (!chosen->reported) chosen->look = true;
    plan.way = chosen;
    plan.generation = now;
    plan.state->choice = satisfies(*plan.state, library.version, chosen->config) && asks(rule_of(*plan.state)) ? ChoiceKind::Set : ChoiceKind::LeftAlone;
    chosen->reported = false;
    chosen->look = true;
  } catch (...) {
    plan.generation = rules_generation();
    in_trouble("changing what a plan runs");
  }
}

cudnnStatus_t run(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t descriptor, PlanNode& plan,
                  cudnnBackendDescriptor_t variant_pack, Way*& way) noexcept {
  if (!way->live) return library.cudnnBackendExecute(handle, way->plan ? way->plan.get() : descriptor, variant_pack);
  try {
    if (capturing(library, handle)) {
      note_refusal(plan, "the stream is being captured: the program's own plan runs");
    } else if (!way->own_workspace) {
      return library.cudnnBackendExecute(handle, way->plan.get(), variant_pack);
    } else if (const auto status = run_on_own_workspace(library, handle, *way, variant_pack)) {
      return *status;
    } else {
      note_refusal(plan, "it needs a workspace of its own, and the call's data was not seen or there is no memory for it");
    }
  } catch (...) {
    in_trouble("running another plan");
  }
  way = &plan.own();
  return library.cudnnBackendExecute(handle, descriptor, variant_pack);
}

Way* replace_failed_pin(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t descriptor, PlanNode& plan) {
  if (!plan.answer) return nullptr;
  std::lock_guard one_at_a_time(plan.changing);
  std::lock_guard hold(plan.answer->lock);
  auto& slots = plan.answer->slots;
  if (plan.way != &plan.own()) return plan.way;  // another thread was quicker
  if (slots[plan.slot].role != Answer::Role::Pin || plan.own().reported) return nullptr;
  char said[256] = {};  // the program's to read: our scratch plans empty it
  if (library.cudnnGetLastErrorString) library.cudnnGetLastErrorString(said, sizeof said);
  slots[plan.slot].failed = true;
  const Descriptor config = config_of_plan(library, descriptor);
  const Descriptor graph = config ? graph_of_config(library, config.get()) : Descriptor();
  for (const auto& slot : slots) {
    if (!graph || slot.role != Answer::Role::Real || !slot.given ||
        std::find(plan.dropped.begin(), plan.dropped.end(), slot.config) != plan.dropped.end())
      continue;
    std::string reason;
    auto way = build_way(library, graph.get(), slot.config, handle, reason);
    if (!way || way->workspace_bytes > plan.own().workspace_bytes) continue;
    plan.ways.push_back(std::move(way));
    plan.way = plan.ways.back().get();
    return plan.way;
  }
  set_last_error(said);
  return nullptr;
}

void flush(PlanNode& plan) {
  if (!plan.state) return;
  std::lock_guard changing(plan.changing);
  std::lock_guard hold(plan.state->lock);
  for (const auto& way : plan.ways) {
    const auto calls = way->calls.load(std::memory_order_relaxed);
    const auto fresh = calls - way->flushed;
    way->flushed = calls;
    plan.state->calls += fresh;
    for (auto& ran : plan.state->ran)
      if (ran.what == way->ran) {
        ran.calls += fresh;
        break;
      }
  }
}

}  // namespace convpin::graph
