#include "shim/graph/rows.hpp"

#include <algorithm>

#include "shim/graph/decide.hpp"

namespace convpin::graph {
namespace {

bool asked_for(const ProblemState& state, int algorithm) {
  const Rule* rule = state.rule;
  return rule && std::any_of(rule->requests.begin(), rule->requests.end(), [&](const Request& request) {
           return request.kind == Request::Kind::Algorithm && request.algorithm == algorithm;
         });
}

// By its own name, or as the one of its algorithm's family that runs.
bool asked_for(const Known& known, std::size_t cudnn_version, const EngineConfig& config) {
  const Rule* rule = known.state.rule;
  if (!asks(rule) || !satisfies(known.state, cudnn_version, config, nullptr)) return false;
  const bool by_algorithm = std::any_of(rule->requests.begin(), rule->requests.end(),
                                        [](const Request& request) { return request.kind == Request::Kind::Algorithm; });
  return !by_algorithm || (known.running && *known.running == config);
}

}  // namespace

std::vector<Row> rows_of(const Library& library, const Known& known, ProfileLevel level, const std::vector<Listed>& list, int engines) {
  const Problem& problem = known.state.problem;
  const auto algorithm_of = [&](const EngineConfig& c) { return algorithm_in(problem, library.version, c.engine); };
  const auto dropped = [&](const EngineConfig& c) {
    return std::find(known.dropped.begin(), known.dropped.end(), c) != known.dropped.end();
  };
  const auto row_for = [&](const EngineConfig& c, bool own) { return Row{algorithm_of(c), {c}, own, asked_for(known, library.version, c)}; };
  std::vector<Row> rows{row_for(known.framework_choice, true)};
  if (known.running && !(*known.running == known.framework_choice)) rows.push_back(row_for(*known.running, false));
  const auto covered = [&](int algorithm) {
    return std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.algorithm == algorithm; });
  };

  if (level == ProfileLevel::Algorithms) {
    if (problem.fused_count > 0) return rows;  // its engines stand for no algorithm
    for (const Algorithm& algorithm : algorithms(problem.operation, library.version)) {
      if (covered(algorithm.number)) continue;
      Request request;
      request.kind = Request::Kind::Algorithm;
      request.algorithm = algorithm.number;
      request.operation = problem.operation;
      auto configs = wanted_configs(request, problem, library.version, list);
      std::stable_partition(configs.begin(), configs.end(), [&](const auto& c) { return !dropped(c); });
      rows.push_back({algorithm.number, std::move(configs), false, asked_for(known.state, algorithm.number)});
    }
    return rows;
  }
  for (int engine = 0; engine < engines; ++engine) {
    Request request;
    request.kind = Request::Kind::Engine;
    request.engine.engine = engine;
    request.operation = problem.operation;
    auto configs = wanted_configs(request, problem, library.version, list);
    const bool there = std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.configs == configs; });
    if (!there) rows.push_back({algorithm_of(configs.front()), configs, false, asked_for(known, library.version, configs.front())});
  }
  return rows;
}

}  // namespace convpin::graph
