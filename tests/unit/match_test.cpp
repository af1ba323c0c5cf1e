// Fails when a match takes a problem, GPU or cuDNN that it should not, or misses one, or when nonsense is taken for a
// range or a version.
#include "shim/model/match.hpp"

#include <gtest/gtest.h>

namespace convpin {
namespace {

const Place kH200{"NVIDIA H200", 91900};

Range range(std::string_view text) {
  const auto parsed = parse_range(text);
  EXPECT_TRUE(parsed) << parsed.error;
  return parsed.value.value_or(Range{0, -1});
}
Ranges ranges(std::initializer_list<const char*> texts) {
  Ranges all;
  for (const char* text : texts) all.push_back(range(text));
  return all;
}
bool matches(const Match& match, std::string_view problem, const Place& place = kH200) {
  const auto parsed = parse_problem(problem);
  EXPECT_TRUE(parsed) << parsed.error;
  return parsed && match.matches(*parsed, place);
}

TEST(Ranges, AreRead) {
  EXPECT_EQ(range("3"), (Range{3, 3}));
  EXPECT_EQ(range("0"), (Range{0, 0}));
  EXPECT_EQ(range("128..512"), (Range{128, 512}));
  EXPECT_EQ(range(" 128 .. 512 "), (Range{128, 512}));
  EXPECT_EQ(range("..512"), (Range{0, 512}));
  EXPECT_EQ(range("128.."), (Range{128, Range{}.high}));
  EXPECT_EQ(range("-1"), Range{});
  EXPECT_EQ(range("*"), Range{});
  for (const char* text : {"", "..", "-2", "-1..3", "1...3", "5..4", "1..2..3", "1.5", "x", "1-3", "**", "1e3",
                           "99999999999999999999"}) {
    EXPECT_FALSE(parse_range(text)) << text;
    EXPECT_TRUE(parse_range(text).error.find("128..512") != std::string::npos);
  }
}

TEST(Versions, OfCudnnAreCompared) {
  struct Case {
    const char* text;
    std::vector<std::size_t> holds, not_;
  };
  for (const Case& c : {Case{"9.19", {91900, 91901, 91999}, {91899, 92000, 91800, 8907}},
                        Case{"9.19.0", {91900}, {91901, 91899}},
                        Case{"9", {90000, 91900, 99999}, {8907, 100000}},
                        Case{"=9.1", {90100}, {91000}},
                        Case{"== 9.1", {90100, 90199}, {91000}},
                        Case{">=9.10", {91000, 91900, 100000}, {90999, 90100, 8907}},
                        Case{">9.4", {90500, 91000}, {90400, 90401}},
                        Case{"<9.5", {90402, 8907, 8000}, {90500, 91000}},
                        Case{"<=9.4", {90402, 8907}, {90500}},
                        Case{"9.1 - 9.4", {90100, 90402}, {90000, 90500, 91000}},
                        Case{"9.1.1-9.4.0", {90101, 90400}, {90100, 90401}},
                        Case{"8.9.7", {8907}, {8906, 90000}},
                        Case{"8 - 9.1", {8000, 8907, 90100}, {90200, 7605}},
                        Case{">=9.1, <9.5", {90100, 90402}, {90000, 90500}},
                        Case{">=9.1,<9.5,9.3", {90300}, {90100, 90402}}}) {
    const auto versions = parse_versions(c.text);
    ASSERT_TRUE(versions) << versions.error;
    for (const std::size_t v : c.holds) EXPECT_TRUE(versions->range.holds(comparable_version(v))) << c.text << " " << v;
    for (const std::size_t v : c.not_) EXPECT_FALSE(versions->range.holds(comparable_version(v))) << c.text << " " << v;
  }
}

TEST(Versions, RefuseNonsense) {
  for (const char* text : {"", "9.", ".9", "9.1.2.3", "nine", ">=", "9.4 - 9.1", "9.1 -", "~9.1", "9.1,", "9.*", "-1", "9.1000",
                           "9.1 - 9.4 - 9.5", ">= 9.1 <9.5"})
    EXPECT_FALSE(parse_versions(text)) << text;
  EXPECT_TRUE(parse_versions("9.1, 9.4").error.find("holds for no version") != std::string::npos);
}

TEST(Versions, AreWritten) {
  EXPECT_EQ(version_text(91900), "9.19.0");
  EXPECT_EQ(version_text(90402), "9.4.2");
  EXPECT_EQ(version_text(8907), "8.9.7");
  EXPECT_EQ(version_text(8100), "8.1.0");
}

TEST(Globs, MatchNames) {
  for (const char* glob : {"*H200*", "*h200", "nvidia*", "*", "NVIDIA H200", "N*A*H?00", "**H200", "*2*0*"})
    EXPECT_TRUE(matches_glob(glob, "NVIDIA H200")) << glob;
  for (const char* glob : {"", "H200", "*H100*", "*H200 *", "NVIDIA H200?", "N?H200", "*A"})
    EXPECT_FALSE(matches_glob(glob, "NVIDIA H200")) << glob;
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_TRUE(matches_glob("*aab", "aaaab"));
  EXPECT_FALSE(matches_glob(std::string(50, '*') + "b", std::string(5000, 'a'))) << "and it ends soon";
}

TEST(Match, PartsAgreeOrRefuseAlone) {
  const char* problem = "x=[32,64,56,48] w=[128,32,3,5] half nhwc pad=1,2 stride=2,1 groups=2";
  const auto with = [](auto member, auto value) {
    Match match;
    match.*member = value;
    return match;
  };
  EXPECT_TRUE(matches({}, problem));
  EXPECT_TRUE(matches(with(&Match::x, ranges({"-1", "64", "50..60", "*"})), problem));
  EXPECT_FALSE(matches(with(&Match::x, ranges({"-1", "64", "57..60", "*"})), problem));
  EXPECT_FALSE(matches(with(&Match::x, ranges({"-1", "64", "-1"})), problem)) << "another number of dimensions";
  EXPECT_TRUE(matches(with(&Match::w, ranges({"100..", "*", "3", "5"})), problem));
  EXPECT_FALSE(matches(with(&Match::w, ranges({"100..", "*", "5", "3"})), problem));
  EXPECT_TRUE(matches(with(&Match::y, ranges({"32", "128", "28", "48"})), problem));
  EXPECT_FALSE(matches(with(&Match::y, ranges({"32", "128", "28", "47"})), problem));
  EXPECT_TRUE(matches(with(&Match::pad, ranges({"1", "2"})), problem));
  EXPECT_TRUE(matches(with(&Match::pad, ranges({"1..2"})), problem)) << "one for all";
  EXPECT_FALSE(matches(with(&Match::pad, ranges({"1"})), problem));
  EXPECT_FALSE(matches(with(&Match::pad, ranges({"1", "2", "0"})), problem));
  EXPECT_TRUE(matches(with(&Match::stride, ranges({"2", "1"})), problem));
  EXPECT_FALSE(matches(with(&Match::stride, ranges({"2"})), problem));
  EXPECT_TRUE(matches(with(&Match::dilation, ranges({"1"})), problem));
  EXPECT_FALSE(matches(with(&Match::dilation, ranges({"2.."})), problem));
  EXPECT_TRUE(matches(with(&Match::groups, range("2..")), problem));
  EXPECT_FALSE(matches(with(&Match::groups, range("1")), problem));
  EXPECT_TRUE(matches(with(&Match::dims, range("2")), problem));
  EXPECT_FALSE(matches(with(&Match::dims, range("3")), problem));
  EXPECT_TRUE(matches(with(&Match::dtypes, std::vector{DataType::Float, DataType::Half}), problem));
  EXPECT_FALSE(matches(with(&Match::dtypes, std::vector{DataType::BFloat16}), problem));
  EXPECT_TRUE(matches(with(&Match::layouts, std::vector{Layout::ChannelsLast}), problem));
  EXPECT_FALSE(matches(with(&Match::layouts, std::vector{Layout::ChannelsFirst}), problem));
  EXPECT_TRUE(matches(with(&Match::fused, false), problem));
  EXPECT_FALSE(matches(with(&Match::fused, true), problem));
  EXPECT_TRUE(matches(with(&Match::fused, true), std::string(problem) + " fused=relu"));
  EXPECT_TRUE(matches(with(&Match::dims, range("3")), "x=[1,4,8,8,8] w=[8,4,3,3,3]"));
}

TEST(Match, PlacesAgreeWithEachPart) {
  Match match;
  match.devices = {"*A100*", "*H200*"};
  match.cudnn = {*parse_versions("9.1 - 9.4"), *parse_versions(">=9.19")};
  EXPECT_TRUE(match.matches(kH200));
  EXPECT_TRUE(match.matches(Place{"NVIDIA A100-SXM4-80GB", 90402}));
  EXPECT_FALSE(match.matches(Place{"NVIDIA H100", 91900}));
  EXPECT_FALSE(match.matches(Place{"NVIDIA H200", 91000}));
  EXPECT_FALSE(match.matches(Place{"", 91900})) << "a GPU that isn't known is none of those named";
  EXPECT_FALSE(match.matches(Place{"NVIDIA H200", 0})) << "nor a version";
  EXPECT_FALSE(matches(match, "x=[1,4,8,8] w=[8,4,3,3]", {}));
  EXPECT_TRUE(matches({}, "x=[1,4,8,8] w=[8,4,3,3]", {}));
}

}  // namespace
}  // namespace convpin
