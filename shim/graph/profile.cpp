#include "shim/graph/profile.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "shim/graph/decide.hpp"
#include "shim/graph/packs.hpp"
#include "shim/graph/parts.hpp"
#include "shim/graph/rows.hpp"
#include "shim/hooks/reason.hpp"
#include "shim/process/denials.hpp"
#include "shim/process/report.hpp"
#include "shim/process/rules.hpp"
#include "shim/profile/buffer.hpp"
#include "shim/profile/kernels.hpp"
#include "shim/profile/measure.hpp"

namespace convpin::graph {
namespace {

// What a candidate's run is made of.
struct Caller {
  const Library& library;
  cudnnHandle_t handle;
  Operation operation;
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  std::vector<std::size_t> output_at;   // places in ids, in the order of the graph's outputs
};

bool find_outputs(const ConvolutionGraph& graph, Caller& out) {
  for (const auto& output : graph.outputs) {
    const auto at = std::find(out.ids.begin(), out.ids.end(), output.id);
    if (at == out.ids.end()) return false;
    out.output_at.push_back(static_cast<std::size_t>(at - out.ids.begin()));
  }
  return true;
}

bool read_caller(cudnnBackendDescriptor_t variant_pack, const ConvolutionGraph& graph, Caller& out) {
  return graph.runnable && read_variant_pack(variant_pack, out.ids, out.pointers) && find_outputs(graph, out);
}

int rank_of(const std::vector<Listed>& list, const EngineConfig& config) {
  const auto at = std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.config == config; });
  return at == list.end() ? -1 : static_cast<int>(at - list.begin());
}

// One profile: on whose graph, what is known, and what its rule's policy may not take in any case (then it isn't built).
struct Session {
  const Caller& caller;
  Target target;
  cudnnBackendDescriptor_t graph;
  const std::vector<Listed>& list;
  const Known& known;
  const std::vector<Row>& rows;
  std::optional<Flags> allowed;           // of a policy; empty: everything is tried

  // Whether another row with the same configuration is the one that was asked for.
  bool other_requested(const Row& row) const {
    return std::any_of(rows.begin(), rows.end(), [&](const Row& other) { return &other != &row && other.requested && other.configs == row.configs; });
  }
};

// Building a run-time compiled engine takes tenths of a second: not for a policy that may not take it.
bool pointless(const Session& session, const Notes& notes) {
  return notes.compiled_at_run_time() && session.allowed && !session.allowed->has(Flag::RuntimeCompilation);
}

Attempt attempt_of(const Session& session, const Row& row) {
  const Caller& caller = session.caller;
  const Library& library = caller.library;
  Attempt attempt;
  Candidate& c = attempt.candidate;
  c.operation = caller.operation;
  c.algorithm = row.algorithm;
  c.framework_choice = row.framework_choice;
  c.requested = row.requested;
  c.status = CandidateStatus::Unsupported;
  c.reason = "no engine for it";
  for (const EngineConfig& config : row.configs) {
    c.engine = config;
    if (const Denial* denial = denied(session.known.state, config)) {
      c.reason = denial_text(*denial);
      continue;
    }
    const Descriptor descriptor(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    const ReasonScope words(library);
    const auto begin = std::chrono::steady_clock::now();
    if (const auto status = fill_config(library, descriptor.get(), session.graph, config, session.target)) {
      c.reason = words.text(status);
      continue;
    }
    const Notes notes = read_notes(library, descriptor.get());
    if (pointless(session, notes)) {
      c.status = CandidateStatus::Skipped;
      c.reason = "it is compiled at run time";
      continue;
    }
    auto plan = std::make_shared<Plan>(build_plan(library, descriptor.get(), session.target));
    c.build_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    if (plan->status != CUDNN_STATUS_SUCCESS) {
      c.reason = plan->reason;
      continue;
    }
    // Two algorithms may stand for one engine: the one that was asked for runs.
    const bool runs = session.known.running && *session.known.running == config && (row.requested || !session.other_requested(row));
    c.status = CandidateStatus::Ok;
    c.reason.clear();
    c.workspace_bytes = plan->workspace_bytes;
    c.numerical_notes = notes.numerical;
    // No number ever means a configuration that converts its inputs down.
    if (notes.has_numerical(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) && !runs) {
      c.algorithm = -1;
      c.requested = false;
    }
    c.behavior_notes = notes.behavior;
    c.deterministic = !notes.has_numerical(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
    c.heuristics_rank = rank_of(session.list, config);
    c.running = runs;
    attempt.run = [&caller, plan](const std::vector<void*>& outputs, void* workspace) {
      auto pointers = caller.pointers;
      for (std::size_t i = 0; i < outputs.size(); ++i) pointers[caller.output_at[i]] = outputs[i];
      return execute(caller.library, caller.handle, plan->descriptor.get(), caller.ids, std::move(pointers), workspace);
    };
    return attempt;
  }
  return attempt;
}

// The fused graph's operations one by one, on the same data.
Attempt attempt_apart(const Session& session, const ConvolutionGraph& graph, const Driver& driver, CUstream stream) {
  const Caller& caller = session.caller;
  Attempt attempt;
  Candidate& c = attempt.candidate;
  c.operation = caller.operation;
  c.status = CandidateStatus::Unsupported;
  const auto begin = std::chrono::steady_clock::now();
  const auto apart = std::make_shared<Parts>(take_apart(caller.library, graph, session.target));
  c.build_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  for (const Part& part : apart->parts) c.parts.push_back(part.what);
  c.reason = apart->reason;
  if (!c.reason.empty()) return attempt;
  const auto between = std::make_shared<std::vector<Buffer>>();
  for (const auto& tensor : apart->between) {
    between->emplace_back(driver, stream, tensor.bytes);
    if (between->back().failed()) return c.status = CandidateStatus::NoMemory, c.reason = "no memory for what is between them", attempt;
  }
  c.status = CandidateStatus::Ok;
  c.workspace_bytes = apart->workspace_bytes;
  attempt.run = [&caller, apart, between](const std::vector<void*>& outputs, void* workspace) {
    auto pointers = caller.pointers;
    for (std::size_t i = 0; i < outputs.size(); ++i) pointers[caller.output_at[i]] = outputs[i];
    const auto pointer_of = [&](std::int64_t id) {
      for (std::size_t i = 0; i < apart->between.size(); ++i)
        if (apart->between[i].id == id) return (*between)[i].pointer();
      const auto at = std::find(caller.ids.begin(), caller.ids.end(), id);
      return at == caller.ids.end() ? nullptr : pointers[static_cast<std::size_t>(at - caller.ids.begin())];
    };
    for (const Part& part : apart->parts) {
      std::vector<void*> own;
      for (const std::int64_t id : part.ids) own.push_back(pointer_of(id));
      if (const auto status = execute(caller.library, caller.handle, part.plan.descriptor.get(), part.ids, std::move(own), workspace)) return status;
    }
    return CUDNN_STATUS_SUCCESS;
  };
  return attempt;
}

std::vector<Candidate> measure_rows(const Driver& driver, CUstream stream, const Session& session, const ConvolutionGraph& graph) {
  ReasonScope words(session.caller.library, Listen::Yes);
  Subject subject;
  subject.stream = stream;
  for (const auto& output : graph.outputs) subject.outputs.push_back({output.bytes, output.type, output.read});
  for (const Row& row : session.rows) subject.attempts.push_back([&session, &row] { return attempt_of(session, row); });
  if (!graph.operations.empty() && !session.allowed)
    subject.attempts.push_back([&] { return attempt_apart(session, graph, driver, stream); });
  subject.about_to_try = [&](const Candidate& c) {
    words.forget();
    record(try_record(session.known.state.id, session.known.state.problem, c));
  };
  subject.why = [&](cudnnStatus_t status) { return words.text(status); };
  subject.count_kernels = kernel_counter(session.caller.library, driver, session.caller.handle);
  return measure(driver, subject);
}

std::vector<Candidate> profile(const Driver& driver, CUstream stream, const Caller& caller, cudnnBackendDescriptor_t descriptor,
                               const PlanNode& plan, const Way& way) {
  announce(*plan.state);
  const CudaScope scope(driver);
  const ReasonScope quiet(caller.library);
  const Descriptor config = config_of_plan(caller.library, descriptor);
  const Descriptor graph = config ? graph_of_config(caller.library, config.get()) : Descriptor();
  if (!graph) return {};
  const Target target{caller.handle, nullptr};
  const auto list = read_list(caller.library, query_heuristics(caller.library, graph.get(), CUDNN_HEUR_MODE_INSTANT, target));
  const EngineConfig own = plan.own_choice ? *plan.own_choice : list.empty() ? way.config : list.front().config;
  const Known known{*plan.state, own, way.config, plan.dropped};
  const auto rows = rows_of(caller.library, known, runtime().settings.profile_level, list, engine_count(caller.library, graph.get()));
  return measure_rows(driver, stream, {caller, target, graph.get(), list, known, rows, std::nullopt}, *plan.graph);
}

}  // namespace

void profile_plan(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t descriptor, PlanNode& plan, const Way& way,
                  cudnnBackendDescriptor_t variant_pack) {
  const Driver* cuda = driver(library);
  Caller caller{library, handle, plan.graph->problem.operation, {}, {}, {}};
  cudaStream_t stream = nullptr;
  ProblemState& state = *plan.state;
  if (!cuda || !read_caller(variant_pack, *plan.graph, caller)) {
    // What the pack holds was set before anybody watched, or on another thread: it may be so for ever.
    constexpr int kTries = 8;
    if (++plan.misses >= kTries && take_profile(state)) ++runtime().unseen_profiles;
    return;
  }
  if (!library.cudnnGetStream || library.cudnnGetStream(handle, &stream) != CUDNN_STATUS_SUCCESS || !may_measure(*cuda, stream))
    return;
  MeasuringTurn turn;
  if (!turn.taken()) return;
  auto wanted = ProfileState::Wanted;
  if (!state.profile.compare_exchange_strong(wanted, ProfileState::Running)) return;
  std::vector<Candidate> candidates;
  try {
    if (turn.refused().empty()) candidates = profile(*cuda, stream, caller, descriptor, plan, way);
  } catch (...) {
    state.profile = ProfileState::Done;
    unwatch_packs();
    throw;
  }
  state.profile = ProfileState::Done;
  unwatch_packs();
  if (!candidates.empty()) report_profile(state, candidates, library);
}

std::string may_profile(const Library& library, const Target& target, const ConvolutionGraph& graph, const std::vector<Listed>& heuristics) {
  const Driver* cuda = driver(library);
  cudaStream_t stream = nullptr;
  const auto by_value = [](const auto& input) { return input.by_value; };
  if (heuristics.empty() || !graph.runnable || std::any_of(graph.inputs.begin(), graph.inputs.end(), by_value))
    return "this graph can't be run on data of our own";
  if (!target.handle || !cuda || !library.cudnnGetStream || library.cudnnGetStream(target.handle, &stream) || !may_measure(*cuda, stream))
    return "it can't be timed now (no GPU, or a capture is under way)";
  return {};
}

std::vector<Candidate> profile_on_own_data(const Library& library, ProblemState& state, const Rule& rule, const ConvolutionGraph& graph,
                                           cudnnBackendDescriptor_t descriptor, const Target& target,
                                           const std::vector<Listed>& heuristics, std::string& why) {
  const Driver* cuda = driver(library);
  cudaStream_t stream = nullptr;
  library.cudnnGetStream(target.handle, &stream);
  announce(state);
  const CudaScope scope(*cuda);
  Caller caller{library, target.handle, graph.problem.operation, {}, {}, {}};
  std::vector<Buffer> inputs;
  for (const auto& input : graph.inputs) {
    inputs.emplace_back(*cuda, stream, input.bytes);
    if (inputs.back().failed() || !fill_random(*cuda, stream, inputs.back().address(), input.bytes, input.type))
      return why = "there is no memory for its data", std::vector<Candidate>();
    caller.ids.push_back(input.id);
    caller.pointers.push_back(inputs.back().pointer());
  }
  for (const auto& output : graph.outputs) caller.ids.push_back(output.id), caller.pointers.push_back(nullptr);
  find_outputs(graph, caller);
  // Taken for the framework's own choice: frameworks drop what converts down, and what is denied is not given to them.
  const auto own = std::find_if(heuristics.begin(), heuristics.end(),
                                [&](const Listed& entry) { return !entry.down_converts && !denied(state, entry.config); });
  const Known known{state, (own == heuristics.end() ? heuristics.begin() : own)->config, std::nullopt, {}};
  const auto rows = rows_of(library, known, ProfileLevel::Engines, heuristics, engine_count(library, descriptor));
  auto candidates = measure_rows(*cuda, stream, {caller, target, descriptor, heuristics, known, rows, rule.allow}, graph);
  report_profile(state, candidates, library);
  take_profile(state);  // what the settings want to see of it is seen
  return candidates;
}

}  // namespace convpin::graph
