// Fails when the text form changes, when a problem does not survive being written and read, when a layout,
// an output dimension or a hash is wrong, or when an impossible problem is taken.
#include "shim/model/problem.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace convpin {
namespace {

constexpr const char* kUsual =
    "forward x=[32,64,56,56] w=[64,64,3,3] float nchw pad=1,1 stride=1,1 dilation=1,1 groups=1";

Problem problem(std::string_view text) {
  const auto parsed = parse_problem(text);
  EXPECT_TRUE(parsed) << parsed.error;
  return parsed.value.value_or(Problem{});
}

std::string error_of(std::string_view text) {
  const auto parsed = parse_problem(text);
  EXPECT_FALSE(parsed) << text << " was taken as " << to_text(*parsed.value);
  return parsed.error;
}

TEST(ProblemText, ReadsEveryNumberIntoItsPlace) {
  const Problem p =
      problem("forward x=[2,6,9,11] w=[8,3,3,5] half nhwc pad=1,2 stride=2,3 dilation=1,2 groups=2");
  EXPECT_EQ(p.x.type, DataType::Half);
  EXPECT_EQ(p.x.rank, 4);
  EXPECT_EQ(p.x.dims, (std::array<std::int64_t, 8>{2, 6, 9, 11}));
  EXPECT_EQ(p.x.strides, (std::array<std::int64_t, 8>{6 * 9 * 11, 1, 6 * 11, 6}));
  EXPECT_EQ(p.w.dims, (std::array<std::int64_t, 8>{8, 3, 3, 5}));
  EXPECT_EQ(p.w.strides, (std::array<std::int64_t, 8>{45, 1, 15, 3}));
  EXPECT_EQ(p.pad, (std::array<std::int64_t, 8>{1, 2}));
  EXPECT_EQ(p.post_pad, p.pad);
  EXPECT_EQ(p.stride, (std::array<std::int64_t, 8>{2, 3}));
  EXPECT_EQ(p.dilation, (std::array<std::int64_t, 8>{1, 2}));
  EXPECT_EQ(p.groups, 2);
  EXPECT_EQ(p.compute, DataType::Float);
  // (9 + 2 - 3) / 2 + 1 and (11 + 4 - 9) / 3 + 1
  EXPECT_EQ(p.y.dims, (std::array<std::int64_t, 8>{2, 8, 5, 3}));
  EXPECT_EQ(p.y.strides, (std::array<std::int64_t, 8>{120, 1, 24, 8}));
}

class CanonicalText : public testing::TestWithParam<const char*> {};

TEST_P(CanonicalText, IsWrittenAsItIsRead) {
  const Problem p = problem(GetParam());
  EXPECT_EQ(to_text(p), GetParam());
  EXPECT_EQ(problem(to_text(p)), p);
  EXPECT_EQ(canonical(p), p);
}

INSTANTIATE_TEST_SUITE_P(
    All, CanonicalText,
    testing::Values(kUsual, "forward x=[1,3,8,8] w=[8,3,3,3] bfloat16 nhwc pad=0,0 stride=2,1 dilation=1,1 groups=1",
                    "forward x=[1,4,8,8,8] w=[8,1,3,3,3] half ndhwc pad=0,0,1 stride=1,1,1 dilation=1,1,1 groups=4",
                    "forward x=[1,4,8] w=[8,4,3] double ncw pad=0 stride=1 dilation=1 groups=1",
                    "forward x=[1,4,8,8] w=[8,4,3,3] int8 nhwc pad=0,0 stride=1,1 dilation=1,1 groups=1 ytype=float",
                    "forward x=[1,4,8,8] w=[8,4,3,3] half nchw pad=0,0 stride=1,1 dilation=1,1 groups=1 wtype=float "
                    "compute=half",
                    "forward x=[1,4,8,8] w=[8,4,3,3] float nchw pad=0,0 stride=1,1 dilation=1,1 groups=1 wlayout=nhwc "
                    "ylayout=nhwc",
                    "forward x=[2,4,8,8] w=[8,4,3,3] float strided pad=0,0 stride=1,1 dilation=1,1 groups=1 wlayout=nchw "
                    "ylayout=nchw xstride=[512,64,8,1]",
                    "forward x=[2,4,8,8] w=[8,4,3,3] float nchw pad=0,0 stride=1,1 dilation=1,1 groups=1 "
                    "wstride=[40,10,3,1] "
                    "ystride=[600,40,6,1]",
                    "forward x=[2,4,8,8] w=[8,4,3,3] float nchw pad=0,1 stride=1,1 dilation=1,1 groups=1 postpad=1,0",
                    "forward x=[2,4,8,8] w=[8,4,3,3] float nchw pad=0,0 stride=1,1 dilation=1,1 groups=1 "
                    "mode=convolution "
                    "fused=add,add,relu",
                    "forward x=[2,4,8,8] w=[8,4,3,3] half nhwc pad=0,0 stride=1,1 dilation=1,1 groups=1 ytype=float otype=half "
                    "fused=add,add,relu",
                    "backward_filter x=[2,4,8,8] w=[8,4,3,3] bfloat16 nhwc pad=0,0 stride=1,1 dilation=1,1 groups=1 wtype=float "
                    "otype=bfloat16 compute=half fused=pre.mul,relu",
                    "forward x=[2,4,8,8] w=[8,4,3,3] type17 nchw pad=0,0 stride=1,1 dilation=1,1 groups=1 "
                    "fused=pointwise37",
                    "forward x=[2,4,8,8] w=[8,4,3,3] fp8_e4m3 nhwc pad=0,0 stride=1,1 dilation=1,1 groups=1"));

TEST(ProblemText, TakesPeoplesSpellings) {
  const Problem usual = problem(kUsual);
  for (const char* text :
       {"x=[32,64,56,56] w=[64,64,3,3] pad=1", "pad=[1,1] w=[64, 64, 3, 3]  x=[32, 64, 56, 56]",
        "Fprop FLOAT32 channels_first x=32,64,56,56 w=64,64,3,3 pad=1,1",
        "operation=forward type=single layout=nchw x=[32,64,56,56] w=[64,64,3,3] pad=1,1 groups=1"})
    EXPECT_EQ(problem(text), usual) << text;
  EXPECT_EQ(problem("fwd contiguous x=[32,64,56,56] w=[64,64,3,3] pad=1 postpad=1 fused=none "
                    "mode=cross-correlation type=float wtype=fp32"),
            usual);
  EXPECT_EQ(problem("x=[1,8,4,4] w=[8,8,1,1] bf16 channels_last").x.type, DataType::BFloat16);
}

TEST(ProblemText, RefusesWhatIsNoProblem) {
  EXPECT_NE(error_of("float nchw").find("x=[..] and w=[..] are needed, and x is missing"), std::string::npos);
  EXPECT_NE(error_of("x=[1,1,1,1]").find("w is missing"), std::string::npos);
  EXPECT_NE(error_of("x=[*,1,1,1] w=[1,1,1,1]").find("'*' is for rules"), std::string::npos);
  EXPECT_NE(error_of("x=[1,4,8,8] w=[8,3,3,3]").find("the channels don't agree"), std::string::npos);
  EXPECT_NE(error_of("x=[1,4,8,8] w=[7,2,3,3] groups=2").find("the channels don't agree"), std::string::npos);
  EXPECT_NE(error_of("x=[1,4,2,2] w=[8,4,3,3]").find("larger than the padded input"), std::string::npos);
  EXPECT_NE(error_of("x=[1,4,8,8] w=[8,4,3,3] stride=0").find("stride must be at least 1"),
            std::string::npos);
  EXPECT_NE(error_of("x=[1,4,8,8] w=[8,4,3,3] pad=1,1,1").find("pad needs 2 numbers"), std::string::npos);
  EXPECT_NE(error_of("x=[1,4,8,8] w=[8,4,3]").find("same number of dimensions"), std::string::npos);
  EXPECT_NE(error_of("x=[0,4,8,8] w=[8,4,3,3]").find("at least 1"), std::string::npos);
  EXPECT_NE(error_of("x=[2147483647,2147483647,8,8] w=[8,2147483647,3,3]").find("below 2^63"),
            std::string::npos);
  EXPECT_NE(error_of("x=[99999999999,4,8,8] w=[8,4,3,3]").find("is not a number from 0 to"),
            std::string::npos);
  EXPECT_NE(error_of("x=[1,4,8,8] w=[8,4,3,3] strided").find("xstride=[..]"), std::string::npos);
  EXPECT_NE(error_of("x=[1,4,8,8] w=[8,4,3,3] xstride=[1,2]").find("xstride needs 4"), std::string::npos);
  EXPECT_NE(error_of("x=[1,4,8,8] w=[8,4,3,3] float half").find("type is given twice"), std::string::npos);
  EXPECT_NE(error_of("x=[1,4,8,8] w=[8,4,3,3] x=[1]").find("x is given twice"), std::string::npos);
  EXPECT_NE(error_of("w=[8,4,3,3] x=[1,4,8,8").find("a bracket is missing"), std::string::npos);
  EXPECT_NE(error_of("x=[1,4,8,-8] w=[8,4,3,3]").find("'-8'"), std::string::npos);
  EXPECT_NE(error_of("x=[1,4,8,] w=[8,4,3,3]").find("''"), std::string::npos);
  EXPECT_NE(error_of("x=[1,1,1,1,1,1,1,1,1] w=[1]").find("at most 8 numbers"), std::string::npos);
  EXPECT_NE(error_of("x=[1,4,8,8] w=[8,4,3,3] groups=0").find("'groups=0'"), std::string::npos);
  EXPECT_NE(error_of("x=[1,4,8,8] w=[8,4,3,3] fused=sing").find("not a pointwise operation"),
            std::string::npos);
  EXPECT_NE(error_of("x=[1,4,8,8] w=[8,4,3,3] fused=add,add,add,add,add,add,add,add,add").find("at most 8"),
            std::string::npos);
  EXPECT_NE(error_of("x=[1,4,8,8] w=[8,4,3,3] otype=soft fused=relu").find("'otype=soft'"), std::string::npos);
  for (const char* fused : {"", " fused=none", " fused=pre.relu", " fused=gen_stats"})
    EXPECT_NE(error_of(std::string("x=[1,4,8,8] w=[8,4,3,3] otype=half") + fused).find("there is none"), std::string::npos) << fused;
  EXPECT_NE(error_of("wgrad x=[1,4,8,8] w=[8,4,3,3] otype=half").find("output has wtype"), std::string::npos);
  EXPECT_NE(error_of("x=[1,4,8,8] w=[8,4,3,3] mode=both").find("cross_correlation"), std::string::npos);
  const std::string unknown = error_of("x=[1,4,8,8] w=[8,4,3,3] nice");
  EXPECT_NE(unknown.find("'nice'"), std::string::npos);
  EXPECT_NE(unknown.find("channels_last"), std::string::npos);
}

// A pointwise operation's result may have another type than what the convolution puts between the two.
TEST(ProblemText, SaysTheResultsTypeWhereItIsNotTheConvolutions) {
  const std::string shape = "x=[2,4,8,8] w=[8,4,3,3] half nhwc ";
  const Problem same = problem(shape + "fused=relu"), other = problem(shape + "ytype=float otype=half fused=relu");
  EXPECT_EQ(problem(shape + "otype=half fused=relu"), same);
  EXPECT_EQ(problem(shape + "otype=half"), problem(shape)) << "of the convolution itself";
  EXPECT_EQ(to_text(same).find("otype"), std::string::npos);
  EXPECT_NE(problem(shape + "ytype=float fused=relu"), other);
  EXPECT_EQ(result_type(same), DataType::Half);
  EXPECT_EQ(other.y.type, DataType::Float);
  EXPECT_EQ(result_type(other), DataType::Half);
  EXPECT_EQ(in_memory(other).y.type, DataType::Half);
  EXPECT_EQ(in_memory(other).y.strides, other.y.strides);
  const Problem gradient = problem("dgrad " + shape + "otype=float fused=relu");
  EXPECT_EQ(in_memory(gradient).x.type, DataType::Float);
  EXPECT_EQ(in_memory(gradient).y.type, DataType::Half);
  Problem needless = same;
  needless.otype = DataType::Half;
  EXPECT_EQ(to_text(needless), to_text(same));
  EXPECT_EQ(canonical(needless), same);
}

Tensor tensor(std::initializer_list<std::int64_t> dims, std::initializer_list<std::int64_t> strides) {
  Tensor t;
  t.rank = static_cast<std::int32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), t.dims.begin());
  std::copy(strides.begin(), strides.end(), t.strides.begin());
  return t;
}

TEST(Layouts, AreSeenThroughStrides) {
  EXPECT_EQ(layout_of(tensor({2, 3, 4, 5}, {60, 20, 5, 1})), Layout::ChannelsFirst);
  EXPECT_EQ(layout_of(tensor({2, 3, 4, 5}, {60, 1, 15, 3})), Layout::ChannelsLast);
  EXPECT_EQ(layout_of(tensor({2, 3, 4, 5}, {120, 20, 5, 1})), Layout::Strided);
  EXPECT_EQ(layout_of(tensor({1, 3, 4, 5}, {999, 1, 15, 3})), Layout::ChannelsLast)
      << "a batch of one has no stride";
  EXPECT_EQ(layout_of(tensor({8, 64, 1, 1}, {64, 1, 64, 64})), Layout::ChannelsFirst) << "both fit: nchw";
  EXPECT_EQ(layout_of(tensor({2, 3, 4, 5, 6}, {360, 1, 90, 18, 3})), Layout::ChannelsLast);
}

TEST(Layouts, OpenOnesFollowTheOthers) {
  Problem p = problem("x=[2,64,8,8] w=[16,64,1,1] nhwc");
  set_packed_strides(p.w, Layout::ChannelsFirst);  // the same memory
  EXPECT_NE(to_text(p).find(" nhwc "), std::string::npos);
  EXPECT_EQ(to_text(p).find("wlayout"), std::string::npos);
  p = problem("x=[2,64,1,1] w=[16,64,1,1]");  // all open
  EXPECT_NE(to_text(p).find(" nchw "), std::string::npos);
  p = problem("x=[2,64,1,1] w=[16,64,3,3] pad=2 nhwc");  // x open, w and y not
  set_packed_strides(p.x, Layout::ChannelsFirst);
  EXPECT_NE(to_text(p).find(" nhwc "), std::string::npos);
}

TEST(Layouts, CanonicalProblemsAreEqualWhereTheirTextsAre) {
  const Problem p = problem("x=[1,64,8,8] w=[16,64,1,1] nhwc");
  Problem other = p;
  other.x.strides[0] = 7;
  set_packed_strides(other.w, Layout::ChannelsFirst);
  EXPECT_EQ(to_text(other), to_text(p));
  EXPECT_FALSE(other == p);
  EXPECT_EQ(canonical(other), p);
  EXPECT_EQ(problem(to_text(other)), canonical(other));
}

TEST(ProblemHash, TellsEveryFieldApart) {
  const Problem p = problem(kUsual);
  std::set<std::uint64_t> seen = {hash(p)};
  const auto differs = [&](auto change) {
    Problem other = p;
    change(other);
    return seen.insert(hash(other)).second;
  };
  EXPECT_EQ(hash(p), hash(problem(kUsual)));
  EXPECT_TRUE(differs([](Problem& o) { o.x.dims[0] = 33; }));
  EXPECT_TRUE(differs([](Problem& o) { o.x.strides[0] = 33; }));
  EXPECT_TRUE(differs([](Problem& o) { o.x.type = DataType::Half; }));
  EXPECT_TRUE(differs([](Problem& o) { o.w.type = DataType::Half; }));
  EXPECT_TRUE(differs([](Problem& o) { o.y.strides[3] = 2; }));
  EXPECT_TRUE(differs([](Problem& o) { o.pad[1] = 0; }));
  EXPECT_TRUE(differs([](Problem& o) { o.post_pad[1] = 0; }));
  EXPECT_TRUE(differs([](Problem& o) {
    std::swap(o.stride, o.pad);
    o.stride[0] = 2;
  }));
  EXPECT_TRUE(differs([](Problem& o) { o.dilation[0] = 2; }));
  EXPECT_TRUE(differs([](Problem& o) { o.groups = 2; }));
  EXPECT_TRUE(differs([](Problem& o) { o.flipped = 1; }));
  EXPECT_TRUE(differs([](Problem& o) { o.fused_count = 1; }));
  EXPECT_TRUE(differs([](Problem& o) { o.compute = DataType::Half; }));
  EXPECT_TRUE(differs([](Problem& o) { o.otype = DataType::Half; }));
}

// What a caller puts into a descriptor may be anything: no crash, no endless loop, no overflow (under UBSan).
TEST(ProblemText, WritesWhateverADescriptorHeld) {
  Problem p = problem(kUsual);
  for (Tensor* t : {&p.x, &p.w, &p.y}) {
    t->rank = 1000;
    t->dims.fill(std::numeric_limits<std::int64_t>::max());
    t->strides.fill(std::numeric_limits<std::int64_t>::min());
  }
  p.pad.fill(std::numeric_limits<std::int64_t>::max());
  p.post_pad = p.dilation = p.pad;
  p.stride.fill(-1);
  p.fused_count = 1 << 30;
  EXPECT_NE(to_text(p).find("9223372036854775807"), std::string::npos);
  EXPECT_EQ(output_of(p, Layout::ChannelsFirst, DataType::Float).dims[2], 0);
  p.x.rank = p.w.rank = p.y.rank = -5;
  EXPECT_NE(to_text(p).find("x=[]"), std::string::npos);
}

}  // namespace
}  // namespace convpin
