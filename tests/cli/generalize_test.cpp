// Fails when a rule for other sizes names an engine that was not measured, is too slow or is not allowed in
// one of the sizes tuned, joins problems that differ in more than their size, or does not load.
#include "tools/convpin/generalize.hpp"

#include <gtest/gtest.h>

#include "tests/cli/written_log.hpp"

namespace convpin::cli {
namespace {

const std::string kRest = " w=[64,64,3,3] half nhwc pad=1,1";
std::string at(const std::string& x) { return "forward x=[" + x + "]" + kRest; }

// One tuned problem: eng1 is what was chosen; what eng2 and eng3 take is given.
void tuned(WrittenLog& w, const std::string& text, double eng1, double eng2, double eng3,
           std::int64_t workspace2 = 0) {
  w.problem(text);
  w.candidate("eng1", eng1, 100, true);
  w.candidate("eng2", eng2, workspace2);
  w.candidate("eng3", eng3, 0);
  w.ran("eng1", 1);
}

std::vector<FrozenRule> general(const WrittenLog& w, TunePolicy policy = {}) {
  return generalize(usages_of(read(w.text)), policy, "auto");
}

TEST(Generalize, TheEngineThatIsBestAtItsWorst) {
  WrittenLog w;
  tuned(w, at("8,64,56,56"), 1.0, 1.02, 1.01);
  tuned(w, at("16,64,56,56"), 2.0, 2.02, 2.1);
  w.problem(at("32,64,56,56"));
  w.candidate("eng1", 5.0, 100, true);
  w.candidate("eng2", 4.0, 0);
  w.ran("eng2", 1);
  const auto rules = general(w);
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(rules[0].algo, std::vector<std::string>{"eng2"});
  EXPECT_EQ(rules[0].text.substr(0, 21), "forward x=[*,64,56,56");
  EXPECT_EQ(rules[0].text, pattern_text(*parse_problem(at("8,64,56,56"))).replace(11, 1, "*"));
  EXPECT_EQ(rules[0].gpu, "NVIDIA H200");
  EXPECT_EQ(rules[0].comments,
            (std::vector<std::string>{"For other batch sizes than those tuned: 8, 16, 32",
                                      "At worst 1.020 times what is chosen above (at 8)"}));
  EXPECT_TRUE(parse_problem_pattern(rules[0].text)->matches(*parse_problem(at("7,64,56,56"))));
  EXPECT_FALSE(parse_problem_pattern(rules[0].text)->matches(*parse_problem(at("7,64,56,28"))));
}

TEST(Generalize, ImageSizes) {
  WrittenLog w;
  tuned(w, at("8,64,56,56"), 1, 9, 9);
  tuned(w, at("8,64,28,14"), 1, 9, 9);
  const auto rules = general(w);
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_TRUE(rules[0].text.starts_with("forward x=[8,64,*,*] "));
  EXPECT_EQ(rules[0].comments[0], "For other image sizes than those tuned: 56x56, 28x14");
}

TEST(Generalize, NothingWhereTheSizesDisagree) {
  WrittenLog w;
  tuned(w, at("8,64,56,56"), 1, 1.04, 1.04);
  w.problem(at("16,64,56,56"));
  w.candidate("eng1", 1.04, 0, true);
  w.candidate("eng4", 1.0, 0);
  w.ran("eng4", 1);
  EXPECT_TRUE(general(w).empty());
}

TEST(Generalize, OnlyWhatDiffersInItsSizeAlone) {
  WrittenLog w;
  tuned(w, at("8,64,56,56"), 1, 9, 9);
  tuned(w, at("16,64,56,56") + " fused=add,relu", 1, 9, 9);
  tuned(w, "backward_data x=[16,64,56,56]" + kRest, 1, 9, 9);
  tuned(w, at("16,64,28,56"), 1, 9, 9);
  EXPECT_TRUE(general(w).empty());
  WrittenLog other("r2", "NVIDIA A100");
  tuned(other, at("16,64,56,56"), 1, 9, 9);
  EXPECT_TRUE(generalize(usages_of(read(w.text + other.text)), {}, "auto").empty());
}

TEST(Generalize, ByThePolicy) {
  WrittenLog w;
  for (const char* x : {"8,64,56,56", "16,64,56,56"}) {
    w.problem(at(x));
    Candidate bad = w.of("eng2");
    bad.time_ms = 1;
    bad.workspace_bytes = 1000;
    bad.behavior_notes = {0};  // compiled at run time
    w.candidate("eng1", 1.02, 500, true);
    w.candidate(bad);
    w.candidate("eng3", 1.03, 0);
    w.ran("eng2", 1);
  }
  const auto algo = [&](const TunePolicy& policy) {
    const auto rules = general(w, policy);
    return rules.empty() ? "" : rules[0].algo[0];
  };
  TunePolicy policy;
  EXPECT_EQ(algo(policy), "eng1");
  policy.allow.add(Flag::RuntimeCompilation);
  EXPECT_EQ(algo(policy), "eng2");
  policy = {};
  policy.workspace_limit = 100;
  EXPECT_EQ(algo(policy), "eng3");
  policy = {};
  policy.kind = PolicyKind::LeastMemory;
  EXPECT_EQ(algo(policy), "eng3");
}

TEST(Generalize, LeastEnergyIsNotTheFastest) {
  WrittenLog w;
  for (const char* x : {"8,64,56,56", "16,64,56,56"}) {
    w.problem(at(x));
    for (const auto& [name, ms, mj] : {std::tuple("eng1", 1.0, 120.0), std::tuple("eng2", 1.4, 100.0), std::tuple("eng3", 1.2, 102.0)}) {
      Candidate c = w.of(name);
      c.time_ms = ms;
      if (c.engine.engine != 3) c.energy_mj = mj, c.energy_sd_mj = 1;
      w.candidate(c);
    }
    w.ran("eng2", 1);
  }
  TunePolicy policy;
  policy.least_energy = true;
  const auto rules = general(w, policy);
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(rules[0].algo, std::vector<std::string>{"eng2"});  // eng3's energy was not measured
}

}  // namespace
}  // namespace convpin::cli
