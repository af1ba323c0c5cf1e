// Fails when tune takes what is not better than the framework's choice beyond the spread, what it may not take unasked, or
// a run-time compiled engine that never repays its compilation, or what was not timed beside the framework's choice; when one
// that might repay it is not even built, or one that can't is; or when candidates do not take turns.
#include "tools/convpin/tuner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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

// A kernel that an earlier problem had compiled builds at once here, and is compiled at each start all the same.
TEST(Choose, CompilationCountsAlsoWhereItWasDoneBefore) {
  Candidate compiled = timed(72, 0.9);
  compiled.behavior_notes = {0};
  compiled.build_ms = 24;
  TunePolicy policy;
  EXPECT_EQ(chosen({timed(1, 1.0), compiled}, policy), 72);
  policy.compile_ms = 1200;
  EXPECT_EQ(chosen({timed(1, 1.0), compiled}, policy), 1);
  EXPECT_EQ(longest_compilation_ms({timed(1, 1.0), compiled}), 24);
  EXPECT_EQ(longest_compilation_ms({timed(1, 1.0)}), 0);
}

TEST(InVain, WhatAllTheTimeOfTheFrameworksChoiceWouldNotRepay) {
  Candidate unbuilt;
  unbuilt.engine = {72, {}};
  unbuilt.behavior_notes = {0};
  TunePolicy policy;
  EXPECT_EQ(in_vain(unbuilt, 0.031, policy), "");  // nothing was compiled yet: it may take no time
  policy.compile_ms = 418;
  EXPECT_EQ(in_vain(unbuilt, 0.031, policy),
            "not built: compiled at run time, in 418 ms or so, which all of the 0.03100 ms that the framework's own choice takes would "
            "not repay in 10000 calls");
  EXPECT_EQ(in_vain(unbuilt, 0.0419, policy), "");
  EXPECT_NE(in_vain(unbuilt, 0.0418, policy), "");
  EXPECT_NE(in_vain(unbuilt, std::nullopt, policy), "");
  policy.steps = 20000;
  EXPECT_EQ(in_vain(unbuilt, 0.031, policy), "");
  policy.steps = 1;
  policy.allow.add(Flag::RuntimeCompilation);
  EXPECT_EQ(in_vain(unbuilt, 0.031, policy), "");
  policy.allow = {};
  unbuilt.behavior_notes = {1};  // REQUIRES_FILTER_INT8x32_REORDER
  EXPECT_EQ(in_vain(unbuilt, 0.031, policy), "");
}

// Were it built, it would not be taken however fast it is; and where it is built, it is taken if it is fast enough.
TEST(InVain, AgreesWithTheChoice) {
  const Candidate own = timed(1, 0.05);
  for (const double compile_ms : {0.0, 499.0, 499.9, 500.0, 501.0, 2000.0}) {
    TunePolicy policy;
    policy.compile_ms = compile_ms;
    Candidate compiled = timed(72, 1e-9);
    compiled.behavior_notes = {0};
    compiled.build_ms = 0.001;
    EXPECT_EQ(in_vain(compiled, own.time_ms, policy).empty(), chosen({own, compiled}, policy) == 72) << compile_ms;
    EXPECT_EQ(in_vain(compiled, own.time_ms, policy).empty(), may_be_chosen(compiled, &own, policy)) << compile_ms;
  }
}

// By an earlier time, when the clock may have been another, nothing is better than the framework's choice.
TEST(Contenders, OnlyWhatWasTimedBesideTheFrameworksChoice) {
  std::vector<Candidate> all = {timed(1, 1.0), timed(2, 0.7), timed(3, 0.9), timed(4, 0.5, {kNondeterministic})};
  all[0].framework_choice = true;
  EXPECT_EQ(chosen(all), 2);
  EXPECT_EQ(chosen(contenders(all, {0, 2}, {})), 3);
  EXPECT_EQ(chosen(contenders(all, {0}, {})), 1);
  EXPECT_EQ(contenders(all, {0, 2}, {})[3].status, CandidateStatus::Ok);  // of what can't be chosen the reason still speaks
  TunePolicy memory;  // whose measure is the same at any time
  memory.kind = PolicyKind::LeastMemory;
  all[1].workspace_bytes = 0;
  EXPECT_EQ(chosen(contenders(all, {0}, memory), memory), 2);
}

TEST(MayBeChosen, AsChooseWould) {
  const Candidate own = timed(1, 1.0);
  TunePolicy policy;
  EXPECT_TRUE(may_be_chosen(timed(2, 0.5), &own, policy));
  for (const int note : {kDownConvert, kNondeterministic}) EXPECT_FALSE(may_be_chosen(timed(2, 0.5, {note}), &own, policy)) << note;
  policy.tf32 = false;
  EXPECT_FALSE(may_be_chosen(timed(2, 0.5, {kTensorCore}), &own, policy));
  Candidate compiled = timed(2, 0.5);
  compiled.behavior_notes = {0};  // CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION
  compiled.build_ms = 400;
  EXPECT_TRUE(may_be_chosen(compiled, &own, policy));
  policy.steps = 100;
  EXPECT_FALSE(may_be_chosen(compiled, &own, policy));
}

TEST(Choose, LeastMemory) {
  TunePolicy policy;
  policy.kind = PolicyKind::LeastMemory;
  Candidate small = timed(2, 5.0);
  small.workspace_bytes = 0;
  EXPECT_EQ(chosen({timed(1, 1.0), small}, policy), 2);
}

TEST(Choose, TheReasonSaysWhatWasMeasured) {
  Candidate compiled = timed(72, 0.9, {}, 0.004);
  compiled.behavior_notes = {0};
  compiled.build_ms = 600;
  EXPECT_EQ(choose({timed(1, 1.0), compiled}, 0, {}).reason,
            "0.9000 ms ± 0.004, 10.0 % less than the framework's own 1.000 ms ± 0.001 (eng1); compiled at "
            "run time in 600 ms, repaid after "
            "6000 calls");
  EXPECT_EQ(choose({timed(1, 1.0), timed(2, 1.1)}, 0, {}).reason, "1.000 ms ± 0.001; the framework's own choice is the fastest");
}

Candidate with_energy(Candidate c, double mj, double sd) {
  c.energy_mj = mj;
  c.energy_sd_mj = sd;
  return c;
}

TEST(Choose, LeastEnergyBeyondTwoDeviations) {
  TunePolicy policy;
  policy.least_energy = true;
  const Candidate own = with_energy(timed(1, 1.0), 100, 3);
  EXPECT_EQ(chosen({own, with_energy(timed(2, 1.2), 89, 4)}, policy), 2);  // beyond twice 5
  EXPECT_EQ(chosen({own, with_energy(timed(2, 1.2), 91, 4)}, policy), 1);
  EXPECT_EQ(chosen({own, with_energy(timed(2, 0.5), 110, 1)}, policy), 1);  // fast alone doesn't count
  EXPECT_EQ(chosen({own, timed(2, 0.5), with_energy(timed(3, 0.9), 80, 1)}, policy), 3);
  // Of two that can't be told apart, the faster one.
  EXPECT_EQ(chosen({own, with_energy(timed(2, 0.9), 80, 1), with_energy(timed(3, 0.8), 81, 1)}, policy), 3);
  EXPECT_EQ(chosen({own, with_energy(timed(2, 0.9), 80, 1), with_energy(timed(3, 0.8), 84, 1)}, policy), 2);
  policy.min_gain = 0.3;
  EXPECT_EQ(chosen({own, with_energy(timed(2, 0.9), 80, 1)}, policy), 1);
  EXPECT_EQ(chosen({with_energy(timed(1, 1.0, {kNondeterministic}), 100, 3), with_energy(timed(2, 0.9), 60, 1)}, policy), 2);
}

TEST(Choose, WhatTheFrameworksChoiceTakesMustBeKnown) {
  TunePolicy policy;
  policy.least_energy = true;
  const std::vector<Candidate> all{timed(1, 1.0), with_energy(timed(2, 0.5), 10, 1)};
  EXPECT_EQ(chosen(all, policy), 1);
  EXPECT_EQ(choose(all, 0, policy).reason,
            "the framework's own choice: what it takes could not be measured, so that nothing is known to be better");
}

TEST(TakesTf32, FloatDataAloneMayNot) {
  const auto problem = [](const char* type) { return *parse_problem("x=[1,16,8,8] w=[16,16,1,1] " + std::string(type)); };
  const Candidate tensor_core = timed(1, 1.0, {kTensorCore}), other = timed(2, 1.0);
  EXPECT_TRUE(takes_tf32("no", problem("half"), &other));
  EXPECT_FALSE(takes_tf32("no", problem("float"), &tensor_core));
  EXPECT_TRUE(takes_tf32("yes", problem("float"), &other));
  EXPECT_TRUE(takes_tf32("auto", problem("float"), &tensor_core));
  EXPECT_FALSE(takes_tf32("auto", problem("float"), &other));
  EXPECT_FALSE(takes_tf32("auto", problem("float"), nullptr));
}

TEST(Choose, WithoutAYardstickAllThatQualify) {
  EXPECT_EQ(*choose({timed(1, 1.0), timed(2, 0.9)}, std::nullopt, {}).chosen, 1u);
  EXPECT_FALSE(choose({}, std::nullopt, {}).chosen);
}

// Candidates with these times, and what was asked of them.
struct Samples {
  std::vector<double> times;
  std::vector<std::pair<std::size_t, int>> asked;
  int fails_at = -1;  // in that sample and all later ones of candidate 1
  std::vector<std::optional<Timing>> time(const TimingPlan& plan) {
    const auto sample = [this](std::size_t i, int launches) -> std::optional<double> {
      asked.emplace_back(i, launches);
      const bool fails = i == 1 && fails_at >= 0 && static_cast<int>(asked.size()) > fails_at;
      return fails ? std::nullopt : std::optional(times[i] + (launches == 0 ? 0.01 : 0.0));  // by itself with the host's time
    };
    return interleaved(times.size(), sample, plan, [] { return false; });
  }
  long of(std::size_t i) const { return std::ranges::count(asked, i, &std::pair<std::size_t, int>::first); }
};

TEST(Interleaved, TakesTurnsAndDropsTheHopeless) {
  using Asked = std::pair<std::size_t, int>;
  Samples samples{{1.0, 1.5, 2.5, 30.0, 0.99}, {}};
  TimingPlan plan;
  plan.rounds = 3;
  const auto timings = samples.time(plan);
  // By itself twice, but for what takes ten times the best; a round; then without what takes twice the best.
  const std::vector<Asked> wanted{{0, 0}, {0, 0}, {1, 0}, {1, 0}, {2, 0}, {2, 0}, {3, 0}, {4, 0}, {4, 0}, {0, 1},
                                  {1, 1}, {2, 1}, {4, 1}, {0, 1}, {1, 1}, {4, 1}, {0, 1}, {1, 1}, {4, 1}};
  EXPECT_EQ(samples.asked, wanted);
  EXPECT_EQ(timings[0]->samples, 3);
  EXPECT_EQ(timings[2]->samples, 1);
  EXPECT_DOUBLE_EQ(timings[2]->median_ms, 2.5);
  EXPECT_NEAR(timings[3]->median_ms, 30.0, 0.1);
}

TEST(Interleaved, WhatFailsLaterHasNoTime) {
  Samples samples{{1.0, 1.5}, {}};
  samples.fails_at = 6;
  const auto timings = samples.time({});
  EXPECT_TRUE(timings[0]);
  EXPECT_FALSE(timings[1]);
}

TEST(Interleaved, LaunchesAreCountedByTheFirstRound) {
  Samples samples{{0.01}, {}};
  TimingPlan plan;
  plan.rounds = 4;
  EXPECT_DOUBLE_EQ(samples.time(plan)[0]->median_ms, 0.01);
  EXPECT_EQ(samples.asked[2].second, 10);  // 0.2 ms of 0.02, which is twice what it takes
  EXPECT_EQ(samples.asked[3].second, 20);
}

TEST(Interleaved, WhatTakesLongHasFewerRounds) {
  Samples samples{{4.0, 100.0, 110.0}, {}};
  TimingPlan plan;
  plan.hopeless = HUGE_VAL;
  plan.rounds = 15;
  const auto timings = samples.time(plan);
  EXPECT_EQ(timings[0]->samples, 10);  // 40 ms
  EXPECT_EQ(timings[1]->samples, 5);
  EXPECT_EQ(samples.of(2), 7);
}

TEST(Interleaved, Quantiles) {
  const Timing t = timing_of({4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(t.median_ms, 2.5);
  EXPECT_DOUBLE_EQ(t.iqr_ms, 1.5);
}

}  // namespace
}  // namespace convpin::cli
