// Fails when the reader loses or changes what the library's own record functions wrote, a line that a killed process left
// behind or a newer convpin wrote stops it, or what it says is wrong lacks the file and the line.
#include "tools/convpin/log.hpp"

#include <gtest/gtest.h>

#include "tests/cli/written_log.hpp"
#include "tools/convpin/command.hpp"
#include "tools/convpin/usage.hpp"

namespace convpin::cli {
namespace {

TEST(ReadLog, KeepsTheLastCountOfEachFailure) {
  WrittenLog w("r1", "NVIDIA H200", "9.19.0", 3);
  Failure f;
  f.call = "cudnnBackendSetAttribute";
  f.descriptor = "TENSOR";
  f.attribute = "TENSOR_UNIQUE_ID";
  f.status = "CUDNN_STATUS_BAD_PARAM";
  w.add(failure_record(1, f));
  f.times = 5;
  w.add(failure_record(1, f));
  f.reason = "other";
  f.problem = kText;
  w.add(failure_record(2, f));
  const Log log = read(w.text);
  ASSERT_EQ(log.runs.size(), 1u);
  ASSERT_EQ(log.runs[0].failures.size(), 2u);
  EXPECT_EQ(log.runs[0].failures[0].times, 5u);
  EXPECT_EQ(log.runs[0].failures[0].attribute, "TENSOR_UNIQUE_ID");
  EXPECT_EQ(log.runs[0].failures[1].problem, kText);
  EXPECT_EQ(log.runs[0].failures[1].reason, "other");
}

TEST(ReadLog, GivesBackWhatWasWritten) {
  WrittenLog w("r1", "NVIDIA H200", "9.19.0", 3);
  w.problem(kText);
  Candidate c = w.of("eng38_k2=1_k13=0");
  c.algorithm = 1;
  c.time_ms = 0.1088;
  c.time_iqr_ms = 0.0012;
  c.samples = 5;
  c.build_ms = 35.25;
  c.workspace_bytes = 25837584;
  c.deterministic = true;
  c.numerical_notes = {0, 4};
  c.behavior_notes = {0, 3};
  c.error = 1e-6;
  c.requested = true;
  c.heuristics_rank = 2;
  w.candidate(c);
  Candidate refused = w.of("eng12");
  refused.status = CandidateStatus::Unsupported;
  refused.reason = "not supported: arch mismatch";
  w.candidate(refused);
  w.ran("eng38_k2=1_k13=0", 7, ChoiceKind::Set);
  w.end();

  const Log log = read(w.text);
  EXPECT_TRUE(log.warnings.empty());
  ASSERT_EQ(log.runs.size(), 1u);
  const cli::Run& run = log.runs[0];
  EXPECT_EQ(run.id, "r1");
  EXPECT_EQ(run.gpu, "NVIDIA H200");
  EXPECT_EQ(run.cudnn, "9.19.0");
  EXPECT_EQ(run.rank, 3);
  EXPECT_TRUE(run.ended);
  const LoggedProblem& p = run.problems.at(1);
  EXPECT_EQ(p.text, kText);
  EXPECT_EQ(p.api, "graph");
  ASSERT_EQ(p.candidates.size(), 2u);
  const LoggedCandidate& r = p.candidates[0];
  EXPECT_EQ(r.algorithm, 1);
  EXPECT_EQ(r.engine, c.engine);
  EXPECT_DOUBLE_EQ(*r.time_ms, 0.1088);
  EXPECT_DOUBLE_EQ(*r.time_iqr_ms, 0.0012);
  EXPECT_EQ(r.samples, 5);
  EXPECT_DOUBLE_EQ(*r.build_ms, 35.25);
  EXPECT_EQ(r.workspace_bytes, 25837584);
  EXPECT_EQ(r.deterministic, true);
  EXPECT_EQ(r.numerical_notes, c.numerical_notes);
  EXPECT_EQ(r.behavior_notes, c.behavior_notes);
  EXPECT_DOUBLE_EQ(*r.error, 1e-6);
  EXPECT_TRUE(r.requested);
  EXPECT_FALSE(r.framework_choice);
  EXPECT_EQ(r.heuristics_rank, 2);
  EXPECT_FALSE(r.energy_mj);
  EXPECT_EQ(p.candidates[1].status, CandidateStatus::Unsupported);
  EXPECT_EQ(p.candidates[1].reason, "not supported: arch mismatch");
  EXPECT_FALSE(p.candidates[1].time_ms);
  ASSERT_EQ(p.choices.size(), 1u);
  EXPECT_EQ(p.choices[0].kind, ChoiceKind::Set);
  EXPECT_EQ(p.choices[0].ran, "eng38_k2=1_k13=0");
  EXPECT_EQ(p.choices[0].plan.engine, c.engine);
  EXPECT_EQ(p.calls.at("eng38_k2=1_k13=0"), 7u);
}

TEST(ReadLog, KeepsRunsInOneFileApart) {
  WrittenLog a("a"), b("b");
  a.problem(kText);
  b.problem("x=[1,8,8,8] w=[8,8,1,1]");
  a.ran("eng1", 3);
  b.ran("eng2", 4);
  a.end();
  b.end();
  // As two processes write into it
  const Log log = read(a.text.substr(0, a.text.find('\n') + 1) + b.text + a.text.substr(a.text.find('\n') + 1));
  EXPECT_TRUE(log.warnings.empty()) << log.warnings[0];
  ASSERT_EQ(log.runs.size(), 2u);
  EXPECT_EQ(log.runs[0].problems.at(1).calls.at("eng1"), 3u);
  EXPECT_EQ(log.runs[1].problems.at(1).calls.at("eng2"), 4u);
}

TEST(ReadLog, SaysOnceThatRunsWereCutOff) {
  WrittenLog a("a"), b("b"), c("c");
  EXPECT_EQ(read(a.text).warnings,
            std::vector<std::string>{"run.jsonl: the run did not end in an orderly way, or still goes on: the last counts are missing"});
  c.end();
  EXPECT_EQ(
      read(a.text + b.text + c.text).warnings,
      std::vector<std::string>{"run.jsonl: 2 of its 3 runs did not end in an orderly way, or still goes on: the last counts are missing"});
}

TEST(ReadLog, LabelsOfAProblemAreGatheredOnce) {
  WrittenLog w;
  w.problem(kText);
  for (const char* label : {"layer1.0.conv2", "layer1.1.conv2", "layer1.0.conv2"}) w.add(label_record(1, label));
  EXPECT_EQ(read(w.text).runs[0].problems.at(1).labels, (std::vector<std::string>{"layer1.0.conv2", "layer1.1.conv2"}));
}

TEST(ReadLog, TheLastCountIsTheCount) {
  WrittenLog w;
  w.problem(kText);
  w.ran("eng1", 3);
  w.add(count_record(1, "eng1", 10));
  EXPECT_EQ(read(w.text).runs[0].problems.at(1).calls.at("eng1"), 10u);
}

TEST(ReadLog, WhatFailedIsNotWhatRan) {
  WrittenLog w;
  w.problem(kText);
  w.failed("arch mismatch");
  w.problem("x=[1,8,8,8] w=[8,8,1,1]");
  w.ran("eng1", 3);
  w.problem("x=[1,8,8,8] w=[8,8,3,3]");  // asked about alone
  const auto usages = usages_of(read(w.text));
  ASSERT_EQ(usages.size(), 2u);
  EXPECT_TRUE(usages[0].ran.empty());
  EXPECT_EQ(usages[0].chosen(), nullptr);
  ASSERT_TRUE(usages[0].failed);
  EXPECT_EQ(usages[0].failed->kind, ChoiceKind::Unsupported);
  EXPECT_EQ(usages[0].failed->reason, "arch mismatch");
  EXPECT_FALSE(usages[1].failed);
}

TEST(Usage, WhatTheFrameworkChoseWithoutAProfile) {
  using K = ChoiceKind;
  for (const auto& [kind, own] : {std::pair(K::LeftAlone, true), std::pair(K::Unsupported, true), std::pair(K::Refused, true),
                                 std::pair(K::Set, false), std::pair(K::Tuned, false)}) {
    WrittenLog w;
    w.problem(kText);
    w.ran("eng1", 3, kind);
    const Usage usage = usages_of(read(w.text)).at(0);
    EXPECT_EQ(usage.ran.at(0).choice.kind, kind);
    EXPECT_EQ(usage.framework_choice() != nullptr, own) << name_of(kind);
    EXPECT_EQ(usage.is_framework_choice(*usage.chosen()), own) << name_of(kind);
  }
  WrittenLog w;  // a profile knows it
  w.problem(kText);
  w.candidate("eng1", 1, 0);
  w.candidate("eng2", 2, 0, true);
  w.ran("eng1", 3);
  const Usage usage = usages_of(read(w.text)).at(0);
  EXPECT_EQ(usage.framework_choice()->identity(), "eng2");
  EXPECT_FALSE(usage.is_framework_choice(*usage.chosen()));
  WrittenLog other;  // a profile with a row for each algorithm need not have it
  other.problem(kText);
  other.candidate("eng1", 1, 0);
  other.ran("eng2", 3);
  EXPECT_EQ(usages_of(read(other.text)).at(0).framework_choice()->identity(), "eng2");
}

// An empty list is no failure where the program finds what runs in another, and a rule may be taken away again.
TEST(ReadLog, WhatRunsAfterItFailedHasNotFailed) {
  WrittenLog w;
  w.problem(kText);
  w.failed("all that cuDNN's list offers is denied");
  w.ran("eng1", 3);
  EXPECT_FALSE(usages_of(read(w.text)).at(0).failed);
  w.failed("arch mismatch");  // what else ran, and how often, is in the counts
  EXPECT_FALSE(usages_of(read(w.text)).at(0).failed);
  w.ran("eng1", 4);
  const auto usage = usages_of(read(w.text)).at(0);
  EXPECT_FALSE(usage.failed);
  ASSERT_EQ(usage.ran.size(), 1u);
  EXPECT_EQ(usage.calls, 4u);
}

TEST(ReadLog, ToleratesCutLinesAndWhatItDoesNotKnow) {
  WrittenLog w;
  w.problem(kText);
  w.add(R"({"type":"weather","problem_id":1,"sun":true})");
  w.add(R"({"type":"count","problem_id":1,"ran":"eng1","calls":5,"colour":"red"})");
  w.add(R"({"type":"count","problem_id":1,"ran":"eng1","calls":)");
  w.add(R"({"type":"count","problem_id":9,"ran":"eng1","calls":5})");
  w.add(R"({"type":"problem","problem_id":2,"problem":"forward x=[1"})");
  w.add(R"({"type":"count","problem_id":2,"ran":"eng1","calls":5})");
  w.end();
  w.text += R"({"run_id":"r1","type":"cou)";
  const Log log = read(w.text);
  EXPECT_EQ(log.runs[0].problems.size(), 1u);
  EXPECT_EQ(log.runs[0].problems.at(1).calls.at("eng1"), 5u);
  ASSERT_EQ(log.warnings.size(), 4u);
  EXPECT_TRUE(log.warnings[0].starts_with("run.jsonl:5: this line is no record"));
  EXPECT_TRUE(log.warnings[1].starts_with("run.jsonl:6: this record's problem"));
  EXPECT_TRUE(log.warnings[2].starts_with("run.jsonl:7: this problem is not understood")) << log.warnings[2];
  EXPECT_TRUE(log.warnings[3].starts_with("run.jsonl:10: the last line is cut off"));
}

TEST(ReadLog, WrongTypesAreAsIfAbsent) {
  WrittenLog w;
  w.problem(kText);
  w.add(R"({"type":"candidate","problem_id":1,"engine":7,"algorithm":"one","time_us":"fast","deterministic":1,"numerical_notes":{"a":1}})");
  w.add(R"({"type":"candidate","problem_id":"1","engine":"eng2"})");
  const Log log = read(w.text);
  ASSERT_EQ(log.runs[0].problems.at(1).candidates.size(), 1u);
  EXPECT_EQ(log.runs[0].problems.at(1).candidates[0].identity(), "?");
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const BadUse& e) {
    return e.what();
  }
  return "no error";
}

TEST(ReadLog, SaysWhatIsNoLog) {
  EXPECT_TRUE(error_of("").starts_with("run.jsonl is empty"));
  EXPECT_TRUE(error_of("version = 1\n").starts_with("run.jsonl:1: this is no log"));
  const std::string newer = error_of(R"({"type":"header","schema":2,"run_id":"x"})");
  EXPECT_TRUE(newer.starts_with("run.jsonl:1: a log of schema 2")) << newer;
}

TEST(Usage, AddsRunsUpAndPutsWhatRanMostFirst) {
  WrittenLog a("a"), b("b");
  for (WrittenLog* w : {&a, &b}) w->problem(kText);
  a.ran("eng1", 1);
  a.ran("eng2", 10);
  b.ran("eng1", 20);
  b.candidate("eng1", 0.5, 0);
  b.candidate("eng2", 0.75, 0, true);
  const auto usages = usages_of(read(a.text + b.text));
  ASSERT_EQ(usages.size(), 1u);
  EXPECT_EQ(usages[0].calls, 31u);
  ASSERT_EQ(usages[0].ran.size(), 2u);
  EXPECT_EQ(usages[0].ran[0].choice.ran, "eng1");
  EXPECT_EQ(usages[0].ran[0].calls, 21u);
  EXPECT_EQ(usages[0].ran[0].runs, 2);
  EXPECT_DOUBLE_EQ(*usages[0].gained_ms(), 0.25 * 21);
}

TEST(Usage, KeepsApisGpusAndVersionsApart) {
  WrittenLog a("a"), b("b", "NVIDIA A100"), c("c", "NVIDIA H200", "9.22.0");
  std::string text;
  for (WrittenLog* w : {&a, &b, &c}) {
    w->problem(kText);
    w->ran("eng1", 1);
    text += w->text;
  }
  a.problem(kText, "legacy");
  a.ran("1", 1);
  EXPECT_EQ(usages_of(read(text)).size(), 3u);
  EXPECT_EQ(usages_of(read(a.text)).size(), 2u);
}

TEST(Usage, Versions) {
  EXPECT_EQ(version_from("9.19.0"), 91900u);
  EXPECT_EQ(version_from("8.9.7"), 8907u);
  EXPECT_EQ(version_from("9.19"), 91900u);
  for (const char* text : {"", "nine", "9", "9.x", "-9.1", "9.1.2.3.4"}) EXPECT_EQ(version_from(text), 0u) << text;
  for (const char* text : {"9.19.0", "8.9.7", "9.5.1"}) EXPECT_EQ(version_text(version_from(text)), text);
}

}  // namespace
}  // namespace convpin::cli
