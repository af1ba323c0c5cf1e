// Fails when a denial forbids what it does not name, or lets through what it does, when a key of [[deny]] is read wrongly,
// or an error does not show its place.
#include "tests/unit/environment.hpp"

namespace convpin {
namespace {

using Deny = Environment;
const Place kPlace{"NVIDIA H200", 90300};
const std::string kProblem = "x=[1,4,8,8] w=[8,4,3,3] half";

EngineConfig config(const std::string& tag) { return parse_request(Operation::Forward, tag)->engine; }

bool denies(const Settings& s, const std::string& tag, const std::string& problem = kProblem, const Place& place = kPlace) {
  return denied(s.denials, *parse_problem(problem), place, config(tag)) != nullptr;
}
bool denies(const Settings& s, int algorithm, const std::string& problem = kProblem, const Place& place = kPlace) {
  return denied_algorithm(s.denials, *parse_problem(problem), place, algorithm) != nullptr;
}

TEST_F(Deny, AnEngineWithAnyKnobs) {
  toml(
      "version = 1\n[[deny]]\noperation = \"forward\"\nengine = 5\ncudnn = \"9.1 - 9.4\"\nmatch = { dtype = \"half\" }\n"
      "reason = \"wrong results\"\n");
  const Settings s = good();
  ASSERT_EQ(s.denials.size(), 1u);
  EXPECT_EQ(s.denials[0].source, "pins.toml:2:1");
  EXPECT_EQ(s.denials[0].reason, "wrong results");
  EXPECT_EQ(denied_text(s.denials[0]), "eng5");
  EXPECT_FALSE(s.idle());
  EXPECT_EQ(denied(s.denials, *parse_problem(kProblem), kPlace, config("eng5_k2=1")), &s.denials[0]);
  EXPECT_TRUE(denies(s, "eng5"));
  EXPECT_TRUE(denies(s, "eng5", kProblem + " fused=relu")) << "both, unless match says which";
  EXPECT_FALSE(denies(s, "eng50"));
  EXPECT_FALSE(denies(s, "eng5", "backward_data " + kProblem));
  EXPECT_FALSE(denies(s, "eng5", "x=[1,4,8,8] w=[8,4,3,3]"));
  EXPECT_FALSE(denies(s, "eng5", kProblem, {"NVIDIA H200", 90500}));
  EXPECT_FALSE(denies(s, 5)) << "an engine is no algorithm of the legacy API";
}

TEST_F(Deny, ATagWithAllItsKnobs) {
  toml("version = 1\n[[deny]]\noperation = \"wgrad\"\ntag = \"eng62_k2=5_k13=0\"\nproblem = \"nchw\"\n");
  const Settings s = good();
  const std::string wgrad = "wgrad " + kProblem;
  EXPECT_EQ(denied_text(s.denials.at(0)), "eng62_k2=5_k13=0");
  EXPECT_TRUE(denies(s, "eng62_k13=0_k2=5", wgrad));
  EXPECT_TRUE(denies(s, "eng62_k2=5_k6=1_k13=0", wgrad)) << "further knobs may be anything";
  EXPECT_FALSE(denies(s, "eng62_k2=5", wgrad));
  EXPECT_FALSE(denies(s, "eng62_k2=50_k13=0", wgrad));
  EXPECT_FALSE(denies(s, "eng62", wgrad));
  EXPECT_FALSE(denies(s, "eng61_k2=5_k13=0", wgrad));
  EXPECT_FALSE(denies(s, "eng62_k2=5_k13=0", wgrad + " nhwc"));
}

TEST_F(Deny, AnAlgorithmAndItsEnginesInABareGraph) {
  toml("version = 1\n[[deny]]\noperation = \"any\"\nalgo = \"FFT\"\nmatch.device = [\"*H100*\", \"*H200*\"]\n");
  const Settings s = good();
  ASSERT_EQ(s.denials.size(), 3u);
  EXPECT_EQ(denied_text(s.denials[0]), "4 (FFT)");
  EXPECT_EQ(denied_text(s.denials[2]), "2 (FFT)");
  EXPECT_TRUE(denies(s, 4));
  EXPECT_FALSE(denies(s, 2));
  EXPECT_TRUE(denies(s, 2, "dgrad " + kProblem));
  EXPECT_TRUE(denies(s, "eng3"));
  EXPECT_FALSE(denies(s, "eng3", kProblem + " fused=relu")) << "there engine 3 is another";
  EXPECT_FALSE(denies(s, "eng4"));
  EXPECT_TRUE(denies(s, "eng4", "dgrad " + kProblem));
  EXPECT_FALSE(denies(s, 4, kProblem, {"NVIDIA A100", 90300}));
}

TEST(DenialsText, EachDenialOnceAndTheFirstOfMany) {
  EXPECT_EQ(denials_text({}), "");
  EXPECT_EQ(denials_text({{"eng1", nullptr}}), "");
  std::vector<Denial> by(5);
  for (std::size_t i = 0; i < by.size(); ++i) by[i].source = "pins.toml:" + std::to_string(i + 2) + ":1";
  by[1].reason = "wrong results";
  EXPECT_EQ(denials_text({{"eng1", nullptr}, {"eng5", &by[1]}}), "eng5 is denied by pins.toml:3:1 (wrong results)");
  EXPECT_EQ(denials_text({{"eng5", &by[0]}, {"eng2", &by[1]}, {"eng6", &by[0]}, {"eng7", &by[0]}}),
            "eng5 and 2 more are denied by pins.toml:2:1; eng2 is denied by pins.toml:3:1 (wrong results)");
  std::vector<Offer> offers;
  for (const Denial& denial : by) offers.push_back({"eng1", &denial});
  const std::string text = denials_text(offers);
  EXPECT_TRUE(text.ends_with("; eng1 is denied by pins.toml:5:1; by 5 denials in all")) << text;
}

TEST_F(Deny, IsInForceOnlyWithoutErrors) {
  toml("version = 1\n[[deny]]\noperation = \"fwd\"\nengine = 5\n[[rule]]\nalgo = \"foo\"\n");
  EXPECT_TRUE(load().denials.empty());
}

class WrongDenial : public Environment, public testing::WithParamInterface<Wrong> {};

TEST_P(WrongDenial, IsAnErrorThatShowsItsPlace) {
  expect_wrong(GetParam());
  EXPECT_TRUE(load().denials.empty());
}

#define DENY "version = 1\n[[deny]]\noperation = \"fwd\"\n"
INSTANTIATE_TEST_SUITE_P(
    All, WrongDenial,
    testing::Values(
        Wrong{"version = 1\ndeny = 5\n", "a denial begins with [[deny]]", " 2 | deny"},
        Wrong{"version = 1\ndeny = [5]\n", "a denial must be a table, not integer", " 2 | deny"},
        Wrong{"version = 1\n[[deny]]\nengine = 5\n", "this denial has no operation", " 2 | [[deny]]"},
        Wrong{DENY, "this denial has no engine, tag or algo: add one of them, such as engine = 5", " 2 | [[deny]]"},
        Wrong{DENY "engine = 5\nalgo = 1\n", "this denial has engine and algo: only one", " 5 | algo"},
        Wrong{DENY "engine = \"eng5\"\n", "'engine' must be the number of an engine", " 4 | engine"},
        Wrong{DENY "engine = -1\n", "'engine' must be the number of an engine", " 4 | engine"},
        Wrong{DENY "tag = 5\n", "'tag' must be the tag of an engine", " 4 | tag"},
        Wrong{DENY "tag = \"FFT\"\n", "'tag' must be the tag of an engine", " 4 | tag"},
        Wrong{DENY "tag = \"-1\"\n", "'tag' must be the tag of an engine", " 4 | tag"},
        Wrong{DENY "tag = \"eng5_k2\"\n", "'eng5_k2' is not a forward algorithm", " 4 | tag"},
        Wrong{DENY "algo = \"eng5\"\n", "'algo' must be the number or the name of an algorithm", " 4 | algo"},
        Wrong{DENY "algo = -1\n", "'algo' must be the number or the name of an algorithm", " 4 | algo"},
        Wrong{DENY "algo = \"FFFT\"\n", "'FFFT' is not a forward algorithm", " 4 | algo"},
        Wrong{"version = 1\n[[deny]]\noperation = \"any\"\nengine = 5\n", "'eng5' is another engine in each operation", " 4 | engine"},
        Wrong{DENY "engine = 5\npolicy = \"fastest\"\n",
              "unknown key 'policy': allowed are algo, cudnn, engine, match, operation, problem, reason, tag", " 5 | policy"},
        Wrong{DENY "engine = 5\ncudnn = \"x\"\n", "'x' is not a version of cuDNN", " 5 | cudnn"},
        Wrong{DENY "engine = 5\ncudnn = \"9\"\nmatch = { cudnn = \"9\" }\n", "cudnn stands here and in 'match'", " 5 | cudnn"},
        Wrong{DENY "engine = 5\nreason = 5\n", "'reason' must be a string", " 5 | reason"},
        Wrong{DENY "engine = 5\nproblem = \"dgrad\"\n", "the problem's operation is not the denial's", " 5 | problem"}));

}  // namespace
}  // namespace convpin
