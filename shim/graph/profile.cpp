#include "shim/graph/profile.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "shim/graph/answer.hpp"
#include "shim/graph/pins.hpp"
#include "shim/hooks/reason.hpp"
#include "shim/profile/driver.hpp"
#include "shim/profile/measure.hpp"

namespace convpin::graph {
namespace {

constexpr std::int64_t kMostTensors = 16;

struct Pack {
  cudnnBackendDescriptor_t descriptor = nullptr;
  int watch = 0;             // Runtime::watches when it was noted: what came between two watches was not seen
  bool plain = true;         // nothing overrides the graph's shapes
  std::int64_t ids_count = 0, pointers_count = 0;
  std::int64_t ids[kMostTensors];
  void* pointers[kMostTensors];
};
constexpr int kPacks = 64;   // programs that build their packs once hold one a layer
thread_local Pack packs[kPacks];
thread_local int oldest = 0;

Pack* find_pack(cudnnBackendDescriptor_t descriptor) {
  for (Pack& pack : packs)
    if (pack.descriptor == descriptor && pack.watch == runtime().watches.load(std::memory_order_relaxed)) return &pack;
  return nullptr;
}

// What a candidate's run is made of.
struct Caller {
  const Library& library;
  cudnnHandle_t handle;
  Operation operation;
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  std::vector<std::size_t> output_at;   // places in ids, in the order of the graph's outputs
};

bool read_caller(const Pack& pack, const ConvolutionGraph& graph, Caller& out) {
  if (!pack.plain || pack.ids_count <= 0 || pack.ids_count != pack.pointers_count) return false;
  out.ids.assign(pack.ids, pack.ids + pack.ids_count);
  out.pointers.assign(pack.pointers, pack.pointers + pack.pointers_count);
  for (const auto& output : graph.outputs) {
    const auto at = std::find(out.ids.begin(), out.ids.end(), output.id);
    if (at == out.ids.end()) return false;
    out.output_at.push_back(static_cast<std::size_t>(at - out.ids.begin()));
  }
  return true;
}

// One row of the profile before it is tried: configurations in order of preference, the first that builds is it.
struct Row {
  int algorithm = -1;
  std::vector<EngineConfig> configs;
  bool framework_choice = false, requested = false;
};

int rank_of(const std::vector<Listed>& list, const EngineConfig& config) {
  const auto at = std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.config == config; });
  return at == list.end() ? -1 : static_cast<int>(at - list.begin());
}

bool asked_for(const ProblemState& state, const Library& library, const EngineConfig& config) {
  return state.rule && state.rule->request() && satisfies(*state.rule->request(), state.problem, library.version, config);
}

bool asked_for(const ProblemState& state, int algorithm) {
  const Request* request = state.rule ? state.rule->request() : nullptr;
  return request && request->kind == Request::Kind::Algorithm && request->algorithm == algorithm;
}

// The framework's own choice first: the others are compared with it. Then what ran, then the rest.
std::vector<Row> rows_of(const Library& library, const PlanNode& plan, const std::vector<Listed>& list, int engines) {
  const Problem& problem = plan.graph->problem;
  const auto algorithm_of = [&](const EngineConfig& c) { return algorithm_in(problem, library.version, c.engine); };
  const auto dropped = [&](const EngineConfig& c) {
    return std::find(plan.dropped.begin(), plan.dropped.end(), c) != plan.dropped.end();
  };
  EngineConfig own = plan.config;
  if (plan.own_choice)
    own = *plan.own_choice;
  else if (!list.empty())
    own = list.front().config;

  std::vector<Row> rows{{algorithm_of(own), {own}, true, asked_for(*plan.state, library, own)}};
  if (!(plan.config == own)) rows.push_back({algorithm_of(plan.config), {plan.config}, false, asked_for(*plan.state, library, plan.config)});
  const auto covered = [&](int algorithm) {
    return std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.algorithm == algorithm; });
  };

  if (runtime().settings.profile_level == ProfileLevel::Algorithms) {
    if (problem.fused_count > 0) return rows;  // its engines stand for no algorithm
    for (const Algorithm& algorithm : algorithms(problem.operation, library.version)) {
      if (covered(algorithm.number)) continue;
      Request request;
      request.kind = Request::Kind::Algorithm;
      request.algorithm = algorithm.number;
      request.operation = problem.operation;
      auto configs = wanted_configs(request, problem, library.version, list);
      std::stable_partition(configs.begin(), configs.end(), [&](const auto& c) { return !dropped(c); });
      rows.push_back({algorithm.number, std::move(configs), false, asked_for(*plan.state, algorithm.number)});
    }
    return rows;
  }
  for (int engine = 0; engine < engines; ++engine) {
    Request request;
    request.kind = Request::Kind::Engine;
    request.engine.engine = engine;
    request.operation = problem.operation;
    auto configs = wanted_configs(request, problem, library.version, list);
    const bool known = std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.configs == configs; });
    // Of a family's members only the one that runs is what was asked for.
    const Request* asked = plan.state->rule ? plan.state->rule->request() : nullptr;
    const bool named = asked && asked->kind != Request::Kind::Algorithm;
    if (!known)
      rows.push_back({algorithm_of(configs.front()), configs, false, named && asked_for(*plan.state, library, configs.front())});
  }
  return rows;
}

Attempt attempt_of(const Caller& caller, const Target& target, cudnnBackendDescriptor_t graph, const Row& row,
                   const std::vector<Listed>& list, const EngineConfig& ran) {
  Attempt attempt;
  Candidate& c = attempt.candidate;
  c.operation = caller.operation;
  c.algorithm = row.algorithm;
  c.framework_choice = row.framework_choice;
  c.requested = row.requested;
  c.status = CandidateStatus::Unsupported;
  c.reason = "no engine for it";
  for (const EngineConfig& config : row.configs) {
    const Library& library = caller.library;
    c.engine = config;
    const Descriptor descriptor(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    const ReasonScope words(library);
    const auto begin = std::chrono::steady_clock::now();
    if (const auto status = fill_config(library, descriptor.get(), graph, config, target)) {
      c.reason = words.text(status);
      continue;
    }
    auto plan = std::make_shared<Plan>(build_plan(library, descriptor.get(), target));
    c.build_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    if (plan->status != CUDNN_STATUS_SUCCESS) {
      c.reason = plan->reason;
      continue;
    }
    const Notes notes = read_notes(library, descriptor.get());
    c.status = CandidateStatus::Ok;
    c.reason.clear();
    c.workspace_bytes = plan->workspace_bytes;
    c.numerical_notes = notes.numerical;
    // No number ever means a configuration that converts its inputs down.
    if (notes.has_numerical(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) && !(config == ran)) {
      c.algorithm = -1;
      c.requested = false;
    }
    c.behavior_notes = notes.behavior;
    c.deterministic = !notes.has_numerical(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
    c.heuristics_rank = rank_of(list, config);
    c.running = config == ran;
    attempt.run = [&caller, plan](const std::vector<void*>& outputs, void* workspace) {
      auto pointers = caller.pointers;
      for (std::size_t i = 0; i < outputs.size(); ++i) pointers[caller.output_at[i]] = outputs[i];
      return execute(caller.library, caller.handle, plan->descriptor.get(), caller.ids, std::move(pointers), workspace);
    };
    return attempt;
  }
  return attempt;
}

std::vector<Candidate> profile(const Library& library, const Driver& driver, CUstream stream, const Caller& caller,
                               cudnnBackendDescriptor_t descriptor, const PlanNode& plan) {
  announce(*plan.state);
  const CudaScope scope(driver);
  ReasonScope words(library, Listen::Yes);
  const Descriptor config = config_of_plan(library, descriptor);
  const Descriptor graph = config ? graph_of_config(library, config.get()) : Descriptor();
  if (!graph) return {};
  const Target target{caller.handle, nullptr};
  const auto list = read_list(library, query_heuristics(library, graph.get(), CUDNN_HEUR_MODE_INSTANT, target));
  const auto rows = rows_of(library, plan, list, engine_count(library, graph.get()));

  Subject subject;
  subject.stream = stream;
  for (const auto& output : plan.graph->outputs) subject.outputs.push_back({output.bytes, output.type, output.read});
  for (const Row& row : rows)
    subject.attempts.push_back([&, row] { return attempt_of(caller, target, graph.get(), row, list, plan.config); });
  subject.about_to_try = [&](const Candidate& c) {
    words.forget();
    record(try_record(plan.state->id, c));
  };
  subject.why = [&](cudnnStatus_t status) { return words.text(status); };
  return measure(driver, subject);
}

}  // namespace

void note_variant_pack(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, std::int64_t count,
                       const void* values) noexcept {
  if (!values || count < 1 || count > kMostTensors) return;  // more tensors than that: the problem stays unprofiled
  Pack* pack = find_pack(descriptor);
  if (!pack) {
    pack = &packs[oldest];
    oldest = (oldest + 1) % kPacks;
    *pack = Pack{};
    pack->descriptor = descriptor;
    pack->watch = runtime().watches.load(std::memory_order_relaxed);
  }
  const auto n = static_cast<std::size_t>(count);
  if (name == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) {
    std::memcpy(pack->ids, values, n * sizeof(std::int64_t));
    pack->ids_count = count;
  } else if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) {
    std::memcpy(pack->pointers, values, n * sizeof(void*));
    pack->pointers_count = count;
  } else if (name != CUDNN_ATTR_VARIANT_PACK_WORKSPACE) {
    pack->plain = false;
  }
}

void forget_variant_pack(cudnnBackendDescriptor_t descriptor) noexcept {
  if (Pack* pack = find_pack(descriptor)) *pack = Pack{};
}

void profile_plan(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t descriptor, PlanNode& plan,
                  cudnnBackendDescriptor_t variant_pack) {
  const Driver* cuda = driver(library);
  const Pack* pack = find_pack(variant_pack);
  Caller caller{library, handle, plan.graph->problem.operation, {}, {}, {}};
  cudaStream_t stream = nullptr;
  ProblemState& state = *plan.state;
  if (!cuda || !pack || !read_caller(*pack, *plan.graph, caller)) {
    // What the pack holds was set before anybody watched, or on another thread: it may be so for ever.
    constexpr int kTries = 8;
    auto waiting = ProfileState::Wanted;
    if (++plan.misses >= kTries && state.profile.compare_exchange_strong(waiting, ProfileState::Done)) {
      --runtime().wanted_profiles;
      ++runtime().unseen_profiles;
    }
    return;
  }
  if (!library.cudnnGetStream || library.cudnnGetStream(handle, &stream) != CUDNN_STATUS_SUCCESS || !may_measure(*cuda, stream))
    return;
  const MeasuringTurn turn;
  if (turn.refusal() == MeasuringTurn::Refusal::Busy) return;
  auto wanted = ProfileState::Wanted;
  if (!state.profile.compare_exchange_strong(wanted, ProfileState::Running)) return;
  std::vector<Candidate> candidates;
  try {
    if (turn.refusal() == MeasuringTurn::Refusal::None) candidates = profile(library, *cuda, stream, caller, descriptor, plan);
  } catch (...) {
    state.profile = ProfileState::Done;
    --runtime().wanted_profiles;
    throw;
  }
  state.profile = ProfileState::Done;
  --runtime().wanted_profiles;
  if (!candidates.empty()) report_profile(state, candidates, library);
}

}  // namespace convpin::graph
