// Fails when a record is not one line of valid JSON under 4096 bytes, a documented field is missing or has
// another value, an absent value is not null, or hostile text makes a record throw or break its line.
#include "shim/model/record.hpp"

#include <cudnn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "shim/model/backend_names.hpp"

namespace convpin {
namespace {

using nlohmann::json;

json read(const std::string& line) {
  EXPECT_LT(line.size() + 1, 4096u);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  return json::parse(line);
}

Problem problem() { return *parse_problem("x=[32,64,56,56] w=[64,64,3,3] pad=1"); }

Candidate timed() {
  Candidate c;
  c.algorithm = 1;
  c.engine = {38, {{2, 1}}};
  c.status = CandidateStatus::Ok;
  c.time_ms = 0.1088;
  c.time_iqr_ms = 0.0012;
  c.samples = 5;
  c.build_ms = 35.25;
  c.workspace_bytes = 25837584;
  c.deterministic = true;
  c.numerical_notes = {0};
  c.behavior_notes = {0, 3};
  c.error = 1e-6;
  c.requested = true;
  c.heuristics_rank = 0;
  return c;
}

std::string hostile() {
  std::string text = "\xff\xfe \"quotes\"\n\x01 ";
  while (text.size() < 20000) text += "\xf0\x9f\x98\x80\xc3";
  return text;
}

TEST(Record, HeaderHoldsWhatItIsGiven) {
  Header h;
  h.run_id = "r1";
  h.convpin_version = "0.1.0";
  h.cudnn_version = "9.19.0";
  h.host = "box";
  h.command = "python train.py";
  h.started_unix_us = 1700000000000000;
  h.pid = 42;
  h.rank = 3;
  h.device.name = "NVIDIA H200";
  h.device.compute_capability = 90;
  h.device.driver_version = 13000;
  h.device.power_limit_mw = 700000;
  h.device.mig = false;
  h.settings = {{"CONVPIN_PROFILE", "engines"}};
  h.warmup = 2;
  h.repeats = 5;
  const json j = read(header_record(h));
  EXPECT_EQ(j["type"], "header");
  EXPECT_EQ(j["schema"], 1);
  EXPECT_EQ(j["run_id"], "r1");
  EXPECT_EQ(j["convpin"], "0.1.0");
  EXPECT_EQ(j["cudnn"], "9.19.0");
  EXPECT_EQ(j["host"], "box");
  EXPECT_EQ(j["command"], "python train.py");
  EXPECT_EQ(j["started_unix_us"], 1700000000000000);
  EXPECT_EQ(j["pid"], 42);
  EXPECT_EQ(j["rank"], 3);
  EXPECT_TRUE(j.at("local_rank").is_null());
  EXPECT_EQ(j["gpu"]["name"], "NVIDIA H200");
  EXPECT_EQ(j["gpu"]["compute_capability"], 90);
  EXPECT_EQ(j["gpu"]["cuda_driver"], 13000);
  EXPECT_EQ(j["gpu"]["power_limit_mw"], 700000);
  EXPECT_EQ(j["gpu"]["mig"], false);
  EXPECT_TRUE(j["gpu"].at("sm_clock_mhz").is_null());
  EXPECT_EQ(j["settings"]["CONVPIN_PROFILE"], "engines");
  EXPECT_EQ(j["warmup"], 2);
  EXPECT_EQ(j["repeats"], 5);
  EXPECT_FALSE(j.contains("cut"));
}

TEST(Record, ProblemHoldsItsCanonicalText) {
  Device device;
  device.name = "NVIDIA H200";
  const json j = read(problem_record(7, problem(), "graph", device, "9.19.0"));
  EXPECT_EQ(j["type"], "problem");
  EXPECT_EQ(j["problem_id"], 7);
  EXPECT_EQ(j["problem"], to_text(problem()));
  EXPECT_EQ(j["operations"], json::array({"convolution"}));
  EXPECT_EQ(j["api"], "graph");
  EXPECT_EQ(j["gpu"], "NVIDIA H200");
  EXPECT_EQ(j["cudnn"], "9.19.0");
}

TEST(Record, ProblemNamesTheOperationsOfItsGraph) {
  const auto fused = parse_problem("x=[1,8,8,8] w=[8,8,3,3] fused=pre.mul,add,relu,gen_stats");
  ASSERT_TRUE(fused) << fused.error;
  const json j = read(problem_record(7, *fused, "graph", {}, "9.19.0"));
  EXPECT_EQ(j["operations"], json::array({"mul", "convolution", "add", "relu", "gen_stats"}));
}

TEST(Record, CandidateHoldsEveryDocumentedField) {
  const json j = read(candidate_record(7, problem(), timed()));
  EXPECT_EQ(j["type"], "candidate");
  EXPECT_EQ(j["problem_id"], 7);
  EXPECT_EQ(j["algorithm"], 1);
  EXPECT_EQ(j["algorithm_name"], "IMPLICIT_PRECOMP_GEMM");
  EXPECT_EQ(j["engine"], "eng38_k2=1");
  EXPECT_TRUE(j.at("math_type").is_null());
  EXPECT_EQ(j["status"], "ok");
  EXPECT_TRUE(j.at("reason").is_null());
  EXPECT_EQ(j["time_us"], 108.8);
  EXPECT_EQ(j["time_us_iqr"], 1.2);
  EXPECT_EQ(j["samples"], 5);
  EXPECT_EQ(j["build_ms"], 35.25);
  EXPECT_EQ(j["workspace_bytes"], 25837584);
  EXPECT_EQ(j["deterministic"], true);
  EXPECT_EQ(j["numerical_notes"], json({"TENSOR_CORE"}));
  EXPECT_EQ(j["behavior_notes"], json({"RUNTIME_COMPILATION", "SUPPORTS_CUDA_GRAPH_NATIVE_API"}));
  EXPECT_EQ(j["error"], 1e-6);
  EXPECT_EQ(j["requested"], true);
  EXPECT_EQ(j["framework_choice"], false);
  EXPECT_EQ(j["heuristics_rank"], 0);
  EXPECT_EQ(j["replay"], "convpin replay '" + to_text(problem()) + "' --candidate eng38_k2=1");
}

TEST(Record, WhatHasNoValueIsNull) {
  Candidate c;
  c.status = CandidateStatus::Unsupported;
  c.reason = "'c' per group must be 1";
  c.error = std::numeric_limits<double>::quiet_NaN();
  c.build_ms = std::numeric_limits<double>::infinity();
  const json j = read(candidate_record(1, problem(), c));
  for (const char* field : {"algorithm", "algorithm_name", "engine", "math_type", "time_us", "time_us_iqr",
                            "build_ms", "workspace_bytes", "deterministic", "error", "heuristics_rank"})
    EXPECT_TRUE(j.at(field).is_null()) << field;
  EXPECT_EQ(j["status"], "unsupported");
  EXPECT_EQ(j["reason"], "'c' per group must be 1");
  EXPECT_EQ(j["samples"], 0);
}

TEST(Record, LegacyCandidatesHaveAMathTypeAndNoEngine) {
  Candidate c;
  c.algorithm = 7;
  c.math_type = 3;
  const json j = read(try_record(2, problem(), c));
  EXPECT_EQ(j["type"], "try");
  EXPECT_EQ(j["problem_id"], 2);
  EXPECT_EQ(j["algorithm_name"], "WINOGRAD_NONFUSED");
  EXPECT_EQ(j["math_type"], "FMA_MATH");
  EXPECT_TRUE(j.at("engine").is_null());
  EXPECT_EQ(j["replay"], replay_line(problem(), c));  // what a process that dies of it leaves behind
}

TEST(Record, ChoiceSaysWhatWasAskedAndWhatRan) {
  const Choice choice{ChoiceKind::Unsupported, "graph",        "eng38_k2=1",
                      "pins.toml:3:1",         "6 (WINOGRAD)", "arch"};
  const json j = read(choice_record(4, problem(), choice, timed()));
  EXPECT_EQ(j["type"], "choice");
  EXPECT_EQ(j["problem_id"], 4);
  EXPECT_EQ(j["choice"], "unsupported");
  EXPECT_EQ(j["api"], "graph");
  EXPECT_EQ(j["rule"], "pins.toml:3:1");
  EXPECT_EQ(j["requested"], "6 (WINOGRAD)");
  EXPECT_EQ(j["ran"], "eng38_k2=1");
  EXPECT_EQ(j["reason"], "arch");
  EXPECT_EQ(j["engine"], "eng38_k2=1");
  EXPECT_EQ(j["workspace_bytes"], 25837584);
  EXPECT_EQ(j["replay"], "convpin replay '" + to_text(problem()) + "' --candidate eng38_k2=1");
}

TEST(Record, WhatFailsNamesWhatWasAskedAndNothingThatRan) {
  Choice choice;
  choice.kind = ChoiceKind::Unsupported;
  choice.rule = "stem";
  choice.requested = "eng38_k2=1";
  choice.reason = "arch";
  const json j = read(failed_choice_record(4, problem(), choice, timed()));
  EXPECT_EQ(j["choice"], "unsupported");
  EXPECT_EQ(j["requested"], "eng38_k2=1");
  EXPECT_EQ(j["replay"], "convpin replay '" + to_text(problem()) + "' --candidate eng38_k2=1");
  for (const char* nothing : {"ran", "algorithm", "algorithm_name", "engine", "math_type", "workspace_bytes", "deterministic"})
    EXPECT_TRUE(j.at(nothing).is_null()) << nothing;
}

TEST(Record, CandidatesAreRunAgainOnTheirApi) {
  Candidate c;
  c.algorithm = 7;
  EXPECT_EQ(read(candidate_record(1, problem(), c))["replay"], "convpin replay '" + to_text(problem()) + "' --candidate 7");
  c.math_type = 0;
  EXPECT_EQ(read(candidate_record(1, problem(), c))["replay"], "convpin replay --legacy '" + to_text(problem()) + "' --candidate 7");
  Candidate apart;
  apart.parts = {"convolution eng41", "relu eng0"};
  EXPECT_TRUE(read(candidate_record(1, problem(), apart)).at("replay").is_null()) << "no single candidate";
}

TEST(Record, ReplayLines) {
  Candidate c;
  EXPECT_EQ(replay_line(problem(), c), "convpin replay '" + to_text(problem()) + "'");
  c.math_type = 0;
  EXPECT_EQ(replay_line(problem(), c), "convpin replay --legacy '" + to_text(problem()) + "'");
  c.algorithm = 7;
  EXPECT_EQ(replay_line(problem(), c), "convpin replay --legacy '" + to_text(problem()) + "' --candidate 7");
}

TEST(Record, FailureSaysWhatFailedAndHowToDoItAgain) {
  Failure f;
  f.call = "cudnnBackendFinalize";
  f.descriptor = descriptor_name(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  f.status = "CUDNN_STATUS_BAD_PARAM";
  f.reason = hostile();
  f.times = 3;
  json j = read(failure_record(7, f));
  EXPECT_EQ(j["type"], "failure");
  EXPECT_EQ(j["failure_id"], 7);
  EXPECT_EQ(j["descriptor"], "OPERATIONGRAPH");
  EXPECT_EQ(j["times"], 3);
  for (const char* unknown : {"attribute", "problem_id", "problem", "replay"}) EXPECT_TRUE(j.at(unknown).is_null()) << unknown;
  f.attribute = attribute_name(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  f.problem_id = 2;
  j = read(failure_record(7, f));
  EXPECT_EQ(j["attribute"], "EXECUTION_PLAN_ENGINE_CONFIG");
  EXPECT_EQ(j["problem_id"], 2);
  EXPECT_EQ(attribute_name(123456), "123456");
}

TEST(Record, QueryListsWhatTheApplicationGot) {
  const json j = read(query_record(4, "cudnnFindConvolutionForwardAlgorithm", {timed(), Candidate{}}));
  EXPECT_EQ(j["type"], "query");
  EXPECT_EQ(j["function"], "cudnnFindConvolutionForwardAlgorithm");
  ASSERT_EQ(j["results"].size(), 2u);
  EXPECT_EQ(j["results"][0]["algorithm"], 1);
  EXPECT_EQ(j["results"][0]["time_us"], 108.8);
  EXPECT_EQ(j["results"][1]["status"], "skipped");
}

TEST(Record, CountAndEnd) {
  const json count = read(count_record(4, "eng38", 5300000000));
  EXPECT_EQ(count["type"], "count");
  EXPECT_EQ(count["problem_id"], 4);
  EXPECT_EQ(count["ran"], "eng38");
  EXPECT_EQ(count["calls"], 5300000000);
  EXPECT_EQ(read(label_record(4, "layer3.0.conv2")), json({{"type", "label"}, {"problem_id", 4}, {"label", "layer3.0.conv2"}}));
  const json end = read(end_record({53, 5300, 52, 1, 5200, 2, 7}));
  EXPECT_EQ(end, json({{"type", "end"},
                       {"problems", 53},
                       {"calls", 5300},
                       {"pinned_problems", 52},
                       {"unsupported_problems", 1},
                       {"pinned_calls", 5200},
                       {"failed_problems", 2},
                       {"failed_calls", 7}}));
}

TEST(Record, LongAndBrokenTextsAreCutAndStayOneLine) {
  Header h;
  h.run_id = "r1";
  h.command = hostile();
  h.host = hostile();
  for (int i = 0; i < 200; ++i) h.settings.emplace_back("name" + std::to_string(i), hostile());
  json j = read(header_record(h));
  EXPECT_EQ(j["type"], "header");
  EXPECT_EQ(j["schema"], 1);
  EXPECT_EQ(j["run_id"], "r1");
  EXPECT_EQ(j["cut"], true);

  Candidate c = timed();
  c.reason = hostile();
  j = read(candidate_record(1, problem(), c));
  EXPECT_EQ(j["time_us"], 108.8);
  EXPECT_GT(j["reason"].get<std::string>().size(), 500u) << "more was cut than needed";

  j = read(choice_record(1, problem(), {ChoiceKind::Refused, hostile(), hostile(), hostile(), hostile(), hostile()}, c));
  EXPECT_EQ(j["choice"], "refused");
  j = read(query_record(1, hostile(), std::vector<Candidate>(500, c)));
  EXPECT_EQ(j["type"], "query");
  EXPECT_FALSE(j["results"].empty());
  j = read(count_record(1, hostile(), 9));
  EXPECT_EQ(j["calls"], 9);
}

}  // namespace
}  // namespace convpin
