// Fails when a rule is said to leave nothing to another that it leaves something to, which would call a rule dead that is not; when
// a rule that is covered wholly is not found; when one that nothing can match is not; or when two rules that something matches are
// said to have nothing to do with each other.
#include "tools/convpin/covers.hpp"

#include <gtest/gtest.h>

#include "config/settings.hpp"

namespace convpin::cli {
namespace {

// The rules of a file's text, each [[rule]] without its `algo`.
std::vector<Rule> rules(const std::vector<std::string>& tables) {
  std::string text = "version = 1\n";
  for (const std::string& table : tables) text += "[[rule]]\nalgo = 1\n" + table + "\n";
  auto parsed = rules_from_toml(text, "pins.toml", Settings());
  EXPECT_TRUE(parsed) << parsed.error;
  return parsed ? std::move(*parsed.value) : std::vector<Rule>(tables.size());
}
bool covered(const std::string& first, const std::string& later) {
  const auto all = rules({first, later});
  return covers(all[0], all[1]);
}
bool dead(const std::string& table) { return contradicts_itself(rules({table})[0]); }

TEST(Covers, ByTheProblemsText) {
  const std::string whole = "problem = \"x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1,1 stride=1,1 fused=none\"";
  for (const char* first :
       {"", "problem = \"half\"", "problem = \"x=[*,64,56,56]\"", "problem = \"pad=1\"", "problem = \"channels_last fused=none\"",
        "problem = \"x=[*,*,*,*]\"", "match = { dims = 2 }", "match = { fused = false }",
        "match = { x = [\"16..\", -1, -1, -1], dtype = [\"half\", \"float\"] }", "match = { layout = \"nhwc\", pad = \"0..1\" }"})
    EXPECT_TRUE(covered(first, whole)) << first;
  for (const char* first : {"problem = \"float\"", "problem = \"x=[*,64,56,57]\"", "problem = \"pad=2\"", "problem = \"groups=1\"",
                            "problem = \"x=[*,*,*,*,*]\"", "operation = \"backward_data\"", "problem = \"otype=half\"",
                            "match = { dims = 3 }", "match = { fused = true }", "match = { y = [-1, -1, -1, -1] }",
                            "match = { x = [\"64..\", -1, -1, -1] }", "match = { device = \"*H200*\" }", "match = { cudnn = \">=9.10\" }"})
    EXPECT_FALSE(covered(first, whole)) << first;
  EXPECT_TRUE(covered(whole, whole));
  EXPECT_FALSE(covered(whole, "problem = \"half\""));
  EXPECT_FALSE(covered("problem = \"pad=1,1\"", "problem = \"pad=1\"")) << "also of three spatial dimensions";
  EXPECT_TRUE(covered("problem = \"pad=1\"", "problem = \"pad=1,1,1\""));
}

TEST(Covers, ByThePlace) {
  const std::string here = "match = { device = \"NVIDIA H200\", cudnn = \"9.19.0\" }";
  for (const char* first : {"", "match = { device = \"*h200*\" }", "match = { cudnn = \">=9.10\" }",
                            "match = { device = [\"*A100*\", \"NVIDIA H200\"], cudnn = \"9.19\" }"})
    EXPECT_TRUE(covered(first, here)) << first;
  for (const char* first : {"match = { device = \"*A100*\" }", "match = { cudnn = \"<9.19\" }"})
    EXPECT_FALSE(covered(first, here)) << first;
  EXPECT_FALSE(covered(here, "")) << "which holds elsewhere too";
  EXPECT_FALSE(covered("match = { device = \"*H200*\" }", "match = { device = [\"*H200*\", \"*A100*\"] }"));
  EXPECT_FALSE(covered("match = { device = \"NVIDIA H200\" }", "match = { device = \"NVIDIA *\" }"));
}

TEST(Covers, WhatMightMeet) {
  const auto meet = [](const std::string& a, const std::string& b) {
    const auto both = rules({a, b});
    EXPECT_EQ(may_meet(both[0], both[1]), may_meet(both[1], both[0]));
    return may_meet(both[0], both[1]);
  };
  EXPECT_TRUE(meet("", "problem = \"half\""));
  EXPECT_TRUE(meet("problem = \"w=[*,*,3,3]\"", "problem = \"half nhwc\""));
  EXPECT_TRUE(meet("problem = \"x=[*,64,*,*]\"", "match = { x = [-1, \"32..128\", -1, -1], device = \"*H200*\" }"));
  EXPECT_TRUE(meet("match = { device = \"*H200*\", cudnn = \">=9.10\" }", "match = { device = \"NVIDIA *\", cudnn = \"9.19\" }"));
  EXPECT_FALSE(meet("problem = \"float\"", "problem = \"half\""));
  EXPECT_FALSE(meet("problem = \"w=[*,*,3,3]\"", "problem = \"w=[*,*,1,1]\""));
  EXPECT_FALSE(meet("problem = \"x=[*,64,*,*]\"", "match = { x = [-1, \"128..\", -1, -1] }"));
  EXPECT_FALSE(meet("operation = \"backward_data\"", ""));
  EXPECT_FALSE(meet("match = { device = \"*H200*\" }", "match = { device = \"NVIDIA A100\" }"));
  EXPECT_FALSE(meet("match = { cudnn = \"9.18\" }", "match = { cudnn = \"9.19.0\" }"));
}

TEST(Covers, WhatNothingCanBe) {
  for (const char* table : {"problem = \"x=[32,64,56,56]\"\nmatch = { x = [\"64..\", -1, -1, -1] }",
                            "problem = \"half\"\nmatch = { dtype = \"float\" }", "problem = \"fused=none\"\nmatch = { fused = true }",
                            "problem = \"x=[*,*,*,*]\"\nmatch = { dims = 3 }", "problem = \"x=[*,*,*,*] w=[*,*,*,*,*]\"",
                            "problem = \"pad=1,1\"\nmatch = { pad = 0 }", "problem = \"groups=2\"\nmatch = { groups = \"3..\" }"})
    EXPECT_TRUE(dead(table)) << table;
  for (const char* table :
       {"", "problem = \"x=[32,64,56,56] half\"\nmatch = { x = [\"16..\", -1, -1, -1], dtype = [\"half\", \"float\"], dims = 2, pad = 0 }",
        "problem = \"pad=1,1\"\nmatch = { pad = [\"0..1\", 1] }", "problem = \"pad=1,1\"\nmatch = { pad = 1 }",
        "problem = \"pad=1\"\nmatch = { pad = [1, 1] }"})
    EXPECT_FALSE(dead(table)) << table;
}

}  // namespace
}  // namespace convpin::cli
