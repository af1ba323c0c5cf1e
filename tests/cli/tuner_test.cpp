// Fails when tune takes what is not better than the framework's choice beyond the spread, what it may not take unasked, or
// a run-time compiled engine that never repays its compilation; or when candidates do not take turns.
#include "tools/convpin/tuner.hpp"

#include <gtest/gtest.h>

#include "tools/convpin/timing.hpp"

namespace convpin::cli {
namespace {

Candidate timed(int engine, double ms, std::vector<int> notes = {}, double iqr = 0.001) {
  Candidate c;
  c.engine = {engine, {}};
  c.status = CandidateStatus::Ok;
  c.time_ms = ms;
  c.time_iqr_ms = iqr;
  c.workspace_bytes = 1000;
  c.numerical_notes = std::move(notes);
  c.build_ms = 1;
  return c;
}
constexpr int kTensorCore = 0, kDownConvert = 1, kNondeterministic = 4;

int chosen(const std::vector<Candidate>& candidates, const TunePolicy& policy = {}) {
  const Tuned tuned = choose(candidates, 0, policy);
  EXPECT_FALSE(tuned.reason.empty());
  return tuned.chosen ? candidates[*tuned.chosen].engine.engine : -1;
}

TEST(Choose, TheFastestWhereItGainsEnough) {
  EXPECT_EQ(chosen({timed(1, 1.0), timed(2, 0.9), timed(3, 0.8)}), 3);
  EXPECT_EQ(chosen({timed(1, 1.0), timed(2, 0.985)}), 1);
  TunePolicy policy;
  policy.min_gain = 0.01;
  EXPECT_EQ(chosen({timed(1, 1.0), timed(2, 0.985)}, policy), 2);
}

TEST(Choose, WhatIsWithinTheSpreadIsNoGain) {
  EXPECT_EQ(chosen({timed(1, 1.0, {}, 0.2), timed(2, 0.9, {}, 0.2)}), 1);
  EXPECT_EQ(chosen({timed(1, 1.0, {}, 0.02), timed(2, 0.9, {}, 0.3), timed(3, 0.91, {}, 0.02)}), 3);
}

TEST(Choose, NothingUnasked) {
  for (const int note : {kDownConvert, kNondeterministic}) EXPECT_EQ(chosen({timed(1, 1.0), timed(2, 0.5, {note})}), 1) << note;
  TunePolicy policy;
  policy.allow.add(Flag::DownConvert);
  EXPECT_EQ(chosen({timed(1, 1.0), timed(2, 0.5, {kDownConvert})}, policy), 2);
  policy.workspace_limit = 10;
  EXPECT_EQ(chosen({timed(1, 1.0), timed(2, 0.5)}, policy), -1);
}

TEST(Choose, WithoutTf32TheFrameworksChoiceMayHaveToGo) {
  TunePolicy policy;
  policy.tf32 = false;
  EXPECT_EQ(chosen({timed(1, 1.0, {kTensorCore}), timed(2, 3.0), timed(3, 0.5, {kTensorCore})}, policy), 2);
  policy = {};
  policy.require.add(Flag::Deterministic);
  EXPECT_EQ(chosen({timed(1, 1.0, {kNondeterministic}), timed(2, 3.0)}, policy), 2);
}

TEST(Choose, CompilationMustBeRepaid) {
  Candidate compiled = timed(72, 0.9);
  compiled.behavior_notes = {0};
  compiled.build_ms = 600;  // 0.1 ms less a call: repaid after 6000
  EXPECT_EQ(chosen({timed(1, 1.0), compiled}), 72);
  TunePolicy policy;
  policy.steps = 5000;
  EXPECT_EQ(chosen({timed(1, 1.0), compiled}, policy), 1);
  policy.allow.add(Flag::RuntimeCompilation);
  EXPECT_EQ(chosen({timed(1, 1.0), compiled}, policy), 72);
}

TEST(Choose, LeastMemory) {
  TunePolicy policy;
  policy.kind = PolicyKind::LeastMemory;
  Candidate small = timed(2, 5.0);
  small.workspace_bytes = 0;
  EXPECT_EQ(chosen({timed(1, 1.0), small}, policy), 2);
}

TEST(Choose, WithoutAYardstickAllThatQualify) {
  EXPECT_EQ(*choose({timed(1, 1.0), timed(2, 0.9)}, std::nullopt, {}).chosen, 1u);
  EXPECT_FALSE(choose({}, std::nullopt, {}).chosen);
}

TEST(Interleaved, TakesTurnsAndDropsTheHopeless) {
  const double times[] = {1.0, 1.5, 9.0, 0.01};
  std::vector<std::pair<std::size_t, int>> asked;
  TimingPlan plan;
  plan.rounds = 3;
  plan.hopeless = 150;
  const auto timings = interleaved(
      4,
      [&](std::size_t i, int launches) -> std::optional<double> {
        asked.emplace_back(i, launches);
        if (i == 1 && asked.size() > 14) return std::nullopt;  // fails in a later round
        return times[i];
      },
      plan, [] { return false; });
  const std::vector<std::pair<std::size_t, int>> rounds(asked.begin() + 12, asked.end());
  EXPECT_EQ(rounds[0], (std::pair<std::size_t, int>{0, 1}));
  EXPECT_EQ(rounds[1], (std::pair<std::size_t, int>{1, 1}));
  EXPECT_EQ(rounds[2], (std::pair<std::size_t, int>{3, 20}));  // 0.2 ms of 0.01
  EXPECT_EQ(rounds[3].first, 0u);
  EXPECT_FALSE(timings[1]);
  EXPECT_EQ(timings[0]->samples, 3);
  EXPECT_EQ(timings[2]->samples, 1);  // 900 times the best
  EXPECT_DOUBLE_EQ(timings[2]->median_ms, 9.0);
}

TEST(Interleaved, Quantiles) {
  const Timing t = timing_of({4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(t.median_ms, 2.5);
  EXPECT_DOUBLE_EQ(t.iqr_ms, 1.5);
}

}  // namespace
}  // namespace convpin::cli
