#include "shim/graph/ways.hpp"

#include <algorithm>

#include "shim/graph/decide.hpp"
#include "shim/graph/fate.hpp"
#include "shim/graph/packs.hpp"
#include "shim/hooks/reason.hpp"
#include "shim/hooks/trouble.hpp"
#include "shim/process/rules.hpp"
#include "shim/profile/buffer.hpp"
#include "shim/profile/driver.hpp"
#include "shim/profile/measure.hpp"

namespace convpin::graph {
namespace {

constexpr const char* kCapturing = "the stream is being captured: the program's own plan runs";

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
  if (plan.own().config == config && plan.standing == &plan.own()) return &plan.own();
  for (const auto& known : plan.ways)
    if (known->config == config) return known.get();
  auto way = build_way(library, graph, config, handle, reason);
  if (!way) return nullptr;
  way->live = true;
  way->own_workspace = way->workspace_bytes > plan.own().workspace_bytes;
  plan.ways.push_back(std::move(way));
  return plan.ways.back().get();
}

// What the rule that is in force asks for; what the framework runs without us where nothing else is possible, or asked.
PlanNode::Chosen choose(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t descriptor, PlanNode& plan, const Rule* rule) {
  ProblemState& state = *plan.state;
  PlanNode::Chosen chosen{rule, plan.standing, {}};
  const bool asked = asks(rule);
  if (asked && satisfies(state, library.version, *chosen.way)) return chosen;
  std::vector<EngineConfig> without_us = choices_without_us(plan);
  const bool stands = !without_us.empty() && without_us.front() == chosen.way->config;
  if (!asked && stands) return chosen;
  const ReasonScope quiet(library);
  const Descriptor config = config_of_plan(library, descriptor);
  const Descriptor graph = config ? graph_of_config(library, config.get()) : Descriptor();
  if (!graph) return chosen.reason = "the plan's graph can't be read", chosen;
  const Target target{handle, nullptr};
  const auto instant = read_list(library, query_heuristics(library, graph.get(), CUDNN_HEUR_MODE_INSTANT, target));
  if (asked) {
    Decision decision = decide(library, state, *plan.graph, graph.get(), target, instant);
    chosen.reason = std::move(decision.reason);
    for (const EngineConfig& each : decision.configs)
      if (Way* way = way_for(library, handle, graph.get(), plan, each, chosen.reason)) return chosen.way = way, chosen.reason.clear(), chosen;
  }
  if (stands) return chosen;
  if (without_us.empty())
    for (const Listed& entry : instant)
      if (!entry.down_converts) without_us.push_back(entry.config);
  std::string ignored;
  for (const EngineConfig& each : without_us)
    if (Way* way = way_for(library, handle, graph.get(), plan, each, ignored)) return chosen.way = way, chosen;
  return chosen;
}

// The same, remembered: a program that changes its rules back and forth does not wait each time. Under plan.changing.
const PlanNode::Chosen& chosen_for(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t descriptor, PlanNode& plan,
                                   const Rule* rule) {
  for (const auto& known : plan.chosen)
    if (known.rule == rule) return known;
  auto chosen = choose(library, handle, descriptor, plan, rule);
  return plan.chosen.emplace_back(std::move(chosen));
}

// Why the plan's executions must fail now, by the rules; empty: they need not.
std::string failure_of(const Library& library, PlanNode& plan, const PlanNode::Chosen& chosen) {
  ProblemState& state = *plan.state;
  if (std::string missed = failure_by_miss(state); !missed.empty()) return missed;
  if (chosen.reason.empty() || satisfies(state, library.version, *chosen.way)) return {};
  return failure_by_rule(state, chosen.reason);
}

// A plan of ours on a workspace of ours, with the data of the program's variant pack. Nothing, with the reason: it can't be.
std::optional<cudnnStatus_t> run_on_own_workspace(const Library& library, cudnnHandle_t handle, const Way& way,
                                                  cudnnBackendDescriptor_t variant_pack, std::string& why) {
  const auto refused = [&](const char* because) {
    why = way.ran + " needs a workspace of " + std::to_string(way.workspace_bytes) + " bytes, more than the program gives, and " + because;
    return std::nullopt;
  };
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  const Driver* cuda = driver(library);
  cudaStream_t stream = nullptr;
  if (!cuda || !library.cudnnGetStream || library.cudnnGetStream(handle, &stream)) return refused("the GPU's driver can't be reached");
  if (!read_variant_pack(variant_pack, ids, pointers))
    return refused("where the call's data lies was not seen (its variant pack is older, or was built on another thread)");
  const CudaScope scope(*cuda);
  const Buffer workspace(*cuda, stream, static_cast<std::size_t>(way.workspace_bytes));
  if (workspace.failed()) return refused("there is no memory for it");
  return execute(library, handle, way.plan.get(), ids, std::move(pointers), workspace.pointer());
}

// This call, and perhaps later ones, run the program's own plan though another was chosen: both are to be told anew.
void note_refusal(PlanNode& plan, Way* instead_of, const std::string& why) {
  {
    std::lock_guard hold(plan.state->lock);
    if (plan.state->refused_reason == why) return;
    plan.state->refused_reason = why;
  }
  for (Way* way : {plan.standing.load(), instead_of})
    if (way) way->reported = false, way->look = true;
}

// The same; true where the rule makes that a failure.
bool refused(PlanNode& plan, Way* instead_of, const std::string& why) {
  note_refusal(plan, instead_of, why);
  const std::string failure = failure_by_rule(*plan.state, why);
  if (failure.empty()) return false;
  std::lock_guard hold(plan.changing);
  plan.failure = failure;
  return true;
}

// A way of ours that failed: not again for the same rule.
void give_up(PlanNode& plan, Way* way, const std::string& why) {
  std::lock_guard hold(plan.changing);
  for (auto& chosen : plan.chosen)
    if (chosen.way == way) chosen.way = plan.standing, chosen.reason = why;
  if (plan.way == way) plan.way = plan.standing.load();
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

Way* reconsider(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t descriptor, PlanNode& plan) noexcept {
  try {
    if (capturing(library, handle)) {
      Way* standing = plan.standing;
      if (!asks(rule_of(*plan.state)) || satisfies(*plan.state, library.version, *standing)) return standing;
      return refused(plan, nullptr, kCapturing) ? nullptr : standing;
    }
    std::lock_guard hold(plan.changing);
    const std::uint32_t now = rules_generation();
    if (plan.generation == now) return plan.way;
    const Rule* rule = rule_of(*plan.state);
    const PlanNode::Chosen& chosen = chosen_for(library, handle, descriptor, plan, rule);
    {
      std::lock_guard hold_state(plan.state->lock);
      plan.state->unsupported_reason = chosen.reason;
    }
    plan.failure = failure_of(library, plan, chosen);
    chosen.way->reported = false;
    chosen.way->look = true;
    plan.way = plan.failure.empty() ? chosen.way : nullptr;
    plan.generation = now;
    return plan.way;
  } catch (...) {
    plan.generation = rules_generation();
    in_trouble("changing what a plan runs");
    return plan.standing;
  }
}

cudnnStatus_t fail(const Library& library, PlanNode& plan) noexcept {
  try {
    std::lock_guard hold(plan.changing);
    say_failure(*plan.state, plan.failure);
  } catch (...) {
  }
  return library.not_supported();
}

cudnnStatus_t run(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t descriptor, PlanNode& plan,
                  cudnnBackendDescriptor_t variant_pack, Way*& way) noexcept {
  const auto as_it_is = [&] {
    const NvtxRange range(way->ranges, plan.state->problem, [&] { return way->ran; });
    return library.cudnnBackendExecute(handle, way->plan ? way->plan.get() : descriptor, variant_pack);
  };
  if (!way->live) return as_it_is();
  Way* const wanted = way;
  try {
    std::string why;
    std::optional<cudnnStatus_t> status;
    if (capturing(library, handle)) {
      why = kCapturing;
    } else if (!way->own_workspace) {
      status = as_it_is();
    } else {
      const NvtxRange range(way->ranges, plan.state->problem, [&] { return way->ran; });
      status = run_on_own_workspace(library, handle, *way, variant_pack, why);
    }
    if (status && *status == CUDNN_STATUS_SUCCESS) return *status;
    if (status) {
      const ReasonScope words(library);
      why = way->ran + " was run, and failed: " + words.text(*status);
      give_up(plan, way, why);
    }
    if (refused(plan, wanted, why)) return fail(library, plan);
  } catch (...) {
    in_trouble("running another plan");
  }
  way = plan.standing;
  return as_it_is();
}

bool refused_in_cuda_graph(PlanNode& plan, const Library& library) {
  if (!asks(rule_of(*plan.state)) || satisfies(*plan.state, library.version, plan.own())) return false;
  return refused(plan, nullptr, "the plan goes into a CUDA graph: the program's own does");
}

Way* replace_failed_pin(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t descriptor, PlanNode& plan) {
  if (!plan.answer) return nullptr;
  std::lock_guard one_at_a_time(plan.changing);
  std::lock_guard hold(plan.answer->lock);
  auto& slots = plan.answer->slots;
  if (plan.standing != &plan.own()) return plan.standing;  // another thread was quicker
  if (slots[plan.slot].role != Answer::Role::Pin || plan.own().reported) return nullptr;
  const std::string said = take_last_error(library);  // the program's to read: our scratch plans empty it
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
    plan.standing = plan.ways.back().get();
    for (auto& chosen : plan.chosen)
      if (chosen.way == &plan.own()) chosen.way = plan.standing;
    if (plan.way == &plan.own()) plan.way = plan.standing.load();
    return plan.standing;
  }
  put_last_error_back(said);
  return nullptr;
}

void flush(PlanNode& plan) {
  if (!plan.state) return;
  std::lock_guard changing(plan.changing);
  std::lock_guard hold(plan.state->lock);
  const auto add = [&](Way& way) {
    const auto calls = way.calls.load(std::memory_order_relaxed);
    const auto fresh = calls - way.flushed;
    way.flushed = calls;
    plan.state->calls += fresh;
    for (auto& ran : plan.state->ran)
      if (ran.what == way.ran) {
        ran.calls += fresh;
        break;
      }
  };
  add(plan.own());
  for (const auto& way : plan.ways) add(*way);
}

}  // namespace convpin::graph
