// Fails when a rule's problem text matches what it should not, misses what it should match, or takes
// nonsense.
#include <gtest/gtest.h>

#include "shim/model/problem.hpp"

namespace convpin {
namespace {

constexpr const char* kProblem =
    "forward x=[32,64,56,56] w=[64,32,3,3] half nhwc pad=1,1 stride=2,2 dilation=1,1 groups=2 fused=add,relu";

bool matches(std::string_view pattern, std::string_view problem = kProblem) {
  const auto parsed = parse_problem_pattern(pattern);
  const auto is = parse_problem(problem);
  EXPECT_TRUE(parsed) << parsed.error;
  EXPECT_TRUE(is) << is.error;
  return parsed && is && parsed->matches(*is);
}

TEST(Pattern, MatchesWhateverItLeavesOpen) {
  for (const char* pattern : {"",
                              "*",
                              "forward",
                              "half",
                              "nhwc",
                              "x=*",
                              "x=[*,64,56,56]",
                              "x=[*,*,*,*] w=[*,32,*,*]",
                              "type=*",
                              "pad=1",
                              "pad=*,1",
                              "pad=*",
                              "stride=2",
                              "groups=2",
                              "groups=*",
                              "fused=add,relu",
                              "fused=*",
                              "postpad=1",
                              "dilation=1,1",
                              "channels_last",
                              "ndhwc",
                              "wtype=float16",
                              "ytype=half",
                              "otype=half",
                              "compute=float",
                              "wlayout=nhwc",
                              "ylayout=channels_last",
                              "mode=cross_correlation",
                              "forward x=[*,64,56,56] w=[64,32,3,3] fp16 nhwc"})
    EXPECT_TRUE(matches(pattern)) << pattern;
}

TEST(Pattern, IsRefusedByEachPartAlone) {
  for (const char* pattern : {"float",
                              "nchw",
                              "x=[31,*,*,*]",
                              "x=[*,*,*,57]",
                              "x=[*,64,56]",
                              "x=[32,64,56,56,1]",
                              "w=[64,64,3,3]",
                              "pad=0",
                              "pad=1,0",
                              "pad=1,1,1",
                              "postpad=0",
                              "stride=1",
                              "dilation=2",
                              "groups=1",
                              "fused=none",
                              "fused=relu",
                              "fused=relu,add",
                              "wtype=float",
                              "ytype=float",
                              "otype=float",
                              "compute=half",
                              "wlayout=nchw",
                              "ylayout=nchw",
                              "mode=convolution",
                              "xstride=[1,1,1,1]",
                              "forward half nhwc groups=2 x=[33,*,*,*]"})
    EXPECT_FALSE(matches(pattern)) << pattern;
}

TEST(Pattern, TheTextOfAProblemMatchesIt) {
  for (const char* text : {kProblem, "x=[1,4,8,8,8] w=[8,1,3,3,3] ndhwc groups=4 pad=0,1,2", "x=[2,64,1,1] w=[16,64,3,3] pad=2 nhwc",
                           "x=[2,4,8,8] w=[8,4,3,3] xstride=[512,64,8,1] ystride=[600,40,6,1]", "x=[2,4,8,8] w=[8,4,3,3] mode=convolution",
                           "x=[2,4,8,8] w=[8,4,3,3] half ytype=float otype=half fused=add,relu",
                           "x=[2,4,8,8] w=[8,4,3,3] int8 ytype=float wlayout=nhwc pad=0,1 postpad=1,0"}) {
    const auto problem = parse_problem(text);
    ASSERT_TRUE(problem) << problem.error;
    EXPECT_TRUE(matches(to_text(*problem), text)) << to_text(*problem);
  }
}

TEST(Pattern, NumbersAreOneForAllOrOneForEach) {
  const char* volume = "x=[1,4,8,8,8] w=[8,4,3,3,3] pad=1,0,0";
  EXPECT_TRUE(matches("pad=1,0,0", volume));
  EXPECT_FALSE(matches("pad=1,0", volume));
  EXPECT_FALSE(matches("pad=1", volume));
  EXPECT_TRUE(matches("stride=1", volume));
}

// A rule without the word, as all were before there was one, is for any.
TEST(Pattern, TheResultsTypeIsOpenLikeTheOthers) {
  const char* fused = "x=[2,4,8,8] w=[8,4,3,3] half ytype=float otype=half fused=add,relu";
  const char* all_float = "x=[2,4,8,8] w=[8,4,3,3] half ytype=float fused=add,relu";
  EXPECT_TRUE(matches("half ytype=float fused=add,relu", fused));
  EXPECT_TRUE(matches("half ytype=float fused=add,relu", all_float));
  EXPECT_TRUE(matches("otype=*", fused));
  EXPECT_TRUE(matches("otype=fp16", fused));
  EXPECT_FALSE(matches("otype=fp16", all_float));
  EXPECT_FALSE(matches("otype=float", fused));
  EXPECT_TRUE(matches("otype=float", "x=[2,4,8,8] w=[8,4,3,3] half ytype=float")) << "nothing is fused: the convolution's";
}

// A batch of one and a 1x1 filter fit both layouts: a rule means the layout that the log prints.
TEST(Pattern, LayoutsAreThosePrinted) {
  const char* open = "x=[1,64,8,8] w=[16,64,1,1] nhwc";
  EXPECT_TRUE(matches("nhwc wlayout=nhwc", open));
  EXPECT_FALSE(matches("nchw", open));
  EXPECT_FALSE(matches("wlayout=nchw", open));
}

TEST(Pattern, StridesMayHaveWildcards) {
  const char* strided = "x=[2,4,8,8] w=[8,4,3,3] xstride=[512,64,8,1]";
  EXPECT_TRUE(matches("strided xstride=[512,*,*,1]", strided));
  EXPECT_FALSE(matches("xstride=[511,*,*,1]", strided));
  EXPECT_FALSE(matches("xstride=[512,*,*,1]", "x=[2,4,8,8] w=[8,4,3,3]"));
}

TEST(Pattern, RefusesNonsense) {
  for (const char* text :
       {"backward", "operation=grad", "x=[1,,2]", "x=[**]", "x=[1.5]", "pad=one", "pads=1",
        "groups=two", "groups=0", "half half", "operation=forward fwd", "x=[1", "layout=nhcw", "="}) {
    const auto parsed = parse_problem_pattern(text);
    EXPECT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error.find('\''), std::string::npos) << "nothing is quoted: " << parsed.error;
  }
}

}  // namespace
}  // namespace convpin
