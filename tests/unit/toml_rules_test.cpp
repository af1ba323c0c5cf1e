// Fails when a key of [[rule]] is read wrongly or dropped in silence, a default is not taken over, an operation is missing
// from `any`, or an error does not show its place and what is allowed.
#include "tests/unit/environment.hpp"

namespace convpin {
namespace {

using TomlRules = Environment;
const std::string kVersion = "version = 1\n";

bool matches(const Rule& rule, std::string_view text, const Place& place = {"NVIDIA H200", 91900}) {
  const auto problem = parse_problem(text);
  EXPECT_TRUE(problem) << problem.error;
  return match({rule}, *problem, place) != nullptr;
}

TEST_F(TomlRules, EveryKeyIsRead) {
  toml(R"(version = 1
[[rule]]
name = "stem"
operation = "wgrad"
problem = "half stride=2,2"
match = { x = [-1, 3, "128..512", "*"], w = [64, 3, 7, 7], y = [-1, 64, -1, -1], pad = 3, stride = [2, 2], dilation = 1, groups = 1, dims = 2, dtype = "half", layout = "nhwc", device = "*H200*", cudnn = ">=9.10", fused = false }
algo = ["eng72", 1, -1]
on_unsupported = "error"
workspace_limit = "64 MiB"
require = ["deterministic", "Tensor_Core"]

[[rule]]
policy = "fastest"
require = "no_down_convert"
allow = ["runtime_compilation", "nondeterministic"]
min_gain = 0.05
)");
  const Settings s = good();
  ASSERT_EQ(s.rules.size(), 2u);
  const Rule& stem = s.rules[0];
  EXPECT_EQ(stem.source, "pins.toml:2:1");
  EXPECT_EQ(stem.name, "stem");
  EXPECT_EQ(stem.label(), "stem");
  EXPECT_EQ(stem.operation, Operation::BackwardFilter);
  EXPECT_EQ(request_text(stem), "eng72, else 1 (ALGO_1), else -1 (the framework's choice), only if deterministic, tensor_core");
  EXPECT_EQ(stem.on_unsupported, OnUnsupported::Error);
  EXPECT_EQ(stem.workspace_limit, 64 << 20);
  EXPECT_TRUE(stem.require.has(Flag::Deterministic) && stem.require.has(Flag::TensorCore));
  EXPECT_EQ(stem.policy, PolicyKind::None);
  const std::string problem = "backward_filter x=[8,3,224,224] w=[64,3,7,7] half nhwc pad=3 stride=2";
  EXPECT_TRUE(matches(stem, problem));
  EXPECT_FALSE(matches(stem, problem, {"NVIDIA H100", 91900}));
  EXPECT_FALSE(matches(stem, problem, {"NVIDIA H200", 90900}));
  EXPECT_FALSE(matches(stem, problem + " fused=relu"));
  EXPECT_FALSE(matches(stem, "backward_filter x=[8,3,64,64] w=[64,3,7,7] half nhwc pad=3 stride=2"));
  EXPECT_FALSE(matches(stem, "backward_data x=[8,3,224,224] w=[64,3,7,7] half nhwc pad=3 stride=2"));

  const Rule& rest = s.rules[1];
  EXPECT_EQ(rest.label(), "pins.toml:12:1");
  EXPECT_EQ(rest.policy, PolicyKind::Fastest);
  EXPECT_EQ(rest.min_gain, 0.05);
  EXPECT_TRUE(rest.requests.empty());
  EXPECT_EQ(rest.request(), nullptr);
  EXPECT_EQ(rest.on_unsupported, OnUnsupported::Fallback);
  EXPECT_EQ(rest.workspace_limit, std::nullopt);
  EXPECT_EQ(request_text(rest), "the fastest (no_down_convert; allowed: runtime_compilation, nondeterministic)");
}

TEST_F(TomlRules, AreSilentAboutWhatTheSettingsSay) {
  const std::string rules = "[[rule]]\nalgo = 1\n[[rule]]\nalgo = 2\non_unsupported = \"fallback\"\nworkspace_limit = -1\n";
  toml(kVersion + rules, "rules.toml");
  toml(kVersion + "workspace_limit = 4096\ndefaults = { on_unsupported = \"error\", on_miss = \"error\" }\n", "later.toml");
  set("CONV_BWD_DATA_ALGO", "0");
  Settings s = good();
  ASSERT_EQ(s.rules.size(), 3u);
  for (const int from_settings : {0, 1}) {
    EXPECT_EQ(s.rules[from_settings].on_unsupported, OnUnsupported::Error);
    EXPECT_EQ(s.rules[from_settings].workspace_limit, 4096);
  }
  EXPECT_EQ(s.rules[2].on_unsupported, OnUnsupported::Fallback);
  EXPECT_EQ(s.rules[2].workspace_limit, std::nullopt) << "-1 is no limit";
  EXPECT_EQ(s.on_miss, OnMiss::Error);
  set("CONVPIN_ON_MISS", "leave");
  set("CONVPIN_ON_UNSUPPORTED", "Fallback");
  s = good();
  EXPECT_EQ(s.on_miss, OnMiss::Leave);
  EXPECT_EQ(s.rules[1].on_unsupported, OnUnsupported::Fallback);
  clear();
  set("CONVPIN_ON_MISS", "error");
  EXPECT_FALSE(good().idle()) << "convolutions must be seen to be refused";
  set("CONVPIN_ON_MISS", "fail");
  EXPECT_EQ(load().on_miss, OnMiss::Leave) << "with an error nothing is in force";
  clear();
  set("CONVPIN_ON_UNSUPPORTED", "fail");
  EXPECT_TRUE(has(error(), "CONVPIN_ON_UNSUPPORTED: 'fail'"));
}

TEST_F(TomlRules, AnyIsOneRuleForEachOperationThatHasIt) {
  const auto operations = [&](const std::string& keys) {
    clear();
    toml(kVersion + "[[rule]]\noperation = \"any\"\n" + keys);
    std::string text;
    for (const Rule& rule : good().rules) {
      EXPECT_EQ(rule.source, "pins.toml:2:1");
      text += std::string(name_of(rule.operation)) + ": " + request_text(rule) + "\n";
    }
    return text;
  };
  EXPECT_EQ(operations("algo = \"winograd_nonfused\"\n"),
            "forward: 7 (WINOGRAD_NONFUSED)\nbackward_data: 5 (WINOGRAD_NONFUSED)\nbackward_filter: 5 (WINOGRAD_NONFUSED)\n");
  EXPECT_EQ(operations("algo = \"IMPLICIT_GEMM\"\n"), "forward: 0 (IMPLICIT_GEMM)\n");
  EXPECT_EQ(operations("algo = [\"IMPLICIT_GEMM\", \"ALGO_1\", 6]\n"),  // forward has no ALGO_1
            "forward: 0 (IMPLICIT_GEMM), else 6 (WINOGRAD)\n"
            "backward_data: 1 (ALGO_1)\nbackward_filter: 1 (ALGO_1), else 6 (FFT_TILING)\n");
  EXPECT_EQ(operations("policy = \"least_memory\"\n"),
            "forward: the least memory\nbackward_data: the least memory\nbackward_filter: the least memory\n");
  EXPECT_EQ(operations("algo = \"ConvBwdData_eng4\"\n"), "backward_data: eng4\n");
}

TEST_F(TomlRules, TheOperationMayStandInTheProblemAlone) {
  toml(kVersion + "[[rule]]\nproblem = \"dgrad half\"\nalgo = \"ALGO_1\"\n[[rule]]\nproblem = \"half\"\nalgo = \"GEMM\"\n");
  const Settings s = good();
  EXPECT_EQ(s.rules.at(0).operation, Operation::BackwardData);
  EXPECT_EQ(s.rules.at(1).operation, Operation::Forward);
}

TEST_F(TomlRules, OfATextAlone) {
  Settings settings;
  settings.on_unsupported = OnUnsupported::Error;
  settings.workspace_limit = 1024;
  const auto rules = rules_from_toml("[[rule]]\noperation = \"dgrad\"\nalgo = 1\n[[rule]]\npolicy = \"fastest\"\non_unsupported = \"fallback\"", "program", settings);
  ASSERT_TRUE(rules) << rules.error;
  ASSERT_EQ(rules->size(), 2u);
  EXPECT_EQ((*rules)[0].source, "program:1:1");
  EXPECT_EQ((*rules)[0].on_unsupported, OnUnsupported::Error);
  EXPECT_EQ((*rules)[0].workspace_limit, 1024);
  EXPECT_EQ((*rules)[1].on_unsupported, OnUnsupported::Fallback);
  for (const char* text : {"", " \n", "version = 1"}) EXPECT_TRUE(rules_from_toml(text, "program", settings)->empty()) << text;
  const std::pair<std::string, const char*> wrong[] = {{"version = 2", "version = 1 is"}, {"[[deny]]\nengine = 1", "'deny' can't be set while the program runs"},
                                                       {"strict = true", "'strict' can't be set"}, {"rule = 1", "rule"}, {"[[rule]]\nalgo = 99", "program"},
                                                       {"[[rule", "program"}, {std::string(200, '['), "nests too deeply"}};
  for (const auto& [text, expected] : wrong) {
    const auto parsed = rules_from_toml(text, "program", settings);
    EXPECT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error.find(expected), std::string::npos) << parsed.error;
  }
}

TEST_F(TomlRules, ShadowedOnesOfAnyAreCountedByOperation) {
  set("CONV_FWD_ALGO", "1");
  toml(kVersion + "[[rule]]\noperation = \"any\"\nalgo = 1\n[[rule]]\nalgo = \"eng1\"\n");
  EXPECT_EQ(good().notices.back(), "convpin: CONV_FWD_ALGO comes before 2 forward rules of pins.toml");
}

class WrongRule : public Environment, public testing::WithParamInterface<Wrong> {};

TEST_P(WrongRule, IsAnErrorThatShowsItsPlace) { expect_wrong(GetParam()); }

#define RULE "version = 1\n[[rule]]\nalgo = 1\n"
#define POLICY "version = 1\n[[rule]]\npolicy = \"fastest\"\n"
INSTANTIATE_TEST_SUITE_P(
    All, WrongRule,
    testing::Values(
        Wrong{"version = 1\n[rule]\nalgo = 1\n", "a rule begins with [[rule]]", " 2 | [rule]"},
        Wrong{"version = 1\nrule = [1]\n", "a rule must be a table", " 2 | rule"},
        Wrong{RULE "shape = 3\n",
              "unknown key 'shape': allowed are algo, allow, match, min_gain, name, on_unsupported, operation, policy, problem, "
              "require, workspace_limit",
              " 4 | shape"},
        Wrong{"version = 1\n[[rule]]\nproblem = \"half\"\n", "this rule has no algo and no policy: add algo = ", " 2 | [[rule]]"},
        Wrong{RULE "policy = \"fastest\"\n", "this rule has algo and policy: only one", " 4 | policy"},
        Wrong{RULE "name = 3\n", "'name' must be a string, not integer", " 4 | name"},
        Wrong{"version = 1\n[[rule]]\nalgo = \"foo\"\n", "'foo' is not a forward algorithm: allowed are 0-7", " 3 | algo"},
        Wrong{"version = 1\n[[rule]]\nalgo = 8\n", "'8' is not a forward algorithm", " 3 | algo"},
        Wrong{"version = 1\n[[rule]]\nalgo = 1.0\n", "'algo' must be a number or a string, or a list of them, not float", " 3 | algo"},
        Wrong{"version = 1\n[[rule]]\nalgo = [1, [2]]\n", "'algo' must be a number or a string", " 3 | algo"},
        Wrong{"version = 1\n[[rule]]\nalgo = []\n", "'algo' is an empty list", " 3 | algo"},
        Wrong{"version = 1\n[[rule]]\nalgo = [\"eng1\",\n  \"foo\"]\n", "'foo' is not a forward algorithm", " 4 |   \"foo\"]"},
        Wrong{"version = 1\n[[rule]]\nalgo = [-1, 1]\n", "-1 is always possible", " 3 | algo"},
        Wrong{"version = 1\n[[rule]]\noperation = \"any\"\nalgo = \"foo\"\n", "'foo' is not a backward filter algorithm", " 4 | algo"},
        Wrong{"version = 1\n[[rule]]\noperation = \"any\"\nalgo = [\"eng38\"]\n", "'eng38' is another engine in each operation", " 4 | algo"},
        Wrong{RULE "operation = \"sideways\"\n", "is not an operation: allowed are forward, backward_data, backward_filter, any",
              " 4 | operation"},
        Wrong{RULE "operation = 1\n", "'operation' must be a string", " 4 | operation"},
        Wrong{RULE "problem = \"half x=[1,2\"\n", "a bracket is missing", " 4 | problem"},
        Wrong{RULE "operation = \"fwd\"\nproblem = \"backward_data half\"\n", "is not the rule's", " 5 | problem"},
        Wrong{RULE "operation = \"any\"\nproblem = \"fwd half\"\n", "is not the rule's", " 5 | problem"},
        Wrong{RULE "problem = 3\n", "'problem' must be a string", " 4 | problem"},
        Wrong{RULE "on_unsupported = \"explode\"\n", "'explode' is not", " 4 | on_unsupported"},
        Wrong{RULE "on_unsupported = true\n", "'on_unsupported' must be a string, not boolean", " 4 | on_unsupported"},
        Wrong{RULE "workspace_limit = \"much\"\n", "'workspace_limit': 'much' is not a size", " 4 | workspace_limit"},
        Wrong{RULE "workspace_limit = 1.5\n", "'workspace_limit' must be a string or a number, not float", " 4 | workspace_limit"},
        Wrong{RULE "require = \"fast\"\n", "'fast' can't stand in 'require': allowed are deterministic, tensor_core, no_tensor_core, no_down_convert", " 4 | require"},
        Wrong{RULE "require = [\"deterministic\", 1]\n", "this can't stand in 'require'", " 4 | require"},
        Wrong{RULE "require = []\n", "'require' is an empty list", " 4 | require"},
        Wrong{RULE "require = [\"tensor_core\", \"no_tensor_core\"]\n", "exclude each other", " 4 | require"},
        Wrong{RULE "allow = \"nondeterministic\"\n", "'allow' is for a policy", " 4 | allow"},
        Wrong{RULE "min_gain = 0.1\n", "'min_gain' is for a policy", " 4 | min_gain"},
        Wrong{POLICY "allow = \"deterministic\"\n",
              "allowed are runtime_compilation, nondeterministic, down_convert, reduced_precision_reduction", " 4 | allow"},
        Wrong{POLICY "require = \"deterministic\"\nallow = \"nondeterministic\"\n", "'allow' contradicts 'require': deterministic",
              " 5 | allow"},
        Wrong{POLICY "require = \"no_down_convert\"\nallow = \"down_convert\"\n", "'allow' contradicts 'require'", " 5 | allow"},
        Wrong{POLICY "min_gain = 1\n", "'min_gain' must be a number from 0 to below 1", " 4 | min_gain"},
        Wrong{POLICY "min_gain = nan\n", "'min_gain' must be a number from 0", " 4 | min_gain"},
        Wrong{POLICY "min_gain = \"2 %\"\n", "'min_gain' must be a number from 0", " 4 | min_gain"},
        Wrong{"version = 1\n[[rule]]\npolicy = \"least_energy\"\n", "'least_energy' can't be measured in a run: convpin tune", " 3 | policy"},
        Wrong{"version = 1\n[[rule]]\npolicy = \"slowest\"\n", "'slowest' is not a policy: allowed are fastest, least_memory", " 3 | policy"},
        Wrong{"version = 1\n[[rule]]\npolicy = 1\n", "'policy' must be a string", " 3 | policy"},
        Wrong{"version = 1\ndefaults.on_miss = \"raise\"\n", "'raise' is not", " 2 | "},
        Wrong{"version = 1\ndefaults.on_hit = \"raise\"\n", "unknown key 'on_hit': allowed are on_miss, on_unsupported", " 2 | "}));

INSTANTIATE_TEST_SUITE_P(
    Match, WrongRule,
    testing::Values(
        Wrong{RULE "match = \"half\"\n", "'match' must be a table", " 4 | match"},
        Wrong{RULE "match = { n = 1 }\n", "unknown key 'n': allowed are cudnn, device, dilation, dims, dtype, fused, groups, ", " 4 | match"},
        Wrong{RULE "match = { x = 1 }\n", "'x' must be a list", " 4 | match"},
        Wrong{RULE "match = { x = [1, 2] }\n", "'x' must have 3 to 8 numbers or ranges", " 4 | match"},
        Wrong{RULE "match = { x = [1, 2, -2] }\n", "'-2' is not a number or a range", " 4 | match"},
        Wrong{RULE "match = { x = [1, \"9..3\", 2] }\n", "'9..3' is not a number or a range", " 4 | match"},
        Wrong{RULE "match = { w = [1, true, 2] }\n", "in 'w' a number or a range", " 4 | match"},
        Wrong{RULE "match = { stride = [] }\n", "'stride' must have 1 to 6", " 4 | match"},
        Wrong{RULE "match = { pad = 1.5 }\n", "in 'pad' a number or a range", " 4 | match"},
        Wrong{RULE "match = { groups = [1] }\n", "in 'groups' a number or a range", " 4 | match"},
        Wrong{RULE "match = { dtype = \"halve\" }\n", "'dtype' is 'halve', and must be a data type", " 4 | match"},
        Wrong{RULE "match = { dtype = [] }\n", "'dtype' is an empty list", " 4 | match"},
        Wrong{RULE "match = { layout = 1 }\n", "'layout' must be a layout", " 4 | match"},
        Wrong{RULE "match = { fused = 0 }\n", "'fused' must be true or false, not integer", " 4 | match"},
        Wrong{RULE "match = { device = \"\" }\n", "'device' is '', and must be the GPU's name", " 4 | match"},
        Wrong{RULE "match = { cudnn = 9.10 }\n", "'cudnn' must be a string such as \">=9.10\"", " 4 | match"},
        Wrong{RULE "match = { cudnn = \"~9\" }\n", "'~9' is not a version of cuDNN", " 4 | match"},
        Wrong{RULE "match = { cudnn = \"9.1, 9.4\" }\n", "holds for no version", " 4 | match"},
        Wrong{RULE "[rule.match]\ngroups = 1\ndims = \"two\"\n", "'two' is not a number or a range", " 6 | dims"}));

}  // namespace
}  // namespace convpin
