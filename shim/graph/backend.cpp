#include "shim/graph/backend.hpp"

#include <algorithm>

#include "shim/hooks/reason.hpp"

namespace convpin::graph {
namespace {

// More than any header knows: cuDNN 9.19 has 44 knob types, 9.22 has 46.
constexpr std::int64_t kMostKnobs = 64;
constexpr std::int64_t kMostNotes = 64;

cudnnStatus_t set(const Library& library, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  return library.cudnnBackendSetAttribute(d, name, type, count, values);
}

cudnnStatus_t get(const Library& library, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, std::int64_t count, std::int64_t* got, void* values) {
  return library.cudnnBackendGetAttribute(d, name, type, count, got, values);
}

bool get_descriptor(const Library& library, cudnnBackendDescriptor_t from, cudnnBackendAttributeName_t name,
                    const Descriptor& into) {
  cudnnBackendDescriptor_t raw = into.get();
  std::int64_t got = 0;
  return raw && get(library, from, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &got, &raw) == CUDNN_STATUS_SUCCESS;
}

Descriptor engine_of(const Library& library, cudnnBackendDescriptor_t config) {
  Descriptor engine(library, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  return get_descriptor(library, config, CUDNN_ATTR_ENGINECFG_ENGINE, engine) ? std::move(engine) : Descriptor();
}

template <typename Note>
std::vector<int> notes(const Library& library, cudnnBackendDescriptor_t engine, cudnnBackendAttributeName_t name,
                       cudnnBackendAttributeType_t type) {
  Note raw[kMostNotes];
  std::int64_t count = 0;
  if (get(library, engine, name, type, kMostNotes, &count, raw) != CUDNN_STATUS_SUCCESS) return {};
  return {raw, raw + std::clamp<std::int64_t>(count, 0, kMostNotes)};
}

}  // namespace

Descriptor::Descriptor(const Library& library, cudnnBackendDescriptorType_t type) : library_(&library) {
  if (library.cudnnBackendCreateDescriptor(type, &raw_) != CUDNN_STATUS_SUCCESS) raw_ = nullptr;
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(library_, other.library_);
  std::swap(raw_, other.raw_);
  return *this;
}

Descriptor::~Descriptor() {
  if (raw_) library_->cudnnBackendDestroyDescriptor(raw_);
}

bool Notes::has_numerical(int note) const { return std::find(numerical.begin(), numerical.end(), note) != numerical.end(); }

bool Notes::compiled_at_run_time() const {
  return std::find(behavior.begin(), behavior.end(), CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != behavior.end();
}

EngineConfig read_config(const Library& library, cudnnBackendDescriptor_t config) {
  EngineConfig out;
  const Descriptor engine = engine_of(library, config);
  std::int64_t index = -1, got = 0;
  if (!engine || get(library, engine.get(), CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &got, &index)) return out;
  out.engine = static_cast<int>(index);

  // The count can't be asked for alone (0 requested gives 0, measured on 9.19): offer more than any engine has.
  std::vector<Descriptor> choices;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < kMostKnobs; ++i) {
    choices.emplace_back(library, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    raw.push_back(choices.back().get());
  }
  std::int64_t knob_count = 0;
  if (get(library, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, kMostKnobs, &knob_count,
          raw.data()) != CUDNN_STATUS_SUCCESS)
    return out;
  raw.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(knob_count, 0, kMostKnobs)));
  for (auto* choice : raw) {
    cudnnBackendKnobType_t type{};
    std::int64_t value = 0;
    if (get(library, choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &got, &type) == 0 &&
        get(library, choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &got, &value) == 0)
      out.knobs.push_back({static_cast<int>(type), value});
  }
  std::sort(out.knobs.begin(), out.knobs.end());
  return out;
}

Notes read_notes(const Library& library, cudnnBackendDescriptor_t config) {
  const Descriptor engine = engine_of(library, config);
  if (!engine) return {};
  return {notes<cudnnBackendNumericalNote_t>(library, engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                             CUDNN_TYPE_NUMERICAL_NOTE),
          notes<cudnnBackendBehaviorNote_t>(library, engine.get(), CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                            CUDNN_TYPE_BEHAVIOR_NOTE)};
}

Descriptor graph_of_config(const Library& library, cudnnBackendDescriptor_t config) {
  const Descriptor engine = engine_of(library, config);
  Descriptor graph(library, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (!engine || !get_descriptor(library, engine.get(), CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph)) return {};
  return graph;
}

std::vector<Descriptor> read_results(const Library& library, cudnnBackendDescriptor_t heuristics, std::int64_t most) {
  std::int64_t count = 0;
  if (get(library, heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr) !=
          CUDNN_STATUS_SUCCESS ||
      count <= 0)
    return {};
  count = std::min(count, most);
  std::vector<Descriptor> configs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    configs.emplace_back(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(configs.back().get());
  }
  std::int64_t got = 0;
  if (get(library, heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &got, raw.data()) !=
      CUDNN_STATUS_SUCCESS)
    return {};
  configs.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(got, 0, count)));  // 37 counted, 36 given: seen
  return configs;
}

std::vector<Descriptor> query_heuristics(const Library& library, cudnnBackendDescriptor_t graph,
                                         cudnnBackendHeurMode_t mode, const Target& target) {
  const Descriptor heuristics(library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  if (!heuristics ||
      set(library, heuristics.get(), CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph) ||
      set(library, heuristics.get(), CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode))
    return {};
  if (target.device_prop && set(library, heuristics.get(), CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                                CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target.device_prop))
    return {};
  if (library.cudnnBackendFinalize(heuristics.get())) return {};
  return read_results(library, heuristics.get());
}

cudnnStatus_t fill_config(const Library& library, cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t graph,
                          const EngineConfig& wanted, const Target& target) {
  const Descriptor engine(library, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  const std::int64_t index = wanted.engine;
  cudnnStatus_t status =
      set(library, engine.get(), CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
  if (!status) status = set(library, engine.get(), CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
  if (!status && target.device_prop)
    status = set(library, engine.get(), CUDNN_ATTR_ENGINE_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target.device_prop);
  if (!status) status = library.cudnnBackendFinalize(engine.get());
  cudnnBackendDescriptor_t raw = engine.get();
  if (!status) status = set(library, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  if (status) return status;

  std::vector<Descriptor> choices;
  std::vector<cudnnBackendDescriptor_t> raw_choices;
  for (const Knob& knob : wanted.knobs) {
    Descriptor choice(library, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    const auto type = static_cast<cudnnBackendKnobType_t>(knob.type);
    status = set(library, choice.get(), CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    if (!status) status = set(library, choice.get(), CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &knob.value);
    if (!status) status = library.cudnnBackendFinalize(choice.get());
    if (status) return status;
    raw_choices.push_back(choice.get());
    choices.push_back(std::move(choice));
  }
  if (!raw_choices.empty())
    status = set(library, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                 static_cast<std::int64_t>(raw_choices.size()), raw_choices.data());
  return status ? status : library.cudnnBackendFinalize(config);
}

Plan build_plan(const Library& library, cudnnBackendDescriptor_t config, const Target& target) {
  Plan plan;
  const ReasonScope words(library);
  Descriptor descriptor(library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.status = set(library, descriptor.get(), CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                    &config);
  if (!plan.status && target.handle)
    plan.status = set(library, descriptor.get(), CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  if (!plan.status && target.device_prop)
    plan.status = set(library, descriptor.get(), CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                      &target.device_prop);
  if (!plan.status) plan.status = library.cudnnBackendFinalize(descriptor.get());
  if (plan.status) {
    plan.reason = words.text(plan.status);
    return plan;
  }
  plan.workspace_bytes = workspace_of_plan(library, descriptor.get());
  plan.descriptor = std::move(descriptor);
  return plan;
}

Plan build_plan(const Library& library, cudnnBackendDescriptor_t graph, const EngineConfig& wanted, const Target& target) {
  const Descriptor config(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  const ReasonScope words(library);
  if (const cudnnStatus_t status = fill_config(library, config.get(), graph, wanted, target)) {
    Plan plan;
    plan.status = status;
    plan.reason = words.text(status);
    return plan;
  }
  return build_plan(library, config.get(), target);
}

Descriptor copy_of_properties(const Library& library, cudnnBackendDescriptor_t from) {
  constexpr auto name = CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION;
  std::int64_t count = 0;
  if (get(library, from, name, CUDNN_TYPE_CHAR, 0, &count, nullptr) || count <= 0) return {};
  std::vector<char> json(static_cast<std::size_t>(count));
  Descriptor to(library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  if (get(library, from, name, CUDNN_TYPE_CHAR, count, &count, json.data()) ||
      set(library, to.get(), name, CUDNN_TYPE_CHAR, count, json.data()) || library.cudnnBackendFinalize(to.get()))
    return {};
  return to;
}

int engine_count(const Library& library, cudnnBackendDescriptor_t graph) {
  std::int64_t count = 0, got = 0;
  const auto status = get(library, graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64, 1, &got, &count);
  return status ? 0 : static_cast<int>(count);
}

Descriptor config_of_plan(const Library& library, cudnnBackendDescriptor_t plan) {
  Descriptor config(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  return get_descriptor(library, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config) ? std::move(config) : Descriptor();
}

std::int64_t workspace_of_plan(const Library& library, cudnnBackendDescriptor_t plan) {
  std::int64_t bytes = 0, got = 0;
  const auto status = get(library, plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &got, &bytes);
  return status ? 0 : bytes;
}

Descriptor make_pack(const Library& library, const std::vector<std::int64_t>& ids, std::vector<void*> pointers, void* workspace,
                     cudnnStatus_t& status) {
  Descriptor pack(library, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const auto count = static_cast<std::int64_t>(ids.size());
  status = set(library, pack.get(), CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data());
  if (!status) status = set(library, pack.get(), CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data());
  if (!status) status = set(library, pack.get(), CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  if (!status) status = library.cudnnBackendFinalize(pack.get());
  return pack;
}

cudnnStatus_t execute(const Library& library, cudnnHandle_t handle, cudnnBackendDescriptor_t plan, const std::vector<std::int64_t>& ids,
                      std::vector<void*> pointers, void* workspace) {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  const Descriptor pack = make_pack(library, ids, std::move(pointers), workspace, status);
  return status ? status : library.cudnnBackendExecute(handle, plan, pack.get());
}

}  // namespace convpin::graph
