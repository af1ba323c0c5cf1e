// Logs for tests, written by the library's own record functions.
#pragma once

#include <string>
#include <vector>

#include "shim/model/record.hpp"
#include "tools/convpin/log.hpp"

namespace convpin::cli {

inline constexpr const char* kText = "forward x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1,1 stride=1,1 dilation=1,1 groups=1";

class WrittenLog {
 public:
  explicit WrittenLog(std::string run_id = "r1", std::string gpu = "NVIDIA H200", std::string cudnn = "9.19.0", int rank = -1)
      : run_id_(std::move(run_id)), cudnn_(std::move(cudnn)) {
    device_.name = std::move(gpu);
    Header h;
    h.run_id = run_id_;
    h.cudnn_version = cudnn_;
    h.rank = rank;
    h.device = device_;
    h.settings = {{"CONVPIN_LOG", "run.jsonl"}};
    add(header_record(h));
  }

  int problem(const std::string& problem_text, const std::string& api = "graph") {
    const auto parsed = parse_problem(problem_text);
    operation_ = parsed->operation;
    problem_ = *parsed;
    add(problem_record(++problems_, *parsed, api, device_, cudnn_));
    api_ = api;
    return problems_;
  }
  // Of the last problem. `what` is an engine tag, or an algorithm's number on the legacy API.
  Candidate of(const std::string& what) const {
    Candidate c;
    c.operation = operation_;
    c.status = CandidateStatus::Ok;
    const auto request = parse_request(operation_, what);
    if (request->kind == Request::Kind::Algorithm) c.algorithm = request->algorithm;
    c.engine = request->engine;
    return c;
  }
  void candidate(const std::string& what, double time_ms, std::int64_t workspace, bool framework_choice = false) {
    Candidate c = of(what);
    c.time_ms = time_ms;
    c.workspace_bytes = workspace;
    c.framework_choice = framework_choice;
    add(candidate_record(problems_, problem_, c));
  }
  void candidate(const Candidate& c) { add(candidate_record(problems_, problem_, c)); }
  void ran(const std::string& what, std::uint64_t calls, ChoiceKind kind = ChoiceKind::LeftAlone) {
    const Candidate c = of(what);
    LoggedCandidate logged;
    static_cast<Candidate&>(logged) = c;
    Choice choice;
    choice.kind = kind;
    choice.api = api_;
    choice.ran = logged.identity();
    if (kind != ChoiceKind::LeftAlone) choice.rule = "pins.toml:2:1";
    add(choice_record(problems_, problem_, choice, c));
    if (calls > 0) add(count_record(problems_, choice.ran, calls));
  }
  // Nothing ran, as a rule would have it.
  void failed(const std::string& reason) {
    Choice choice;
    choice.kind = ChoiceKind::Unsupported;
    choice.api = api_;
    choice.rule = "pins.toml:2:1";
    choice.reason = reason;
    add(failed_choice_record(problems_, problem_, choice, of("eng12")));
  }
  void end() { add(end_record({})); }
  void add(const std::string& record) { text += with_run_id(record, run_id_) + "\n"; }

  std::string text;

 private:
  std::string run_id_, cudnn_, api_;
  Device device_;
  int problems_ = 0;
  Operation operation_ = Operation::Forward;
  Problem problem_;
};

inline Log read(const std::string& text) {
  Log log;
  read_log(text, "run.jsonl", log);
  return log;
}

}  // namespace convpin::cli
