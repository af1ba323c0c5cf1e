// Fails when a file of cudnn-frontend's errata denies something else than cudnn-frontend would block by it, when a part of it
// is dropped in silence, or when a broken file is taken.
#include "tests/unit/environment.hpp"

namespace convpin {
namespace {

class Errata : public Environment {
 protected:
  // One rule, as the text of its fields.
  void rule(const std::string& fields) {
    write("errata.json", "{\"version\": 1, \"rules\": [{" + fields + "}]}");
    set("CONVPIN_ERRATA", "errata.json");
  }
  bool denies(const std::string& tag, const std::string& problem = "x=[1,4,8,8] w=[8,4,3,3]", std::size_t cudnn = 91900) {
    const EngineConfig config = parse_request(Operation::Forward, tag)->engine;
    return denied(good().denials, *parse_problem(problem), {"NVIDIA H200", cudnn}, config) != nullptr;
  }
};

TEST_F(Errata, EngineAndKnobs) {
  rule(R"("rule_id": "slow", "operation": "ConvFwd", "engine": 5, "knob": ["k2=1", "k13=0"])");
  EXPECT_EQ(good().denials.at(0).source, "errata.json: rule 1 (slow)");
  EXPECT_TRUE(denies("eng5_k2=1_k3=7_k13=0"));
  EXPECT_FALSE(denies("eng5_k2=1"));
  EXPECT_FALSE(denies("eng5_k2=10_k13=0")) << "its text is a part of that knob's, but it is another value";
  EXPECT_FALSE(denies("eng50_k2=1_k13=0"));
  EXPECT_FALSE(denies("eng5_k2=1_k13=0", "dgrad x=[1,4,8,8] w=[8,4,3,3]"));
  EXPECT_FALSE(denies("eng5_k2=1_k13=0", "x=[1,4,8,8] w=[8,4,3,3] fused=relu")) << "ConvFwd is the bare graph";
  EXPECT_FALSE(good().idle());
}

TEST_F(Errata, OperationsAreWholeGraphs) {
  rule(R"("operation": "ConvBwdFilter", "engine": 0)");
  EXPECT_TRUE(denies("eng0", "wgrad x=[1,4,8,8] w=[8,4,3,3]"));
  rule(R"("operation": "ConvBwdData", "engine": 0)");
  EXPECT_TRUE(denies("eng0_k2=1", "dgrad x=[1,4,8,8] w=[8,4,3,3]"));
  for (const char* graph : {"ConvFwd_ADD_RELU_FWD", "ConvFwd_Add_ReluFwd", "ConvFwd_ADD_RELU"}) {
    rule(std::string(R"("engine": 0, "operation": ")") + graph + "\"");
    EXPECT_TRUE(denies("eng0", "x=[1,4,8,8] w=[8,4,3,3] fused=add,relu")) << graph;
    EXPECT_FALSE(denies("eng0", "x=[1,4,8,8] w=[8,4,3,3] fused=relu,add")) << graph;
    EXPECT_FALSE(denies("eng0")) << graph;
  }
  rule(R"("engine": 0, "operation": "ConvFwd_GELU_APPROX_TANH_FWD")");
  EXPECT_TRUE(denies("eng0", "x=[1,4,8,8] w=[8,4,3,3] fused=gelu_approx_tanh"));
}

TEST_F(Errata, VersionsEndBeforeTheirEnd) {
  rule(R"("operation": "ConvFwd", "engine": 5, "cudnn_version_start": 8905, "cudnn_version_end": 90500)");
  EXPECT_TRUE(denies("eng5", "x=[1,4,8,8] w=[8,4,3,3]", 8905));
  EXPECT_TRUE(denies("eng5", "x=[1,4,8,8] w=[8,4,3,3]", 90402));
  EXPECT_FALSE(denies("eng5", "x=[1,4,8,8] w=[8,4,3,3]", 90500));
  EXPECT_FALSE(denies("eng5", "x=[1,4,8,8] w=[8,4,3,3]", 8904));
  EXPECT_EQ(good().denials.at(0).match.cudnn.at(0).text, "from 8.9.5 and before 9.5.0");
  rule(R"("operation": "ConvFwd", "engine": 5, "cudnn_version_start": 8000, "cudnn_version_end": -1)");
  EXPECT_TRUE(denies("eng5")) << "no end";
  rule(R"("operation": "ConvFwd", "engine": 5, "cudnn_version_end": 90000)");
  EXPECT_TRUE(denies("eng5", "x=[1,4,8,8] w=[8,4,3,3]", 8100));
  EXPECT_FALSE(denies("eng5"));
}

TEST_F(Errata, Shapes) {
  rule(R"("operation": "ConvFwd", "engine": 5, "shape_format": "NHWC", "input_shape": [-1, 56, 48, 64])");
  EXPECT_TRUE(denies("eng5", "x=[2,64,56,48] w=[8,64,3,3]"));
  EXPECT_FALSE(denies("eng5", "x=[2,64,48,56] w=[8,64,3,3]"));
  EXPECT_FALSE(denies("eng5", "x=[2,56,48,64] w=[8,56,3,3]"));
  rule(R"("operation": "ConvFwd", "engine": 5, "shape_format": "NCHW", "input_shape": [2, -1, -1, 48], "filter_shape": [8, -1, 3, 5])");
  EXPECT_TRUE(denies("eng5", "x=[2,64,56,48] w=[8,64,3,5]"));
  EXPECT_FALSE(denies("eng5", "x=[1,64,56,48] w=[8,64,3,5]"));
  EXPECT_FALSE(denies("eng5", "x=[2,64,56,48] w=[8,64,5,3]"));
  EXPECT_FALSE(denies("eng5", "x=[2,64,8,56,48] w=[8,64,1,3,5]")) << "another number of dimensions";
  rule(R"("operation": "ConvFwd", "engine": 5, "filter_shape": [8, 64, 1, 1])");
  EXPECT_TRUE(denies("eng5", "x=[2,64,56,48] w=[8,64,1,1]"));
}

TEST_F(Errata, WhatIsNotTakenOverIsSaid) {
  rule(R"("rule_id": 7, "operation": "Matmul", "engine": 5)");
  EXPECT_TRUE(good().denials.empty());
  EXPECT_EQ(good().notices.back(), "convpin: errata.json: rule 1 (7): it is not taken over: 'Matmul' is no convolution");
  rule(R"("operation": "ConvFwd_GenStats", "engine": 5)");
  EXPECT_TRUE(good().denials.empty());
  EXPECT_TRUE(has(good().notices.back(), "'ConvFwd_GenStats' holds an operation that is not known"));
  rule(R"("operation": "ConvFwd", "engine": 5, "arch": 90)");
  EXPECT_EQ(good().denials.size(), 1u);
  EXPECT_TRUE(has(good().notices.back(), "its field 'arch' is not known, and not looked at"));
}

TEST_F(Errata, FilesAreNamedInTomlTooAndMayBeSeveral) {
  write("a.json", R"({"version": 1, "rules": [{"operation": "ConvFwd", "engine": 1}, {"operation": "ConvFwd", "engine": 2}]})");
  write("b.json", R"({"rules": [{"operation": "ConvFwd", "engine": 3}]})");
  toml("version = 1\nerrata = \"a.json:b.json\"\n[[deny]]\noperation = \"fwd\"\nengine = 4\n");
  const Settings s = good();
  ASSERT_EQ(s.denials.size(), 4u);
  EXPECT_EQ(s.errata, folder_ + "/a.json:" + folder_ + "/b.json");
  EXPECT_EQ(s.denials[0].source, "pins.toml:3:1");
  EXPECT_EQ(s.denials[3].source, "b.json: rule 1");
  set("CONVPIN_ERRATA", "b.json");
  EXPECT_EQ(good().denials.size(), 2u) << "the variable comes before the file";
}

TEST_F(Errata, BrokenFilesAreErrors) {
  struct Case {
    const char *text, *message;
  };
  for (const Case& c : {Case{"", "errata: 'errata.json': "}, Case{"{\"rules\": [", "parse error at line 1"},
                        Case{"[]", "'errata.json' holds no errata"}, Case{"{\"rules\": 1}", "'errata.json' holds no errata"},
                        Case{"{\"version\": 2, \"rules\": []}", "'errata.json' has a version that is not known"},
                        Case{"{\"rules\": [1]}", "errata.json: rule 1: a rule must be an object"}}) {
    write("errata.json", c.text);
    set("CONVPIN_ERRATA", "errata.json");
    EXPECT_TRUE(has(error(), c.message)) << error();
  }
  for (const Case& c :
       {Case{R"("operation": "ConvFwd")", "'engine' must be a number"}, Case{R"("operation": "ConvFwd", "engine": "5")", "'engine' must"},
        Case{R"("operation": "ConvFwd", "engine": -1)", "'engine' must"}, Case{R"("engine": 5)", "'operation' must be a string"},
        Case{R"("operation": 5, "engine": 5)", "'operation' must be a string"},
        Case{R"("operation": "ConvFwd", "engine": 5, "knob": "k2=1")", "'knob' must"},
        Case{R"("operation": "ConvFwd", "engine": 5, "knob": ["k2"])", "'knob' must"},
        Case{R"("operation": "ConvFwd", "engine": 5, "knob": [2])", "'knob' must"},
        Case{R"("operation": "ConvFwd", "engine": 5, "cudnn_version_start": "8")", "'cudnn_version_start' and"},
        Case{R"("operation": "ConvFwd", "engine": 5, "cudnn_version_start": -1)", "'cudnn_version_start' and"},
        Case{R"("operation": "ConvFwd", "engine": 5, "input_shape": [1, 2, 3, 4])", "'shape_format' must be a string"},
        Case{R"("operation": "ConvFwd", "engine": 5, "input_shape": [1, 2, 3, 4], "shape_format": "NCWH")", "must be NCHW or NHWC"},
        Case{R"("operation": "ConvFwd", "engine": 5, "filter_shape": [1, 2, 3])", "'filter_shape' must be a list of four"},
        Case{R"("operation": "ConvFwd", "engine": 5, "filter_shape": [1, 2, 3, -2])", "'filter_shape' must be a list of four"}}) {
    rule(c.text);
    EXPECT_TRUE(has(error(), c.message)) << c.text << "\n" << error();
    EXPECT_TRUE(has(error(), "errata.json: rule 1: "));
  }
  set("CONVPIN_ERRATA", "none.json");
  EXPECT_TRUE(has(error(), "errata: 'none.json' can't be read (as " + folder_ + "/none.json)"));
}

// A parser that recurses would end the process.
TEST_F(Errata, DeepNestingIsAnError) {
  write("errata.json", std::string(1000000, '['));
  set("CONVPIN_ERRATA", "errata.json");
  error();
  write("errata.json", std::string(1000000, '[') + std::string(1000000, ']'));
  EXPECT_TRUE(has(error(), "holds no errata"));
  rule("\"operation\": \"ConvFwd\", \"engine\": 5, \"rule_id\": " + std::string(100000, '[') + std::string(100000, ']'));
  load();
}

}  // namespace
}  // namespace convpin
