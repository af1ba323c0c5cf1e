#include "tools/convclient/plan.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace convclient {

Descriptor make_properties(const std::string& json) {
  Descriptor d(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "device properties");
  d.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(json.size()),
        json.data())
      .finalize();
  return d;
}

std::vector<Descriptor> ask_heuristics(const Descriptor& graph, cudnnBackendHeurMode_t mode,
                                       const Target& target, std::string& error) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristics");
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (target.properties) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties);
  heuristics.finalize();
  auto configs = heuristics.get_all(
      CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine configuration",
      heuristics.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR));
  if (!heuristics.ok()) error = heuristics.error();
  return configs;
}

Configuration read_configuration(Descriptor& config) {
  Configuration out;
  Descriptor engine = config.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
  std::int64_t index = -1;
  engine.get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
  out.engine.engine = static_cast<int>(index);

  std::array<cudnnBackendNumericalNote_t, 32> notes;
  const std::int64_t count = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                        static_cast<std::int64_t>(notes.size()), notes.data());
  for (std::int64_t i = 0; i < count; ++i) out.notes.push_back(notes[static_cast<std::size_t>(i)]);

  // Room for more kinds of knobs than this header names, and each read as a number, since a newer cuDNN may
  // have them.
  for (Descriptor& choice :
       config.get_all(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "knob choice",
                      CUDNN_KNOB_TYPE_COUNTS + 32)) {
    std::int32_t type = -1;
    std::int64_t value = 0;
    choice.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    choice.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value);
    out.engine.knobs.push_back({type, value});
  }
  std::sort(out.engine.knobs.begin(), out.engine.knobs.end());
  return out;
}

OwnConfiguration make_configuration(const convpin::EngineConfig& wanted, const Descriptor& graph,
                                    const Target& target) {
  OwnConfiguration own;
  own.parts.reserve(1 + wanted.knobs.size());  // so that the pointers below stay valid
  Descriptor& engine = own.parts.emplace_back(CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, std::int64_t{wanted.engine});
  if (target.properties) engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, *target.properties);
  engine.finalize();
  std::vector<const Descriptor*> choices;
  for (const convpin::Knob& knob : wanted.knobs) {
    const auto type = static_cast<cudnnBackendKnobType_t>(knob.type);
    Descriptor& choice = own.parts.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "knob choice");
    choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type)
        .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, knob.value)
        .finalize();
    choices.push_back(&choice);
  }
  own.config = Descriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine configuration");
  own.config.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!choices.empty()) own.config.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, choices);
  own.config.finalize();
  return own;
}

namespace {

// A plan that lacks nothing but what it is to run.
Plan begin_plan(const Target& target) {
  Plan plan;
  plan.descriptor = Descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "execution plan");
  if (target.handle)
    plan.descriptor.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  if (target.properties) plan.descriptor.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties);
  return plan;
}

void finish_plan(Plan& plan) {
  plan.descriptor.finalize();
  plan.descriptor.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &plan.workspace);
}

}  // namespace

Plan make_plan(const Descriptor& config, const Target& target) {
  Plan plan = begin_plan(target);
  plan.descriptor.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  finish_plan(plan);
  return plan;
}

std::string json_of(Plan& plan) {
  const auto name = CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
  std::string json(static_cast<std::size_t>(plan.descriptor.count(name, CUDNN_TYPE_CHAR)), '\0');
  plan.descriptor.get(name, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(json.size()), json.data());
  return json;
}

Plan restore_plan(const std::string& json, const Target& target) {
  Plan plan = begin_plan(target);
  plan.descriptor.set(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                      static_cast<std::int64_t>(json.size()), json.data());
  finish_plan(plan);
  return plan;
}

Configuration read_configuration_of_plan(Descriptor& plan) {
  Descriptor config = plan.get(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                               "engine configuration");
  return read_configuration(config);
}

bool allowed(const std::vector<int>& notes, const std::vector<int>& denied) {
  return std::none_of(notes.begin(), notes.end(), [&](int note) {
    return std::find(denied.begin(), denied.end(), note) != denied.end();
  });
}

std::vector<std::size_t> fastest_first(const std::vector<std::optional<double>>& times) {
  std::vector<std::size_t> order(times.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) { return !times[i]; });
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return *times[a] < *times[b]; });
  return order;
}

}  // namespace convclient
