// Fails when a policy takes what was not allowed, is against a requirement or beyond the limit, ranks wrongly, changes a
// choice for less than min_gain, or gives a wrong reason.
#include "shim/model/policy.hpp"

#include <cudnn.h>
#include <gtest/gtest.h>

namespace convpin {
namespace {

constexpr int kNotes[] = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
                          CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};

Candidate engine(int number, double time_ms, std::int64_t workspace_bytes = 0, std::vector<int> notes = {},
                 std::vector<int> behavior = {}) {
  Candidate c;
  c.engine.engine = number;
  c.status = CandidateStatus::Ok;
  c.time_ms = time_ms;
  c.workspace_bytes = workspace_bytes;
  c.numerical_notes = std::move(notes);
  c.behavior_notes = std::move(behavior);
  return c;
}

Candidate own(Candidate c) {
  c.framework_choice = true;
  return c;
}

Candidate legacy(Operation operation, int algorithm, int math_type) {
  Candidate c;
  c.operation = operation;
  c.algorithm = algorithm;
  c.math_type = math_type;
  return c;
}

Rule policy(PolicyKind kind, std::vector<Flag> require = {}, std::vector<Flag> allow = {}) {
  Rule rule;
  rule.policy = kind;
  for (const Flag flag : require) rule.require.add(flag);
  for (const Flag flag : allow) rule.allow.add(flag);
  return rule;
}
const Rule kFastest = policy(PolicyKind::Fastest);
const Rule kLeastMemory = policy(PolicyKind::LeastMemory);

std::vector<int> best(const std::vector<Candidate>& candidates, const Rule& rule) {
  std::vector<int> engines;
  for (const std::size_t i : rank(candidates, rule).best) engines.push_back(candidates.at(i).engine.engine);
  return engines;
}
using Engines = std::vector<int>;

TEST(Policy, FastestGivesAllThatBeatTheOwnChoiceInOrder) {
  const std::vector<Candidate> all = {own(engine(1, 1.0)), engine(2, 0.9), engine(3, 0.5), engine(4, 1.5), engine(5, 0.7)};
  EXPECT_EQ(best(all, kFastest), (Engines{3, 5, 2}));
  EXPECT_EQ(rank(all, kFastest).reason, "0.5000 ms, 50 % less than the framework's own choice");
  EXPECT_TRUE(rank(all, kFastest).met);
}

TEST(Policy, WhatIsWithinMinGainIsLeft) {
  Rule rule = kFastest;
  const std::vector<Candidate> all = {engine(2, 0.99), own(engine(1, 1.0)), engine(3, 0.995)};
  EXPECT_EQ(best(all, rule), Engines{});
  EXPECT_EQ(rank(all, rule).reason, "the fastest, eng2, is within 2 % of the framework's own choice");
  EXPECT_TRUE(rank(all, rule).met);
  rule.min_gain = 0.01;
  EXPECT_EQ(best(all, rule), Engines{2}) << "exactly the gain that is asked for";
  rule.min_gain = 0;
  EXPECT_EQ(best(all, rule), (Engines{2, 3}));
  EXPECT_EQ(best({own(engine(1, 1.0)), engine(2, 1.0)}, rule), Engines{}) << "the same time is no gain";
  EXPECT_EQ(rank({own(engine(1, 1.0)), engine(2, 1.0)}, rule).reason, "the framework's own choice is the fastest");
}

TEST(Policy, EqualTimesAreDecidedByWorkspaceThenOrder) {
  const Candidate unknown = [] {
    Candidate c = engine(6, 0.5);
    c.workspace_bytes.reset();
    return c;
  }();
  EXPECT_EQ(best({own(engine(1, 1.0)), unknown, engine(2, 0.5, 100), engine(3, 0.5, 10), engine(4, 0.5, 100)}, kFastest),
            (Engines{3, 2, 4, 6}));
}

TEST(Policy, NothingIsTakenUnasked) {
  struct Case {
    std::vector<int> notes, behavior;
    Flag allow;
    const char* why;
  };
  const Case cases[] = {
      {{kNotes[1]}, {}, Flag::DownConvert, "it converts its inputs down"},
      {{kNotes[3]}, {}, Flag::Nondeterministic, "it is not deterministic"},
      {{kNotes[2]}, {}, Flag::ReducedPrecisionReduction, "it sums up in a lower precision"},
      {{}, {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION}, Flag::RuntimeCompilation, "it is compiled at run time"},
  };
  for (const Case& c : cases) {
    const std::vector<Candidate> all = {own(engine(1, 1.0)), engine(7, 0.1, 0, c.notes, c.behavior), engine(3, 0.5)};
    EXPECT_EQ(best(all, kFastest), Engines{3}) << c.why;
    EXPECT_EQ(best(all, policy(PolicyKind::Fastest, {}, {c.allow})), (Engines{7, 3})) << c.why;
    for (const Case& other : cases)
      if (other.allow != c.allow) {
        EXPECT_EQ(best(all, policy(PolicyKind::Fastest, {}, {other.allow})), Engines{3}) << c.why;
      }
    EXPECT_EQ(rank({all[0], all[1]}, kFastest).reason, std::string("the fastest, eng7, is against the rule: ") + c.why);
    EXPECT_TRUE(rank({all[0], all[1]}, kFastest).met) << "the framework's own choice may stay";
    EXPECT_FALSE(rank({all[1]}, kFastest).met);
  }
}

// What the framework takes by itself is its own affair, except where the rule requires something.
TEST(Policy, AnOwnChoiceAgainstTheRuleIsNoYardstick) {
  const std::vector<Candidate> all = {own(engine(20, 1.0, 0, {kNotes[3]})), engine(1, 1.5), engine(2, 2.0)};
  EXPECT_EQ(best(all, kFastest), Engines{});
  const Rule strict = policy(PolicyKind::Fastest, {Flag::Deterministic});
  EXPECT_EQ(best(all, strict), (Engines{1, 2}));
  EXPECT_EQ(rank(all, strict).reason, "1.500 ms; the framework's own choice can't stay: it is not deterministic");
  EXPECT_FALSE(rank({all[0]}, strict).met);
  Rule limited = kFastest;
  limited.workspace_limit = 10;
  EXPECT_EQ(best({own(engine(1, 1.0, 11)), engine(2, 1.5, 10), engine(3, 1.2, 11)}, limited), Engines{2});
  EXPECT_EQ(best({engine(2, 1.5), engine(3, 1.2)}, kFastest), (Engines{3, 2})) << "no own choice is known";
  EXPECT_EQ(rank({engine(2, 1.5)}, kFastest).reason, "1.500 ms; the framework's own choice is not known");
}

TEST(Policy, LeastMemory) {
  const std::vector<Candidate> all = {own(engine(1, 1.0, 1000)), engine(2, 9.0, 0), engine(3, 2.0, 0), engine(4, 0.5, 990),
                                      engine(5, 0.5, 900)};
  EXPECT_EQ(best(all, kLeastMemory), (Engines{3, 2, 5})) << "ties by time; 1 % less is not worth it";
  EXPECT_EQ(rank(all, kLeastMemory).reason, "a workspace of 0 bytes, 100 % less than the framework's own choice");
  EXPECT_EQ(best({own(engine(1, 1.0, 0)), engine(2, 0.1, 0)}, kLeastMemory), Engines{});
  EXPECT_EQ(rank({own(engine(1, 1.0, 0)), engine(2, 0.1, 0)}, kLeastMemory).reason,
            "the framework's own choice is the one with the least workspace");
  EXPECT_EQ(rank({own(engine(1, 1.0, 1000)), engine(4, 0.5, 975)}, kLeastMemory).reason,
            "a workspace of 975 bytes, 2.5 % less than the framework's own choice");
}

TEST(Policy, WhatDidNotRunIsNoCandidate) {
  for (const auto status : {CandidateStatus::Unsupported, CandidateStatus::NoMemory, CandidateStatus::Skipped}) {
    Candidate c = engine(2, 0.1);
    c.status = status;
    EXPECT_EQ(best({own(engine(1, 1.0)), c}, kFastest), Engines{});
    EXPECT_EQ(rank({c}, kFastest).reason, "no candidate could be measured");
    EXPECT_FALSE(rank({c}, kFastest).met);
  }
  Candidate slow = engine(2, 20.0);  // next to one that the rule has no use for
  slow.status = CandidateStatus::TooSlow;
  EXPECT_EQ(best({slow}, kFastest), Engines{2});
  Candidate untimed = engine(2, 0.1);
  untimed.time_ms.reset();
  EXPECT_EQ(best({own(engine(1, 1.0)), untimed}, kFastest), Engines{});
  EXPECT_EQ(best({own(engine(1, 1.0, 5)), untimed}, kLeastMemory), Engines{2});
  EXPECT_TRUE(rank({}, kFastest).best.empty());
  EXPECT_TRUE(rank({engine(1, 1.0)}, Rule{}).best.empty()) << "no policy";
}

TEST(Requirements, OfEnginesAreReadFromTheirNotes) {
  struct Case {
    Flag flag;
    int note;
    bool wanted;  // whether an engine with the note meets it
    const char* why;
  };
  for (const Case& c : {Case{Flag::Deterministic, kNotes[3], false, "it is not deterministic"},
                        Case{Flag::TensorCore, kNotes[0], true, "it uses no tensor cores"},
                        Case{Flag::NoTensorCore, kNotes[0], false, "it uses tensor cores"},
                        Case{Flag::NoDownConvert, kNotes[1], false, "it converts its inputs down"}}) {
    Flags require;
    require.add(c.flag);
    const Candidate with = engine(1, 1, 0, {c.note}), without = engine(1, 1);
    EXPECT_EQ(unmet(with, require), c.wanted ? "" : c.why);
    EXPECT_EQ(unmet(without, require), c.wanted ? c.why : "");
    EXPECT_EQ(meets(with, require), c.wanted);
    EXPECT_TRUE(meets(with, {}));
  }
}

TEST(Requirements, OfLegacyAlgorithmsAreWhatCudnnDocuments) {
  Flags deterministic, tensor, none, exact;
  deterministic.add(Flag::Deterministic);
  tensor.add(Flag::TensorCore);
  none.add(Flag::NoTensorCore);
  exact.add(Flag::NoDownConvert);
  for (const Operation operation : kOperations)
    for (const Algorithm& algorithm : algorithms(operation, 91900)) {
      const bool atomics = (operation == Operation::BackwardData && algorithm.number == CUDNN_CONVOLUTION_BWD_DATA_ALGO_0) ||
                           (operation == Operation::BackwardFilter && (algorithm.number == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 ||
                                                                       algorithm.number == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3));
      Candidate c = legacy(operation, algorithm.number, CUDNN_DEFAULT_MATH);
      EXPECT_EQ(meets(c, deterministic), !atomics) << name_of(operation) << algorithm.name;
      c.deterministic = atomics;
      EXPECT_EQ(meets(c, deterministic), atomics) << "what cuDNN answers comes first";
    }
  const auto math = [](int type) { return legacy(Operation::Forward, 1, type); };
  EXPECT_TRUE(meets(math(CUDNN_TENSOR_OP_MATH), tensor));
  EXPECT_FALSE(meets(math(CUDNN_TENSOR_OP_MATH), none));
  EXPECT_TRUE(meets(math(CUDNN_FMA_MATH), none));
  EXPECT_FALSE(meets(math(CUDNN_FMA_MATH), tensor));
  EXPECT_FALSE(meets(math(CUDNN_DEFAULT_MATH), tensor));
  EXPECT_EQ(unmet(math(CUDNN_DEFAULT_MATH), none), "cuDNN doesn't say whether it uses tensor cores");
  EXPECT_FALSE(meets(math(CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION), exact));
  EXPECT_TRUE(meets(math(CUDNN_TENSOR_OP_MATH), exact));
}

}  // namespace
}  // namespace convpin
