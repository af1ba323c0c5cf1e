// Fails when a setting's key is dropped in silence, a wrong type or value is taken, an error does not show its file,
// line and caret, or the example file and the table of settings part ways.
#include "tests/unit/environment.hpp"

namespace convpin {
namespace {

using TomlTest = Environment;

TEST_F(TomlTest, EveryKeyIsRead) {
  toml(
      "version = 1\nworkspace_limit = \"64 MiB\"\nstrict = true\n"
      "[log]\npath = \"run-%p.jsonl\"\ntable = false\n"
      "[profile]\nlevel = \"engines\"\nwarmup = 3\nrepeats = 7\nbudget = \"2 min\"\n"
      "[[rule]]\noperation = \"fprop\"\nproblem = \"forward x=[*,64,56,56] half nhwc\"\nalgo = "
      "\"WINOGRAD_NONFUSED\"\n"
      "[[rule]]\nalgo = 0\n");
  const Settings s = good();
  EXPECT_EQ(s.workspace_limit, 64 << 20);
  EXPECT_TRUE(s.strict);
  EXPECT_EQ(s.log_path, folder_ + "/run-%p.jsonl");
  EXPECT_FALSE(s.log_table);
  EXPECT_EQ(s.profile_level, ProfileLevel::Engines);
  EXPECT_EQ(s.profile_warmup, 3);
  EXPECT_EQ(s.profile_repeats, 7);
  EXPECT_EQ(s.profile_budget_s, 120);
  ASSERT_EQ(s.rules.size(), 2u);
  EXPECT_EQ(s.rules[0].source, "pins.toml:12:1");
  EXPECT_EQ(s.rules[0].requests.at(0).algorithm, 7);
  EXPECT_EQ(s.rules[0].problem.type, DataType::Half);
  EXPECT_EQ(s.rules[1].source, "pins.toml:16:1");
  EXPECT_EQ(s.rules[1].requests.at(0).algorithm, 0);
}

TEST_F(TomlTest, NumbersNeedNoUnit) {
  toml("version = 1\nworkspace_limit = 4096\nprofile.budget = 1.5\n");
  EXPECT_EQ(good().workspace_limit, 4096);
  EXPECT_EQ(good().profile_budget_s, 1.5);
  clear();
  toml("version = 1\nworkspace_limit = -1\nprofile.budget = 3\n");
  EXPECT_EQ(good().workspace_limit, -1);
  EXPECT_EQ(good().profile_budget_s, 3);
}

class WrongToml : public Environment, public testing::WithParamInterface<Wrong> {};

TEST_P(WrongToml, IsAnErrorThatShowsItsPlace) { expect_wrong(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    All, WrongToml,
    testing::Values(
        Wrong{"version = = 1\n", "bad format", " 1 | version = = 1"},
        Wrong{"[log]\ntable = true\n", "add the line version = 1", " 1 | [log]"},
        Wrong{"version = 2\nnonsense = 3\n", "version = 1 is", " 1 | version = 2"},
        Wrong{"version = \"1\"\n", "version = 1 is", " 1 | version"},
        Wrong{"version = 1\nversoin = 1\n",
              "unknown key 'versoin': allowed are defaults, deny, errata, log, profile, rule, strict, version, workspace_limit",
              " 2 | versoin"},
        Wrong{"version = 1\n[log]\npth = \"x\"\n", "unknown key 'pth': allowed are path, table", " 3 | pth"},
        Wrong{"version = 1\n[profile]\nrepeat = 5\n",
              "unknown key 'repeat': allowed are budget, level, repeats, warmup", " 3 | repeat"},
        Wrong{"version = 1\n\"log.path\" = \"x\"\n", "unknown key 'log.path'", " 2 | "},
        Wrong{"version = 1\nconfig_files = \"x\"\n", "unknown key 'config_files'", " 2 | "},
        Wrong{"version = 1\nlog = 3\n", "'log' must be a table, not integer", " 2 | log = 3"},
        Wrong{"version = 1\nstrict = 1\n", "'strict' must be true or false, not integer", " 2 | strict"},
        Wrong{"version = 1\nlog.table = \"yes\"\n", "'log.table' must be true or false", " 2 | log.table"},
        Wrong{"version = 1\nlog.path = 3\n", "'log.path' must be a string, not integer", " 2 | log.path"},
        Wrong{"version = 1\nprofile.level = 1\n", "'profile.level' must be a string", " 2 | "},
        Wrong{"version = 1\nprofile.level = \"all\"\n", "'all' is not a profile level", " 2 | "},
        Wrong{"version = 1\nprofile.repeats = 2.0\n", "'profile.repeats' must be a whole number", " 2 | "},
        Wrong{"version = 1\nprofile.repeats = 0\n", "from 1 to", " 2 | "},
        Wrong{"version = 1\nprofile.repeats = -1\n", "from 1 to", " 2 | "},
        Wrong{"version = 1\nprofile.warmup = -1\n", "from 0 to", " 2 | "},
        Wrong{"version = 1\nprofile.repeats = 99999999999999999999\n", "from 1 to", " 2 | "},
        Wrong{"version = 1\nprofile.budget = \"ten\"\n", "'ten' is not a time", " 2 | "},
        Wrong{"version = 1\nprofile.budget = -1.0\n", "is not a time", " 2 | "},
        Wrong{"version = 1\nprofile.budget = nan\n", "is not a time", " 2 | "},
        Wrong{"version = 1\nprofile.budget = inf\n", "is not a time", " 2 | "},
        Wrong{"version = 1\nprofile.budget = true\n", "must be a number of seconds", " 2 | "},
        Wrong{"version = 1\nworkspace_limit = \"64 Mib2\"\n", "is not a size", " 2 | "},
        Wrong{"version = 1\nworkspace_limit = -2\n", "is not a size", " 2 | "}));

TEST_F(TomlTest, AllErrorsAreReportedAtOnce) {
  toml("version = 1\nfoo = 1\nstrict = 3\n[[rule]]\nalgo = \"a\"\n[[rule]]\nalgo = \"b\"\n");
  EXPECT_EQ(load().errors.size(), 4u);
}

TEST_F(TomlTest, StrictIsKeptWhereAnotherKeyIsWrong) {
  toml("version = 1\nstrict = true\nfoo = 1\n");
  EXPECT_TRUE(load().strict);
}

TEST_F(TomlTest, ALogIsNoConfiguration) {
  toml("{\"type\":\"header\",\"schema\":1,\"run_id\":\"a\"}\n");
  EXPECT_TRUE(has(error(), "'pins.toml' is a log of convpin's, not a configuration")) << error();
}

TEST_F(TomlTest, UnreadableFilesAreErrors) {
  set("CONVPIN_CONFIG", "missing.toml");
  EXPECT_TRUE(has(error(), "CONVPIN_CONFIG: 'missing.toml' can't be read (as " + folder_ + "/missing.toml)"));
  set("CONVPIN_CONFIG", folder_);
  EXPECT_TRUE(has(error(), "can't be read")) << "a directory";
  set("CONVPIN_CONFIG", "/dev/zero");
  EXPECT_TRUE(has(error(), "can't be read")) << "a file without an end";
}

// toml11 recurses: without a limit these end the process.
TEST_F(TomlTest, DeepNestingIsAnError) {
  std::string dotted = "a";
  for (int i = 0; i < 100000; ++i) dotted += ".a";
  for (const std::string& text : {"x = " + std::string(100000, '['), dotted + " = 1", "[" + dotted + "]\n",
                                  "x = " + std::string(100000, '{')}) {
    clear();
    toml("version = 1\n" + text);
    EXPECT_TRUE(has(error(), "'pins.toml' nests too deeply"));
  }
}

TEST_F(TomlTest, BracketsInStringsAndCommentsDoNotNest) {
  const std::string brackets(1000, '[');
  toml("# " + brackets + "\nversion = 1 # " + brackets + "\nlog.path = \"\\\"" + brackets + "\"\n");
  good();
  clear();
  toml("version = 1\nlog.path = '''\n" + brackets + "\n''" + brackets + "'''\n");
  good();
  clear();
  std::string tables = "version = 1\n";
  for (int i = 0; i < 500; ++i) tables += "[[rule]]\nalgo = 1 # '\n";
  toml(tables);
  EXPECT_EQ(good().rules.size(), 500u);
}

TEST_F(TomlTest, EmptyPartsOfTheListAreNoFiles) {
  toml("version = 1\nprofile.warmup = 9\n");
  set("CONVPIN_CONFIG", ":pins.toml::");
  EXPECT_EQ(good().profile_warmup, 9);
}

TEST_F(TomlTest, TheFirstFileWinsAndTheSecondIsNamed) {
  toml("version = 1\nprofile.warmup = 3\n[[rule]]\nalgo = 1\n", "a.toml");
  toml("version = 1\nprofile.warmup = 4\nprofile.repeats = 9\n[[rule]]\nalgo = 2\n", "b.toml");
  const Settings s = good();
  EXPECT_EQ(s.profile_warmup, 3);
  EXPECT_EQ(s.profile_repeats, 9);
  ASSERT_EQ(s.rules.size(), 2u);
  EXPECT_EQ(s.rules[0].source, "a.toml:3:1");
  EXPECT_EQ(s.rules[1].source, "b.toml:4:1");
  EXPECT_EQ(s.notices.back(), "convpin: profile.warmup of b.toml is not used: a.toml comes first");
}

TEST_F(TomlTest, TheEnvironmentWinsInSilence) {
  set("CONVPIN_WORKSPACE_LIMIT", "1 KiB");
  toml("version = 1\nworkspace_limit = 5\n");
  const Settings s = good();
  EXPECT_EQ(s.workspace_limit, 1024);
  EXPECT_EQ(s.notices.size(), 1u) << "only the echo";
}

TEST_F(TomlTest, OrdinaryVariationsOfFilesAreTaken) {
  for (const char* text : {"version = 1", "\xef\xbb\xbfversion = 1\r\n", "# comment\n\nversion=1 # one\n",
                           "version = 1\nrule = [{algo = 1}]\nlog = {table = true}\n",
                           "version = 1\nrule = []\n", "version = 1\nlog.path = \"\"\n"}) {
    clear();
    toml(text);
    good();
  }
}

TEST_F(TomlTest, TheExampleIsWithoutErrorsAndHasEveryKey) {
  set("CONVPIN_CONFIG", CONVPIN_SOURCE_DIR "/config/example.toml");
  const Settings s = good();
  EXPECT_EQ(s.rules.size(), 8u);
  EXPECT_EQ(s.denials.size(), 5u);
  std::ifstream in(CONVPIN_SOURCE_DIR "/config/example.toml");
  const std::string example((std::istreambuf_iterator<char>(in)), {});
  const std::string keys[] = {
      "name", "operation", "problem", "algo", "on_unsupported", "workspace_limit", "require", "policy", "allow", "min_gain",
      "engine", "cudnn", "match", "reason", "tag", "x", "w", "y", "pad", "stride", "dilation", "groups", "dims", "dtype", "layout",
      "fused", "device", "cudnn",  // of rules, denials and matches
#define CONVPIN_SETTING(member, type, fallback, env, toml, doc) toml,
#include "config/settings.def"
#undef CONVPIN_SETTING
  };
  for (const std::string& key : keys) {
    if (key.empty()) continue;
    EXPECT_TRUE(has(example, "\n" + key.substr(key.find('.') + 1) + " = ")) << key << " is missing";
  }
}

}  // namespace
}  // namespace convpin
