// The log's records as JSON lines. One write(2) of at most PIPE_BUF bytes is atomic on a pipe, so a line
// with its newline stays under that: free texts are cut where it would not.
#include "shim/model/record.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "shim/model/text.hpp"

namespace convpin {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestLine = 3700;  // with the run's id (with_run_id) and a newline still under 4096
constexpr int kSchema = 1;

// Texts may hold any bytes; what is not UTF-8 is written as the replacement character.
std::string dump(const Json& record) { return record.dump(-1, ' ', false, Json::error_handler_t::replace); }

void cut_texts(Json& value, std::size_t longest) {
  if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    if (text.size() > longest) text = text.substr(0, longest) + "...";
  } else if (value.is_structured()) {
    for (Json& item : value) cut_texts(item, longest);
  }
}

void cut_lists(Json& record, std::size_t longest) {
  for (Json& value : record) {
    if (value.is_array() && value.size() > longest)
      value.erase(value.begin() + static_cast<std::ptrdiff_t>(longest), value.end());
    if (value.is_object())
      while (value.size() > longest) value.erase(std::prev(value.end()));
  }
}

// First the long texts, then long lists are cut, and the record says so.
std::string line(Json record) {
  std::string text = dump(record);
  if (text.size() <= kLongestLine) return text;
  record["cut"] = true;
  for (std::size_t longest = 2048; text.size() > kLongestLine && longest >= 64; longest /= 2) {
    cut_texts(record, longest);
    text = dump(record);
  }
  for (std::size_t longest = 32; text.size() > kLongestLine && longest > 0; longest /= 2) {
    cut_lists(record, longest);
    text = dump(record);
  }
  return text;
}

// Only memory can be short here, and then a line less is the smaller evil.
template <typename Make>
std::string guarded(Make make) {
  try {
    return line(make());
  } catch (...) {
    return R"({"type":"lost"})";
  }
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json not_negative(int value) { return value < 0 ? Json(nullptr) : Json(value); }

// Clocks do not resolve more than a nanosecond; what is behind is noise of the conversion.
Json rounded(const std::optional<double>& value, double factor = 1) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return std::round(*value * factor * 1000) / 1000;
}

template <typename Name>
Json names(const std::vector<int>& values, Name name) {
  Json list = Json::array();
  for (const int value : values) list.push_back(name(value));
  return list;
}

Json begin(const char* type, ProblemId id) { return {{"type", type}, {"problem_id", id}}; }

void add_identity(Json& record, const Candidate& c) {
  record["algorithm"] = not_negative(c.algorithm);
  record["algorithm_name"] = or_null(std::string(algorithm_name(c.operation, c.algorithm)));
  record["engine"] = c.engine.engine < 0 ? Json(nullptr) : Json(to_tag(c.engine));
  record["math_type"] = c.math_type < 0 ? Json(nullptr) : Json(cudnn_math_type(c.math_type));
}

void add_properties(Json& record, const Candidate& c) {
  record["workspace_bytes"] = or_null(c.workspace_bytes);
  record["deterministic"] = or_null(c.deterministic);
  record["numerical_notes"] = names(c.numerical_notes, cudnn_numerical_note);
  record["behavior_notes"] = names(c.behavior_notes, cudnn_behavior_note);
}

Json device_json(const Device& d) {
  return {{"name", or_null(d.name)},
          {"uuid", or_null(d.uuid)},
          {"pci", or_null(d.pci)},
          {"ordinal", not_negative(d.ordinal)},
          {"compute_capability", d.compute_capability ? Json(d.compute_capability) : Json(nullptr)},
          {"cuda_driver", d.driver_version ? Json(d.driver_version) : Json(nullptr)},
          {"driver", or_null(d.driver)},
          {"memory_bytes", d.memory_bytes ? Json(d.memory_bytes) : Json(nullptr)},
          {"sm_clock_mhz", or_null(d.sm_clock_mhz)},
          {"memory_clock_mhz", or_null(d.memory_clock_mhz)},
          {"power_limit_mw", or_null(d.power_limit_mw)},
          {"mig", or_null(d.mig)}};
}

Json header_json(const Header& h) {
  Json settings = Json::object();
  for (const auto& [name, value] : h.settings) settings[name] = value;
  return {{"type", "header"},
          {"schema", kSchema},
          {"run_id", h.run_id},
          {"convpin", h.convpin_version},
          {"cudnn", or_null(h.cudnn_version)},
          {"started_unix_us", h.started_unix_us},
          {"host", or_null(h.host)},
          {"pid", h.pid},
          {"rank", not_negative(h.rank)},
          {"local_rank", not_negative(h.local_rank)},
          {"command", or_null(h.command)},
          {"gpu", device_json(h.device)},
          {"settings", settings},
          {"warmup", h.warmup},
          {"repeats", h.repeats}};
}

// A fused graph's operations one by one are no candidate that could be named.
Json replay_or_null(const Problem& problem, const Candidate& c) { return c.parts.empty() ? Json(replay_line(problem, c)) : Json(nullptr); }

Json candidate_json(ProblemId id, const Problem& problem, const Candidate& c) {
  Json record = begin("candidate", id);
  add_identity(record, c);
  record["status"] = name_of(c.status);
  record["reason"] = or_null(c.reason);
  record["time_us"] = rounded(c.time_ms, 1000);
  record["time_us_iqr"] = rounded(c.time_iqr_ms, 1000);
  record["samples"] = c.samples;
  if (c.host_timed) record["host_timed"] = true;
  if (c.energy_mj) {
    record["energy_mj"] = *c.energy_mj;
    record["energy_sd_mj"] = or_null(c.energy_sd_mj);
    record["power_w"] = or_null(c.power_w);
  }
  record["build_ms"] = rounded(c.build_ms);
  record["kernels"] = or_null(c.kernels);
  if (!c.parts.empty()) record["parts"] = c.parts;
  add_properties(record, c);
  record["error"] = or_null(c.error);
  record["requested"] = c.requested;
  record["framework_choice"] = c.framework_choice;
  record["heuristics_rank"] = not_negative(c.heuristics_rank);
  record["replay"] = replay_or_null(problem, c);
  return record;
}

Json choice_json(ProblemId id, const Problem& problem, const Choice& choice, const Candidate& ran, const Candidate& again) {
  Json record = begin("choice", id);
  record["choice"] = name_of(choice.kind);
  record["api"] = or_null(choice.api);
  record["rule"] = or_null(choice.rule);
  record["requested"] = or_null(choice.requested);
  record["reason"] = or_null(choice.reason);
  record["ran"] = or_null(choice.ran);
  add_identity(record, ran);
  add_properties(record, ran);
  record["replay"] = replay_line(problem, again);
  return record;
}

Json query_json(ProblemId id, const std::string& function, const std::vector<Candidate>& got) {
  Json results = Json::array();
  for (const Candidate& c : got) {
    Json result = Json::object();
    add_identity(result, c);
    result["status"] = name_of(c.status);
    result["time_us"] = rounded(c.time_ms, 1000);
    result["workspace_bytes"] = or_null(c.workspace_bytes);
    result["deterministic"] = or_null(c.deterministic);
    results.push_back(std::move(result));
  }
  Json record = begin("query", id);
  record["function"] = function;
  record["results"] = std::move(results);
  return record;
}

}  // namespace

std::string header_record(const Header& h) {
  return guarded([&] { return header_json(h); });
}

std::string problem_record(ProblemId id, const Problem& problem, const std::string& api, const Device& device,
                           const std::string& cudnn_version) {
  return guarded([&] {
    Json record = begin("problem", id);
    record["problem"] = to_text(problem);
    record["operations"] = operations_of(problem);
    record["api"] = api;
    record["gpu"] = or_null(device.name);
    record["gpu_uuid"] = or_null(device.uuid);
    record["cudnn"] = or_null(cudnn_version);
    return record;
  });
}

std::string try_record(ProblemId id, const Problem& problem, const Candidate& candidate) {
  return guarded([&] {
    Json record = begin("try", id);
    add_identity(record, candidate);
    record["replay"] = replay_or_null(problem, candidate);
    return record;
  });
}

std::string candidate_record(ProblemId id, const Problem& problem, const Candidate& candidate) {
  return guarded([&] { return candidate_json(id, problem, candidate); });
}

std::string choice_record(ProblemId id, const Problem& problem, const Choice& choice, const Candidate& ran) {
  return guarded([&] { return choice_json(id, problem, choice, ran, ran); });
}

std::string failed_choice_record(ProblemId id, const Problem& problem, const Choice& choice, const Candidate& asked) {
  return guarded([&] { return choice_json(id, problem, choice, {}, asked); });
}

std::string failure_record(int failure_id, const Failure& f) {
  return guarded([&] {
    return Json{{"type", "failure"},
                {"failure_id", failure_id},
                {"call", f.call},
                {"descriptor", or_null(f.descriptor)},
                {"attribute", or_null(f.attribute)},
                {"status", f.status},
                {"reason", or_null(f.reason)},
                {"problem_id", f.problem_id ? Json(f.problem_id) : Json(nullptr)},
                {"problem", or_null(f.problem)},
                {"replay", or_null(f.replay)},
                {"times", f.times}};
  });
}

std::string replay_line(const Problem& problem, const Candidate& c) {
  const std::string of = std::string("convpin replay ") + (c.math_type >= 0 ? "--legacy '" : "'") + to_text(problem) + "'";
  if (c.engine.engine >= 0) return of + " --candidate " + to_tag(c.engine);
  return c.algorithm >= 0 ? of + " --candidate " + std::to_string(c.algorithm) : of;
}

std::string query_record(ProblemId id, const std::string& function, const std::vector<Candidate>& got) {
  return guarded([&] { return query_json(id, function, got); });
}

std::string count_record(ProblemId id, const std::string& ran, std::uint64_t calls) {
  return guarded([&] {
    Json record = begin("count", id);
    record["ran"] = or_null(ran);
    record["calls"] = calls;
    return record;
  });
}

std::string label_record(ProblemId id, const std::string& label) {
  return guarded([&] {
    Json record = begin("label", id);
    record["label"] = label;
    return record;
  });
}

std::string end_record(const Totals& totals) {
  return guarded([&] {
    return Json{{"type", "end"},
                {"problems", totals.problems},
                {"calls", totals.calls},
                {"pinned_problems", totals.pinned_problems},
                {"unsupported_problems", totals.unsupported_problems},
                {"pinned_calls", totals.pinned_calls},
                {"failed_problems", totals.failed_problems},
                {"failed_calls", totals.failed_calls}};
  });
}

std::string with_run_id(const std::string& record, const std::string& run_id) {
  if (record.empty() || record.find("\"run_id\"") != std::string::npos) return record;
  return "{\"run_id\":" + dump(run_id.substr(0, 300)) + "," + record.substr(1);
}

}  // namespace convpin
