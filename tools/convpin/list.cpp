// list: which algorithms and engines support a problem, with a GPU or with the description of one.
#include <algorithm>

#include "shim/model/match.hpp"
#include "shim/model/text.hpp"
#include "tools/convpin/command.hpp"
#include "tools/convpin/counted.hpp"
#include "tools/convpin/cudnn.hpp"
#include "tools/convpin/engines.hpp"
#include "tools/convpin/files.hpp"
#include "tools/convpin/letters.hpp"
#include "tools/convpin/problems.hpp"
#include "tools/convpin/table.hpp"

namespace convpin::cli {
namespace {

struct ListOptions {
  std::vector<std::string> problems, logs;
  std::string device, cudnn;
  int sm = 0;
  bool refused = false, json = false;
};

const char* word_for(CandidateStatus status) {
  return status == CandidateStatus::Ok ? "yes" : status == CandidateStatus::Skipped ? "unknown" : "no";
}

Table table_of(const EngineList& list, const Problem& problem) {
  Table table{
      {"algo", "algo_name", "engine", "supported", "heuristics_rank", "workspace_bytes", "numerical_notes", "behavior_notes", "reason"},
      {}};
  const auto names = [](const std::vector<int>& notes, auto name) {
    Json words = Json::array();
    for (const int note : notes) words.push_back(lower(name(note)));
    return words;
  };
  for (const Candidate& c : list.engines)
    table.rows.push_back({c.algorithm < 0 ? Json() : Json(c.algorithm),
                          c.algorithm < 0 ? Json() : Json(algorithm_name(c.operation, c.algorithm)), to_tag(c.engine), word_for(c.status),
                          c.heuristics_rank < 0 ? Json() : Json(c.heuristics_rank), c.workspace_bytes ? Json(*c.workspace_bytes) : Json(),
                          names(c.numerical_notes, [&](int note) { return numerical_note_name(note, problem.x.type); }),
                          names(c.behavior_notes, cudnn_behavior_note), c.reason.empty() ? Json() : Json(c.reason)});
  return table;
}

// What is supported first, in the heuristics' order; then what can't be judged; refusals last.
void sort_for_reading(std::vector<Candidate>& engines) {
  std::ranges::stable_sort(engines, {}, [](const Candidate& c) {
    const int group = c.status == CandidateStatus::Ok ? 0 : c.status == CandidateStatus::Skipped ? 1 : 2;
    return std::pair(group, static_cast<unsigned>(c.heuristics_rank));  // -1, not listed, comes last
  });
}

std::string summary_of(const EngineList& list, const Problem& problem) {
  std::vector<std::string> supported, open, unknown;
  for (const Algorithm& algorithm : algorithms(problem.operation, 0)) {
    const auto any = [&](CandidateStatus status) {
      return std::ranges::any_of(list.engines, [&](const Candidate& c) { return c.algorithm == algorithm.number && c.status == status; });
    };
    const std::string name = std::to_string(algorithm.number) + " " + algorithm.name;
    if (any(CandidateStatus::Ok))
      supported.push_back(name);
    else if (any(CandidateStatus::Skipped))
      open.push_back(name);
  }
  for (const Candidate& c : list.engines)
    if (c.status == CandidateStatus::Skipped) unknown.push_back("eng" + std::to_string(c.engine.engine));
  std::string text;
  if (problem.fused_count == 0)
    text = "supported " + words_for(problem.operation) + " algorithms: " + (supported.empty() ? "none" : join(supported, ", ")) + "\n";
  if (!open.empty()) text += "can't be judged without the GPU: " + join(open, ", ") + "\n";
  if (!unknown.empty())
    text += "these engines need the driver, cuBLAS or run-time compilation, so only the GPU itself can say: " + join(unknown, " ") + "\n";
  return text;
}

struct Opened {
  std::unique_ptr<Cudnn> cudnn;
  Device device;
  std::string name;  // for the heading
};

Opened open_for(const ListOptions& options) {
  auto cudnn = open_cudnn(options.cudnn);
  const std::string version = ", cuDNN " + version_text(cudnn->library.version);
  if (options.device.empty() && options.sm == 0) {
    Device device = Device::present(*cudnn);
    return {std::move(cudnn), std::move(device), "the GPU here" + version};
  }
  std::string json = options.device.empty() ? Device::present(*cudnn).json() : device_description(options.device);
  std::string name = name_in(json) + " as described";
  if (options.sm != 0 && options.sm != sm_in(json)) {
    json = with_sm(json, options.sm);
    name += ", but sm_" + std::to_string(options.sm);
    say("--sm changes the compute capability alone; everything else is the described GPU's, so take this list as an indication");
  }
  Device device = Device::described(*cudnn, json);
  return {std::move(cudnn), std::move(device), name + version};
}

int list(const ListOptions& options, const Letters& letters) {
  const auto problems = problems_from(options.problems, letters, options.logs);
  const Opened opened = open_for(options);
  Json all = Json::array();
  bool any_unsupported = false;
  for (const Problem& problem : problems) {
    EngineList engines = list_engines(*opened.cudnn, opened.device, problem);
    any_unsupported =
        any_unsupported || std::ranges::none_of(engines.engines, [](const Candidate& c) { return c.status == CandidateStatus::Ok; });
    if (options.json) {
      all.push_back({{"problem", to_text(problem)},
                     {"device", opened.name},
                     {"reason", engines.reason.empty() ? Json() : Json(engines.reason)},
                     {"engines", table_of(engines, problem).json()}});
      continue;
    }
    std::string text = to_text(problem) + "   (" + opened.name + ")\n";
    if (!engines.reason.empty()) text += "no graph of this can be built: " + engines.reason + "\n";
    const std::string summary = summary_of(engines, problem);
    const auto refused = std::ranges::count(engines.engines, CandidateStatus::Unsupported, &Candidate::status);
    sort_for_reading(engines.engines);
    if (!options.refused)
      std::erase_if(engines.engines, [](const Candidate& c) { return c.status == CandidateStatus::Unsupported && c.algorithm < 0; });
    if (!engines.engines.empty()) text += table_of(engines, problem).text() + summary;
    if (!options.refused && refused > 0)
      text += counted(refused, "engine doesn't", "engines don't") + " support it; --refused gives the reason of each\n";
    print(text + "\n");
  }
  if (options.json) print(all.dump(2) + "\n");
  return any_unsupported ? kNo : kYes;
}

}  // namespace

Action declare_list(CLI::App& app, const Program&) {
  auto options = std::make_shared<ListOptions>();
  app.add_option("problem", options->problems, "the text form, e.g. \"x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1\"");
  app.add_option("--log", options->logs, "a log whose problems are meant (repeatable)")->type_name("FILE")->allow_extra_args(false);
  const auto letters = declare_letters(app);
  app.add_option("--device", options->device, "instead of the GPU here: a description by convpin device, or a shipped one (h200)")
      ->type_name("FILE");
  app.add_option("--sm", options->sm, "another compute capability of that GPU: 70, 75, 80, 86, 89, 90, 100, 120")
      ->check(CLI::Range(50, 199));
  app.add_option("--cudnn", options->cudnn, "cuDNN's folder or file; without it: as the loader finds it")->type_name("DIR");
  app.add_flag("--refused", options->refused, "also every engine that doesn't support it, with its reason");
  app.add_flag("--json", options->json, "as JSON, refused engines included");
  return [options, letters] { return list(*options, *letters); };
}

}  // namespace convpin::cli
