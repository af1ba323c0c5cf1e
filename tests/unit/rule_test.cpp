// Fails when not the first rule that matches wins, a rule for another GPU or cuDNN is not seen to be stale, or what a rule
// asks for is told wrongly.
#include "shim/model/rule.hpp"

#include <gtest/gtest.h>

#include "shim/model/text.hpp"

namespace convpin {
namespace {

const Place kH200{"NVIDIA H200", 91900};

Rule rule(Operation operation, std::initializer_list<const char*> texts) {
  Rule rule;
  rule.operation = operation;
  for (const char* text : texts) rule.requests.push_back(*parse_request(operation, text));
  return rule;
}

TEST(Rules, TheFirstThatMatchesInEveryPartWins) {
  std::vector<Rule> rules(6, rule(Operation::Forward, {"1"}));
  rules[0].operation = Operation::BackwardData;
  rules[1].problem = *parse_problem_pattern("half");
  rules[2].match.groups = Range{2, 8};
  rules[3].match.devices = {"*A100*"};
  rules[4].match.cudnn = {*parse_versions(">=9.19")};
  const Problem problem = *parse_problem("x=[1,4,8,8] w=[8,4,3,3]");
  EXPECT_EQ(match(rules, problem, kH200), &rules[4]);
  EXPECT_EQ(match(rules, problem, {"NVIDIA A100", 91900}), &rules[3]);
  EXPECT_EQ(match(rules, problem, {"NVIDIA H200", 91000}), &rules[5]);
  EXPECT_EQ(match(rules, *parse_problem("x=[1,4,8,8] w=[8,2,3,3] groups=2"), kH200), &rules[2]);
  EXPECT_EQ(match(rules, *parse_problem("wgrad x=[1,4,8,8] w=[8,4,3,3]"), kH200), nullptr);
  EXPECT_EQ(match({}, problem, kH200), nullptr);
}

TEST(Rules, AreStaleWhereTheyAreForAnotherPlace) {
  Rule r = rule(Operation::Forward, {"1"});
  EXPECT_FALSE(stale(r, kH200));
  EXPECT_FALSE(stale(r, {}));
  r.match.groups = Range{1, 1};
  EXPECT_FALSE(stale(r, kH200));
  EXPECT_EQ(why_stale(r, kH200), "");
  r.match.devices = {"*A100*", "*V100*"};
  EXPECT_TRUE(stale(r, kH200));
  EXPECT_EQ(why_stale(r, kH200), "for *A100* or *V100*; here is NVIDIA H200");
  EXPECT_EQ(why_stale(r, {}), "for *A100* or *V100*; here is no GPU");
  r.match.cudnn = {*parse_versions(">=9.10,<9.15")};
  EXPECT_EQ(why_stale(r, kH200), "for *A100* or *V100* with cuDNN >=9.10,<9.15; here is NVIDIA H200 with cuDNN 9.19.0");
  r.match.devices.clear();
  EXPECT_TRUE(stale(r, kH200));
  EXPECT_FALSE(stale(r, {"NVIDIA H200", 91100}));
}

TEST(Rules, AreMissedWhereTheyAreStale) {
  const Problem problem = *parse_problem("x=[1,4,8,8] w=[8,4,3,3]");
  std::vector<Rule> rules{rule(Operation::Forward, {"-1"}), rule(Operation::BackwardData, {"1"}),
                          rule(Operation::Forward, {"1"}), rule(Operation::Forward, {"2"})};
  for (Rule& r : rules) r.match.devices = {"*A100*"};
  rules[2].match.groups = Range{2, 9};
  EXPECT_EQ(match_elsewhere(rules, problem, kH200), &rules[3]);
  EXPECT_EQ(match_elsewhere(rules, problem, {"NVIDIA A100", 91900}), nullptr);
  rules[3].source = "some pins.toml:12:1";
  EXPECT_EQ(file_of(rules[3]), "some pins.toml");
  EXPECT_EQ(mending_command(file_of(rules[3])),
            "convpin tune --refresh 'some pins.toml' -o 'some pins.toml'");
  rules[3].source = "CONV_FWD_ALGO";
  EXPECT_EQ(file_of(rules[3]), "");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
}

TEST(Rules, SayWhatTheyAskFor) {
  EXPECT_EQ(request_text(rule(Operation::Forward, {"eng72", "1"})), "eng72, else 1 (IMPLICIT_PRECOMP_GEMM)");
  EXPECT_EQ(request_text(rule(Operation::BackwardData, {"1"})), "1 (ALGO_1)");
  EXPECT_EQ(request_text(rule(Operation::Forward, {"-1"})), "-1 (the framework's choice)");
  Rule policy;
  policy.policy = PolicyKind::Fastest;
  EXPECT_EQ(request_text(policy), "the fastest");
  policy.require.add(Flag::Deterministic);
  EXPECT_EQ(request_text(policy), "the fastest (deterministic)");
  policy.policy = PolicyKind::LeastMemory;
  policy.require = {};
  policy.allow.add(Flag::DownConvert);
  EXPECT_EQ(request_text(policy), "the least memory (allowed: down_convert)");
}

TEST(Rules, TheFirstRequestIsNoneForTheFrameworksChoice) {
  EXPECT_EQ(rule(Operation::Forward, {"-1"}).request(), nullptr);
  const Rule r = rule(Operation::Forward, {"eng3", "-1"});
  EXPECT_EQ(r.request(), &r.requests[0]);
}

TEST(Flags, AreReadByTheirListsNames) {
  EXPECT_EQ(flag_from(FlagList::Require, " Deterministic "), Flag::Deterministic);
  EXPECT_EQ(flag_from(FlagList::Allow, "deterministic"), std::nullopt);
  EXPECT_EQ(flag_from(FlagList::Require, "down_convert"), std::nullopt);
  EXPECT_EQ(flag_from(FlagList::Allow, ""), std::nullopt);
  for (const auto list : {FlagList::Require, FlagList::Allow})
    for (unsigned i = 0; i < 8; ++i) {
      Flags one;
      one.add(static_cast<Flag>(i));
      EXPECT_EQ(all_flags(list).has(static_cast<Flag>(i)), list == (i < 4 ? FlagList::Require : FlagList::Allow));
      if (all_flags(list).has(static_cast<Flag>(i))) {
        EXPECT_EQ(flag_from(list, names_of(list, one)), static_cast<Flag>(i));
      }
    }
}

}  // namespace
}  // namespace convpin
