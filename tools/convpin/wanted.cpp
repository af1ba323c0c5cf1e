#include "tools/convpin/wanted.hpp"

#include <algorithm>

#include "tools/convpin/command.hpp"

namespace convpin::cli {
namespace {

void add_new(std::vector<std::string>& to, const std::vector<std::string>& from) {
  for (const std::string& text : from)
    if (std::ranges::find(to, text) == to.end()) to.push_back(text);
}

Wanted engine_of(const EngineConfig& config, std::string name) {
  Wanted w;
  w.engine = config;
  w.names = {std::move(name)};
  return w;
}

Wanted algorithm_of(int number, int math_type) {
  Wanted w;
  w.algorithm = number;
  w.math_type = math_type;
  w.names = {"algo" + std::to_string(number)};
  return w;
}

}  // namespace

std::vector<NamedLog> read_named_logs(const std::vector<std::string>& files) {
  std::vector<NamedLog> logs;
  for (const std::string& file : files) logs.push_back({file, usages_of(read_logs({file}))});
  return logs;
}

void want(std::vector<Wanted>& all, Wanted added) {
  const auto same = [&](const Wanted& w) {
    return w.engine == added.engine && w.algorithm == added.algorithm && w.math_type == added.math_type;
  };
  const auto known = std::ranges::find_if(all, same);
  if (known == all.end()) {
    all.push_back(std::move(added));
    return;
  }
  add_new(known->names, added.names);
  add_new(known->logs, added.logs);
}

std::vector<Wanted> ran_most(const std::vector<NamedLog>& logs, const Problem& problem) {
  std::vector<Wanted> all;
  for (const NamedLog& log : logs)
    for (const char* api : {"graph", "legacy"}) {
      const Ran* most = nullptr;  // a log of several machines has the problem several times
      for (const Usage& usage : log.usages)
        if (usage.problem == problem && usage.api == api && !usage.ran.empty() &&
            (!most || usage.ran[0].calls > most->calls))
          most = &usage.ran[0];
      if (!most) continue;
      const LoggedCandidate& plan = most->choice.plan;
      if (plan.engine.engine < 0 && plan.algorithm < 0) continue;
      Wanted w = plan.engine.engine >= 0 ? engine_of(plan.engine, to_tag(plan.engine))
                                         : algorithm_of(plan.algorithm, plan.math_type);
      w.logs = {log.name};
      want(all, std::move(w));
    }
  return all;
}

std::vector<Wanted> named(const std::string& name, const Problem& problem,
                          const std::vector<EngineConfig>& known, std::size_t cudnn_version, bool legacy) {
  using Kind = Request::Kind;
  const auto request = parse_request(problem.operation, name);
  if (!request) throw BadUse("--candidate: " + request.error);
  if (legacy) {
    if (request->kind != Kind::Algorithm)
      throw BadUse("--candidate " + name + ": the legacy API has algorithms, and no engines");
    return {algorithm_of(request->algorithm, -1)};
  }
  if (request->kind == Kind::ExactEngine) return {engine_of(request->engine, to_tag(request->engine))};
  if (request->kind == Kind::FrameworkChoice)
    return known.empty() ? std::vector<Wanted>() : std::vector{engine_of(known[0], "-1")};
  std::vector<Wanted> all;
  for (const EngineConfig& config : known) {
    const bool engine = request->kind == Kind::Engine && config.engine == request->engine.engine;
    const bool algorithm =
        request->kind == Kind::Algorithm && problem.fused_count == 0 &&
        algorithm_of_engine(problem.operation, cudnn_version, config.engine) == request->algorithm;
    if (engine || algorithm) all.push_back(engine_of(config, to_tag({config.engine, {}})));
  }
  return all;
}

}  // namespace convpin::cli
