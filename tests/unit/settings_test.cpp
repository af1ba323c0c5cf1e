// Fails when a variable is read wrongly, precedence or a notice changes, or an error leaves something in
// force.
#include "config/settings.hpp"

#include <unistd.h>

#include "tests/unit/environment.hpp"

namespace convpin {
namespace {

using SettingsTest = Environment;
using Lines = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

Problem problem(std::string_view text) { return *parse_problem(text); }

TEST_F(SettingsTest, AVariableTakesAList) {
  set("CONV_FWD_ALGO", "6,GEMM,-1");
  const Settings s = good();
  ASSERT_EQ(s.rules.size(), 1u);
  EXPECT_EQ(s.rules[0].requests.size(), 3u);
  EXPECT_TRUE(s.rules[0].leaves_at_last());
  EXPECT_EQ(s.profile_level, ProfileLevel::Algorithms);
  EXPECT_EQ(s.notices.front(), "convpin: forward algorithm requested: 6 (WINOGRAD), else 2 (GEMM), else -1 (the framework's choice)");
}

TEST_F(SettingsTest, RangesAreNotIdle) {
  set("CONVPIN_NVTX", "1");
  EXPECT_FALSE(good().idle());
}

TEST_F(SettingsTest, NothingSetIsIdle) {
  for (const char* name : {"CONV_FWD_ALGO", "CONVPIN_CONFIG", "CONVPIN_LOG", "CONVPIN_PROFILE",
                           "CONVPIN_WORKSPACE_LIMIT", "CONVPIN_STRICT", "CONVPIN_DISABLE"})
    set(name, "");  // empty is unset
  const Settings s = good();
  EXPECT_TRUE(s.idle());
  EXPECT_TRUE(s.notices.empty());
  EXPECT_TRUE(s.non_default.empty());
  EXPECT_EQ(s.profile_warmup, 2);
  EXPECT_EQ(s.profile_repeats, 5);
  EXPECT_EQ(s.profile_budget_s, 10.0);
  EXPECT_EQ(s.workspace_limit, -1);
  EXPECT_TRUE(s.log_table);
}

TEST_F(SettingsTest, EachThingAskedForEndsIdleness) {
  set("CONV_FWD_ALGO", "-1");
  EXPECT_FALSE(good().idle());
  clear();
  set("CONVPIN_LOG", "run.jsonl");
  EXPECT_FALSE(good().idle());
  clear();
  set("CONVPIN_PROFILE", "engines");
  EXPECT_FALSE(good().idle());
  clear();
  toml("version = 1\n[[rule]]\nalgo = 1\n");
  EXPECT_FALSE(good().idle());
  set("CONVPIN_DISABLE", "1");
  EXPECT_TRUE(good().idle());
}

TEST_F(SettingsTest, DisableReadsNothingElse) {
  set("CONVPIN_DISABLE", "yes");
  set("CONV_FWD_ALGO", "nonsense");
  set("CONVPIN_CONFIG", "/nowhere");
  const Settings s = good();
  EXPECT_TRUE(s.disable);
  EXPECT_TRUE(s.idle());
  EXPECT_EQ(asked_, Lines{"CONVPIN_DISABLE"});
}

TEST_F(SettingsTest, AlgorithmMakesARuleForEveryProblem) {
  set("CONV_FWD_ALGO", "1");
  const Settings s = good();
  ASSERT_EQ(s.rules.size(), 1u);
  EXPECT_EQ(s.rules[0].source, "CONV_FWD_ALGO");
  EXPECT_EQ(s.rules[0].requests.at(0).algorithm, 1);
  EXPECT_EQ(match(s.rules, problem("x=[1,4,8,8] w=[8,4,3,3]"), {}), &s.rules[0]);
  EXPECT_EQ(s.profile_level, ProfileLevel::Algorithms);
  EXPECT_EQ(s.notices, Lines{"convpin: forward algorithm requested: 1 (IMPLICIT_PRECOMP_GEMM)"});
  EXPECT_EQ(s.non_default, (Pairs{{"CONV_FWD_ALGO", "1"}}));
}

TEST_F(SettingsTest, MinusOneIsARuleAndNoProfile) {
  set("CONV_FWD_ALGO", "-1");
  const Settings s = good();
  ASSERT_EQ(s.rules.size(), 1u);
  EXPECT_EQ(s.rules[0].requests.at(0).kind, Request::Kind::FrameworkChoice);
  EXPECT_FALSE(s.profiling());
  EXPECT_EQ(s.notices, Lines{"convpin: forward algorithm requested: -1 (the framework's choice)"});
}

TEST_F(SettingsTest, ProfileLevelsPrecedence) {
  set("CONV_FWD_ALGO", "1");
  toml("version = 1\nprofile.level = \"engines\"\n");
  EXPECT_EQ(good().profile_level, ProfileLevel::Engines) << "a file's level comes before the usual one";
  set("CONVPIN_PROFILE", "off");
  const Settings s = good();
  EXPECT_EQ(s.profile_level, ProfileLevel::Off) << "a variable comes before a file";
  EXPECT_TRUE(has(s.notices.at(1), " CONVPIN_PROFILE=off")) << "off is not usual with CONV_FWD_ALGO";
  clear();
  toml("version = 1\n[[rule]]\nalgo = 1\n");
  EXPECT_EQ(good().profile_level, ProfileLevel::Off) << "rules from a file alone ask for no profile";
}

TEST_F(SettingsTest, EchoesWhatIsNotDefault) {
  set("CONVPIN_PROFILE", "ENGINES");
  set("CONVPIN_STRICT", "0");  // the default: no echo
  set("CONVPIN_WORKSPACE_LIMIT", "64 MiB");
  toml("version = 1\n[log]\ntable = false\n[profile]\nrepeats = 5\nbudget = \"500 ms\"\n");
  const Settings s = good();
  const std::string config = folder_ + "/pins.toml";
  EXPECT_EQ(s.notices, Lines{"convpin: settings: CONVPIN_CONFIG=" + config +
                             " log.table=false CONVPIN_PROFILE=engines profile.budget=0.5 s "
                             "CONVPIN_WORKSPACE_LIMIT=67108864"});
  EXPECT_EQ(s.non_default, (Pairs{{"CONVPIN_CONFIG", config},
                                  {"log.table", "false"},
                                  {"CONVPIN_PROFILE", "engines"},
                                  {"profile.budget", "0.5 s"},
                                  {"CONVPIN_WORKSPACE_LIMIT", "67108864"}}));
}

TEST_F(SettingsTest, TheRequestIsTheFirstNoticeAndNotEchoedTwice) {
  set("CONV_FWD_ALGO", "winograd");
  set("CONVPIN_STRICT", "on");
  EXPECT_EQ(good().notices, (Lines{"convpin: forward algorithm requested: 6 (WINOGRAD)",
                                   "convpin: settings: CONVPIN_STRICT=true"}));
}

TEST_F(SettingsTest, SaysWhatTheVariableShadows) {
  set("CONV_FWD_ALGO", "1");
  toml("version = 1\n[[rule]]\nalgo = 2\n[[rule]]\nalgo = 3\n[[rule]]\nalgo = 4\n");
  toml("version = 1\n[[rule]]\nalgo = 5\n", "more.toml");
  toml("version = 1\n", "none.toml");
  const Settings s = good();
  ASSERT_EQ(s.rules.size(), 5u);
  EXPECT_EQ(s.rules[0].requests.at(0).algorithm, 1);
  EXPECT_EQ(s.rules[1].requests.at(0).algorithm, 2);
  EXPECT_EQ(s.rules[4].requests.at(0).algorithm, 5);
  ASSERT_EQ(s.notices.size(), 4u);
  EXPECT_EQ(s.notices[2], "convpin: CONV_FWD_ALGO comes before 3 forward rules of pins.toml");
  EXPECT_EQ(s.notices[3], "convpin: CONV_FWD_ALGO comes before 1 forward rule of more.toml");
}

TEST_F(SettingsTest, TheFirstMatchingRuleWins) {
  toml(
      "version = 1\n[[rule]]\nproblem = \"half\"\nalgo = 1\n[[rule]]\nproblem = \"w=[*,*,1,1]\"\nalgo = -1\n"
      "[[rule]]\nproblem = \"nchw\"\nalgo = \"eng4\"\n");
  const Settings s = good();
  EXPECT_EQ(match(s.rules, problem("x=[1,4,8,8] w=[8,4,1,1] half"), {}), &s.rules[0]);
  EXPECT_EQ(match(s.rules, problem("x=[1,4,8,8] w=[8,4,1,1]"), {}), &s.rules[1]) << "-1 ends the search";
  EXPECT_EQ(match(s.rules, problem("x=[1,4,8,8] w=[8,4,3,3]"), {}), &s.rules[2]);
  EXPECT_EQ(match(s.rules, problem("x=[1,4,8,8] w=[8,4,3,3] nhwc"), {}), nullptr);
}

TEST_F(SettingsTest, AnErrorNamesItsVariable) {
  set("CONV_FWD_ALGO", "foo");
  EXPECT_TRUE(
      error().starts_with("CONV_FWD_ALGO: 'foo' is not a forward algorithm: allowed are 0-7, IMPLICIT_GEMM"));
  clear();
  set("CONVPIN_PROFILE", "all");
  EXPECT_EQ(error(), "CONVPIN_PROFILE: 'all' is not a profile level: allowed are off, algorithms, engines");
  clear();
  set("CONVPIN_STRICT", "maybe");
  EXPECT_EQ(error(),
            "CONVPIN_STRICT: 'maybe' is neither yes nor no: allowed are 0, 1, true, false, on, off, yes, no");
  clear();
  set("CONVPIN_DISABLE", "2");
  EXPECT_TRUE(error().starts_with("CONVPIN_DISABLE: '2' is neither"));
  clear();
  set("CONVPIN_WORKSPACE_LIMIT", "-5");
  EXPECT_TRUE(error().starts_with("CONVPIN_WORKSPACE_LIMIT: '-5' is not a size"));
}

TEST_F(SettingsTest, AnErrorDisarmsButKeepsTheLogAndStrict) {
  set("CONV_FWD_ALGO", "1");
  set("CONVPIN_PROFILE", "enginez");
  set("CONVPIN_STRICT", "1");
  set("CONVPIN_LOG", "/tmp/run.jsonl");
  toml("version = 1\n[[rule]]\nalgo = 1\n");
  const Settings s = load();
  EXPECT_EQ(s.errors.size(), 1u);
  EXPECT_TRUE(s.rules.empty());
  EXPECT_FALSE(s.profiling());
  EXPECT_TRUE(s.strict);
  EXPECT_EQ(s.log_path, "/tmp/run.jsonl");
  for (const std::string& notice : s.notices) EXPECT_FALSE(has(notice, "requested")) << "it is not in force";
}

TEST_F(SettingsTest, AnErrorElsewhereEndsAProfileThatWasAskedFor) {
  set("CONVPIN_PROFILE", "engines");
  set("CONV_FWD_ALGO", "foo");
  error();  // checks that the level is off
}

TEST_F(SettingsTest, RelativePathsAreSeenFromTheStart) {
  set("CONVPIN_LOG", "logs/run-%p.jsonl");
  toml("version = 1\n");
  const Settings s = good();
  EXPECT_EQ(s.log_path, folder_ + "/logs/run-%p.jsonl");
  EXPECT_EQ(s.config_files, folder_ + "/pins.toml");
  set("CONVPIN_LOG", "/abs/run.jsonl");
  EXPECT_EQ(good().log_path, "/abs/run.jsonl");
}

TEST_F(SettingsTest, APercentSignInTheFoldersNameIsNoPattern) {
  set("CONVPIN_LOG", "run.jsonl");
  const Settings s = load_settings(reader(), "/data/50%p");
  EXPECT_EQ(expand_path(s.log_path, reader()), "/data/50%p/run.jsonl");
}

TEST_F(SettingsTest, WhateverIsInTheEnvironmentNothingIsThrown) {
  const std::string long_text(1 << 20, '[');
  for (const char* name : {"CONV_FWD_ALGO", "CONVPIN_CONFIG", "CONVPIN_PROFILE", "CONVPIN_WORKSPACE_LIMIT"})
    for (const std::string& text : {long_text, std::string("\xff\xfe\x01"), std::string(":::=%q{")}) {
      clear();
      set(name, text);
      EXPECT_NO_THROW({
        const Settings s = load();
        EXPECT_FALSE(s.errors.empty()) << name;
        for (const std::string& line : s.errors) EXPECT_EQ(line.find('\x01'), std::string::npos);
      });
    }
}

TEST_F(SettingsTest, PathPatterns) {
  char host[256] = {};
  ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
  set("NAME", "value");
  EXPECT_EQ(expand_path("%h-%p-%r.jsonl", reader()),
            std::string(host) + "-" + std::to_string(getpid()) + "-0.jsonl");
  EXPECT_EQ(expand_path("a%%p%q{NAME}-%q{NONE}-", reader()), "a%pvalue--");
  EXPECT_EQ(expand_path("%q{NAME", reader()), "%q{NAME");
  EXPECT_EQ(expand_path("%x%", reader()), "%x%");
  set("RANK", "12");
  EXPECT_EQ(expand_path("%r", reader()), "12");
}

TEST_F(SettingsTest, RanksOfTheLaunchers) {
  EXPECT_EQ(ranks_of(reader()).global, -1);
  EXPECT_EQ(ranks_of(reader()).local, -1);
  set("SLURM_PROCID", "9");
  set("SLURM_LOCALID", "1");
  EXPECT_EQ(ranks_of(reader()).global, 9);
  EXPECT_EQ(ranks_of(reader()).local, 1);
  set("OMPI_COMM_WORLD_RANK", "8");
  set("OMPI_COMM_WORLD_LOCAL_RANK", "2");
  EXPECT_EQ(ranks_of(reader()).global, 8) << "the inner launcher knows better";
  EXPECT_EQ(ranks_of(reader()).local, 2);
  set("RANK", "7");
  set("LOCAL_RANK", "3");
  EXPECT_EQ(ranks_of(reader()).global, 7);
  EXPECT_EQ(ranks_of(reader()).local, 3);
  set("RANK", "x");
  EXPECT_EQ(ranks_of(reader()).global, 8) << "what is no number is passed over";
  set("RANK", "-5");
  EXPECT_EQ(ranks_of(reader()).global, 8) << "what is no rank is passed over";
}

TEST(Values, Bytes) {
  const std::pair<const char*, std::int64_t> good[] = {{"0", 0},
                                                       {"4096", 4096},
                                                       {"1B", 1},
                                                       {"2 KB", 2000},
                                                       {"2KiB", 2048},
                                                       {"64 MiB", 64LL << 20},
                                                       {" 1.5 GB ", 1500000000},
                                                       {"1 GiB", 1LL << 30},
                                                       {"0.5kib", 512},
                                                       {"3 mb", 3000000},
                                                       {"9223372036854775807", 9223372036854775807LL}};
  for (const auto& [text, bytes] : good) EXPECT_EQ(parse_bytes(text).value, bytes) << text;
  for (const char* text : {"", " ", "-1", "-1 MB", "MiB", "1 TB2", "1 MiBx", "1e3", "0x10", "inf", "nan",
                           "1 2", "9223372036854775808", "99999999999 GiB", "1,5 GB", "+3"}) {
    EXPECT_FALSE(parse_bytes(text)) << text;
    EXPECT_TRUE(has(parse_bytes(text).error, "MiB")) << text;
  }
}

TEST(Values, Seconds) {
  const std::pair<const char*, double> good[] = {{"10 s", 10}, {"500 ms", 0.5}, {"2min", 120}, {"1.5", 1.5},
                                                 {"0", 0},     {"0.25S", 0.25}, {"1 h", 3600}};
  for (const auto& [text, seconds] : good) EXPECT_EQ(parse_seconds(text).value, seconds) << text;
  for (const char* text : {"", "-1", "-1 s", "s", "1 d", "1 s s", "inf", "nan", "1e400", "1e3"}) {
    EXPECT_FALSE(parse_seconds(text)) << text;
    EXPECT_TRUE(has(parse_seconds(text).error, "10 s")) << text;
  }
  EXPECT_FALSE(parse_seconds(std::string(400, '9')));
}

}  // namespace
}  // namespace convpin
