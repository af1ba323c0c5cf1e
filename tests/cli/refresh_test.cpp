// Fails when a refresh loses or changes what a person wrote, tunes what a rule here covers, leaves out what
// is stale, takes a rule of another GPU away, or puts a new rule where an older one would shadow it.
#include "tools/convpin/refresh.hpp"

#include <gtest/gtest.h>

#include "tests/unit/environment.hpp"
#include "tools/convpin/command.hpp"

namespace convpin::cli {
namespace {

const Place kHere{"NVIDIA H200", 92100};
const std::string kTail = " w=[8,4,3,3] half nhwc pad=1,1 stride=1,1 dilation=1,1 groups=1 fused=none\"\n";
const std::string kHead = "# mine\nversion = 1\n";

std::string problem(int n) { return "problem = \"forward x=[" + std::to_string(n) + ",4,16,16]" + kTail; }
std::string rule(const std::string& problem_line, const char* algo, const char* device, const char* cudnn,
                 const std::string& above = "") {
  std::string text =
      "\n" + above + "[[rule]]\n# of an older day\n" + problem_line + "algo = \"" + algo + "\"\n";
  if (*device) text += "match = { device = \"" + std::string(device) + "\", cudnn = \"" + cudnn + "\" }\n";
  return text;
}
const std::string kDenial = "\n# bad\n[[deny]]\noperation = \"forward\"\nengine = 5\n";
const std::string kPolicy =
    "\n[[rule]]\noperation = \"dgrad\"\npolicy = \"fastest\"\n[rule.match]\ncudnn = \"9.19\"\n";
const std::string kTheRest = "\n# everything else\n[[rule]]\noperation = \"any\"\nalgo = -1\n";

class RefreshedFile : public Environment {
 protected:
  PinText file(const std::string& text) {
    write("pins.toml", text);
    return read_pin_text(folder_ + "/pins.toml");
  }
  static FrozenRule tuned(int n, const char* algo) {
    FrozenRule r;
    r.problem = problem_of(n);
    r.text = pattern_text(r.problem);
    r.gpu = kHere.device, r.cudnn = "9.21.0";
    r.algo = {algo};
    return r;
  }
  static Problem problem_of(int n) {
    return *parse_problem("x=[" + std::to_string(n) + ",4,16,16] w=[8,4,3,3] half nhwc pad=1");
  }
  static Usage logged(int n) {
    Usage u;
    u.problem = problem_of(n);
    u.calls = 7;
    return u;
  }
  static std::vector<Problem> problems(const std::vector<Usage>& usages) {
    std::vector<Problem> all;
    for (const Usage& u : usages) all.push_back(u.problem);
    return all;
  }
};

TEST_F(RefreshedFile, KeepsEveryWordWhereNothingIsStale) {
  const std::string text = kHead + rule(problem(1), "eng1", "NVIDIA H200", "9.21.0", "# the stem\n") +
                           kDenial + kPolicy + kTheRest;
  const PinText old = file(text);
  EXPECT_EQ(old.blocks.size(), 4u);
  EXPECT_TRUE(to_refresh(old, {logged(1)}, kHere).empty());
  EXPECT_EQ(refreshed(old, {}, {}, kHere, false).text, text);
}

TEST_F(RefreshedFile, TunesWhatIsStaleAndWhatNoRuleCovers) {
  const PinText old = file(kHead + rule(problem(1), "eng1", "NVIDIA H200", "9.19.0") +
                           rule(problem(2), "eng2", "NVIDIA A100", "9.21.0") +
                           rule(problem(3), "eng3", "NVIDIA A100", "9.21.0") +
                           rule(problem(3), "eng4", "NVIDIA H200", "9.21.0") + kPolicy);
  EXPECT_EQ(problems(to_refresh(old, {}, kHere)), (std::vector{problem_of(1), problem_of(2)}));
  const auto with_log = to_refresh(old, {logged(2), logged(3), logged(4)}, kHere);
  EXPECT_EQ(problems(with_log), (std::vector{problem_of(2), problem_of(4), problem_of(1)}));
  EXPECT_EQ(with_log[0].calls, 7u);
  // A rule for everything behind a stale one is no rule for its problem; before it, it is.
  EXPECT_EQ(to_refresh(file(kHead + rule(problem(1), "eng1", "NVIDIA H200", "9.19.0") + kTheRest), {}, kHere)
                .size(),
            1u);
  EXPECT_EQ(to_refresh(file(kHead + kTheRest + rule(problem(1), "eng1", "NVIDIA H200", "9.19.0")), {}, kHere)
                .size(),
            0u);
  // Several problems, or none that can be read from the text
  EXPECT_TRUE(to_refresh(file(kHead + rule("problem = \"x=[*,4,16,16] w=[8,4,3,3]\"\n", "eng1", "NVIDIA H200",
                                           "9.19.0")),
                         {}, kHere)
                  .empty());
}

TEST_F(RefreshedFile, ReplacesOnlyThisGpusRules) {
  const std::string here = rule(problem(1), "eng1", "NVIDIA H200", "9.19.0"),
                    there = rule(problem(2), "eng2", "NVIDIA A100", "9.21.0");
  const std::string untuned = rule(problem(5), "eng5", "NVIDIA H200", "9.19.0");
  const PinText old = file(kHead + there + here + kDenial + untuned + kPolicy + kTheRest);
  const std::vector<FrozenRule> anew{tuned(2, "eng22"), tuned(1, "eng11"), tuned(9, "eng9")};
  const Refreshed is = refreshed(old, anew, {tuned(8, "eng8")}, kHere, false);
  EXPECT_EQ(is.text, kHead + rules_text(anew) + there + kDenial + untuned + rules_text({tuned(8, "eng8")}) +
                         kPolicy + kTheRest);
  EXPECT_EQ((std::vector{is.kept, is.replaced, is.added, is.still_stale}),
            (std::vector<std::size_t>{4, 1, 4, 2}));
  EXPECT_NE(refreshed(old, anew, {}, kHere, true).text.find(here), std::string::npos);
  // The library finds the new ones where it found the old.
  toml(is.text, "new.toml");
  const Settings settings = good();
  for (const int n : {1, 2, 9}) {
    const Rule* rule = match(settings.rules, problem_of(n), kHere);
    ASSERT_TRUE(rule && rule->request());
    EXPECT_EQ(request_text(*rule), n == 1 ? "eng11" : n == 2 ? "eng22" : "eng9");
  }
  EXPECT_EQ(request_text(*match(settings.rules, problem_of(2), {"NVIDIA A100", 92100})), "eng2");
}

TEST_F(RefreshedFile, LeavesWhatIsBoundByMoreThanAnEngine) {
  for (const char* more : {"require = [\"deterministic\"]\n", "workspace_limit = \"1 KiB\"\n", "on_unsupported = \"error\"\n"}) {
    const std::string text = kHead + rule(problem(1), "eng1", "NVIDIA H200", "9.19.0") + more;
    const PinText old = file(text);
    EXPECT_TRUE(to_refresh(old, {logged(1)}, kHere).empty()) << more;
    const Refreshed is = refreshed(old, {}, {}, kHere, false);
    EXPECT_EQ(is.text, text);
    EXPECT_EQ((std::vector{is.kept, is.replaced, is.still_stale, is.bound}), (std::vector<std::size_t>{1, 0, 1, 1}));
    // Nor does a rule for the same problem here take it away.
    const std::string both = text + rule(problem(1), "eng2", "NVIDIA H200", "9.21.0");
    EXPECT_EQ(refreshed(file(both), {}, {}, kHere, false).text, both);
    // Of another GPU it is no obstacle.
    const PinText theirs = file(kHead + rule(problem(1), "eng1", "NVIDIA A100", "9.19.0") + more);
    EXPECT_EQ(problems(to_refresh(theirs, {logged(1)}, kHere)), std::vector{problem_of(1)});
  }
  // What holds for the whole file binds no rule of it.
  EXPECT_EQ(to_refresh(file("version = 1\nworkspace_limit = \"1 KiB\"\n" + rule(problem(1), "eng1", "NVIDIA H200", "9.19.0")), {}, kHere).size(), 1u);
}

TEST_F(RefreshedFile, NewRulesHaveTheOldOnesNames) {
  const PinText old = file(kHead + rule(problem(1), "eng1", "NVIDIA H200", "9.19.0") + "name = \"stem\"\n");
  toml(refreshed(old, {tuned(1, "eng11")}, {}, kHere, false).text, "new.toml");
  const Settings settings = good();
  ASSERT_EQ(settings.rules.size(), 1u);
  EXPECT_EQ(settings.rules[0].name, "stem");
}

TEST_F(RefreshedFile, NewRulesAloneComeBeforeThoseForEverything) {
  const std::string stem = rule(problem(2), "eng2", "NVIDIA H200", "9.21.0");
  EXPECT_EQ(refreshed(file(kHead + stem + kPolicy + kTheRest), {tuned(1, "eng1")}, {}, kHere, false).text,
            kHead + stem + rules_text({tuned(1, "eng1")}) + kPolicy + kTheRest);
}

TEST_F(RefreshedFile, SaysWhatItCantRead) {
  EXPECT_THROW(file("version = 1\n[[rule]]\nalgo = \"WINOGARD\"\n"), BadUse);
  EXPECT_THROW(file("version = 1\nrule = [{ algo = 1 }]\n"), BadUse);
  EXPECT_THROW(read_pin_text(folder_ + "/none.toml"), BadUse);
}

}  // namespace
}  // namespace convpin::cli
