// Fails when a frozen file does not load, a problem of the log meets another rule than its own (or none) when the file is
// read back, a rule asks for something else than what ran, or a file holds on another GPU or cuDNN.
#include "tools/convpin/freeze.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/written_log.hpp"
#include "tests/unit/environment.hpp"

namespace convpin::cli {
namespace {

const char* const kProblems[] = {
    "forward x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1,1",
    "forward x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1,1 compute=half",
    "forward x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1,1 fused=add,relu",
    "forward x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1,1 fused=relu ytype=float",
    "forward x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1,1 ytype=float",
    "forward x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1,1 mode=convolution",
    "forward x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1,1 postpad=1,2",
    "forward x=[32,64,56,56] w=[64,64,3,3] half strided pad=1,1 xstride=[400000,1,7168,64] wlayout=nhwc ylayout=nhwc",
    "backward_data x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1,1",
    "backward_filter x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1,1",
    "forward x=[1,32,8,8,8] w=[32,1,3,3,3] bfloat16 ndhwc groups=32",
    "forward x=[8,8,1,1] w=[8,8,1,1] float nchw",
    "forward x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1,1 fused=relu ytype=float otype=half",
};

class Freeze : public Environment {
 protected:
  // The settings of the file that freeze makes of the logs.
  Settings frozen(const std::string& logs) {
    usages_ = usages_of(read(logs));
    left_out_.clear();
    write("pins.toml", pin_file(freeze(usages_, left_out_), {"a heading"}));
    set("CONVPIN_CONFIG", "pins.toml");
    Settings settings = load();
    EXPECT_TRUE(settings.errors.empty()) << (settings.errors.empty() ? "" : settings.errors[0]);
    return settings;
  }
  std::vector<Usage> usages_;
  std::vector<std::string> left_out_;
};

TEST_F(Freeze, EveryProblemMeetsItsOwnRule) {
  for (const bool reversed : {false, true}) {
    WrittenLog w;
    std::vector<std::string> texts(std::begin(kProblems), std::end(kProblems));
    if (reversed) std::ranges::reverse(texts);
    int engine = 0;
    for (const std::string& text : texts) {
      w.problem(text);
      const std::string n = std::to_string(++engine);
      w.ran("eng" + n + "_k2=" + n, 1);
    }
    const Settings settings = frozen(w.text);
    EXPECT_TRUE(left_out_.empty());
    EXPECT_EQ(settings.rules.size(), texts.size());
    ASSERT_EQ(usages_.size(), texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const Rule* rule = match(settings.rules, usages_[i].problem, place_of(usages_[i]));
      ASSERT_TRUE(rule) << texts[i];
      ASSERT_EQ(rule->requests.size(), 1u);
      const int n = static_cast<int>(i) + 1;
      EXPECT_EQ(rule->requests[0].kind, Request::Kind::ExactEngine);
      EXPECT_EQ(rule->requests[0].engine, (EngineConfig{n, {{2, n}}})) << texts[i];
    }
  }
}

TEST_F(Freeze, NothingElseIsCovered) {
  WrittenLog w;
  w.problem(kProblems[0]);
  w.ran("eng1", 1);
  const Settings settings = frozen(w.text);
  for (std::size_t i = 1; i < std::size(kProblems); ++i) {
    const std::string_view text = kProblems[i];
    // What the text form leaves out a pattern leaves open; only fused operations are shut out, since they renumber engines.
    if (text.find("compute=") != text.npos || text.find("ytype=") != text.npos || text.find("mode=") != text.npos ||
        text.find("postpad=") != text.npos)
      continue;
    EXPECT_FALSE(match(settings.rules, *parse_problem(text), place_of(usages_[0]))) << text;
  }
  EXPECT_TRUE(match(settings.rules, usages_[0].problem, {"NVIDIA H200", 91900}));
  for (const Place& place : {Place{"NVIDIA H200", 91901}, Place{"NVIDIA H200", 92200}, Place{"NVIDIA H100", 91900}, Place{"", 0}}) {
    EXPECT_FALSE(match(settings.rules, usages_[0].problem, place));
    EXPECT_FALSE(why_stale(settings.rules[0], place).empty());
  }
}

TEST_F(Freeze, LegacyAlgorithmsOfAllOperations) {
  WrittenLog w;
  w.problem(kProblems[0], "legacy");
  w.ran("7", 1);
  w.problem(kProblems[8], "legacy");
  w.ran("1", 1);
  w.problem(kProblems[9], "legacy");
  w.ran("ALGO_3", 1);
  const Settings settings = frozen(w.text);
  std::vector<int> algorithms;
  for (const Usage& usage : usages_) {
    const Rule* rule = match(settings.rules, usage.problem, place_of(usage));
    ASSERT_TRUE(rule && rule->request());
    EXPECT_EQ(rule->request()->kind, Request::Kind::Algorithm);
    algorithms.push_back(rule->request()->algorithm);
  }
  EXPECT_EQ(algorithms, (std::vector{7, 1, 3}));
}

TEST_F(Freeze, BothApisGetOneRule) {
  WrittenLog w;
  w.problem(kText, "legacy");
  w.ran("1", 5);
  w.problem(kText, "graph");
  w.ran("eng38_k2=1", 3);
  const Settings settings = frozen(w.text);
  ASSERT_EQ(settings.rules.size(), 1u);
  EXPECT_EQ(request_text(settings.rules[0]), "eng38_k2=1, else 1 (IMPLICIT_PRECOMP_GEMM)");
}

TEST_F(Freeze, WhatRanMostIsFrozen) {
  WrittenLog w;
  w.problem(kText);
  w.ran("eng1", 2);  // a benchmark's trials
  w.ran("eng2", 2);
  w.ran("eng3", 100);
  const Settings settings = frozen(w.text);
  EXPECT_EQ(request_text(settings.rules[0]), "eng3");
}

TEST_F(Freeze, WhatCannotBeNamedIsSaid) {
  WrittenLog w;
  w.problem(kText);
  w.problem("x=[1,8,8,8] w=[8,8,1,1]");
  w.ran("eng1", 1);
  w.problem("x=[2,8,8,8] w=[8,8,1,1]");
  w.add(R"({"type":"choice","problem_id":3,"choice":"left_alone","ran":"something"})");
  // The first was asked about and never ran; the third ran as nothing that can be asked for.
  EXPECT_EQ(frozen(w.text).rules.size(), 1u);
  ASSERT_EQ(left_out_.size(), 1u);
  EXPECT_NE(left_out_[0].find("no rule can name something"), std::string::npos);
}

TEST(TomlString, EscapesWhatMustBe) { EXPECT_EQ(toml_string("a \"b\" \\ \n \x7f"), R"("a \"b\" \\ \u000A \u007F")"); }

}  // namespace
}  // namespace convpin::cli
