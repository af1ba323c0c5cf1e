// Fails when a letter of MIOpenDriver's lands in another place of the problem, or what letters can't say is said by them.
#include "tools/convpin/letters.hpp"

#include <gtest/gtest.h>

namespace convpin::cli {
namespace {

Parsed<std::vector<Problem>> read(std::vector<std::string> words) {
  CLI::App app;
  const auto letters = declare_letters(app);
  std::reverse(words.begin(), words.end());
  app.parse(std::move(words));
  return problems_of(*letters);
}

std::vector<std::string> with(std::vector<std::string> more) {
  std::vector<std::string> words{"-n", "32", "-c", "64", "-H", "56", "-W", "28", "-k", "128", "-y", "3", "-x", "5"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Letters, EachInItsPlace) {
  const auto problems =
      read(with({"-p", "1", "-q", "2", "-u", "2", "-v", "1", "-l", "1", "-j", "3", "-g", "4", "--dtype", "half", "--layout", "nhwc"}));
  ASSERT_TRUE(problems) << problems.error;
  ASSERT_EQ(problems->size(), 1u);
  EXPECT_EQ(to_text(problems->front()), "forward x=[32,64,56,28] w=[128,16,3,5] half nhwc pad=1,2 stride=2,1 dilation=1,3 groups=4");
}

TEST(Letters, Operations) {
  for (const auto& [f, names] : std::vector<std::pair<const char*, std::vector<Operation>>>{
           {"1", {Operation::Forward}},
           {"2", {Operation::BackwardData}},
           {"4", {Operation::BackwardFilter}},
           {"6", {Operation::BackwardData, Operation::BackwardFilter}},
           {"0", {Operation::Forward, Operation::BackwardData, Operation::BackwardFilter}}}) {
    const auto problems = read(with({"-F", f}));
    ASSERT_TRUE(problems);
    std::vector<Operation> operations;
    for (const Problem& p : *problems) operations.push_back(p.operation);
    EXPECT_EQ(operations, names) << f;
  }
}

TEST(Letters, WhatIsMissingOrWrongIsNamed) {
  EXPECT_NE(read({"-n", "1", "-c", "8", "-H", "8", "-W", "8", "-k", "8", "-x", "3"}).error.find("-y"), std::string::npos);
  EXPECT_NE(read(with({"-g", "3"})).error.find("-g"), std::string::npos);
  EXPECT_FALSE(read(with({"--dtype", "flaot"})));
}

TEST(Letters, ThereAndBack) {
  for (const char* text : {"forward x=[32,64,56,28] w=[128,16,3,5] half nhwc pad=1,2 stride=2,1 dilation=1,3 groups=4",
                           "backward_filter x=[1,8,8,8] w=[8,8,1,1] float nchw pad=0,0 stride=1,1 dilation=1,1 groups=1"}) {
    const std::string letters = letters_of(*parse_problem(text));
    std::vector<std::string> words;
    std::istringstream in(letters);
    for (std::string word; in >> word;) words.push_back(word);
    const auto back = read(words);
    ASSERT_TRUE(back) << letters << ": " << back.error;
    EXPECT_EQ(to_text(back->front()), text);
  }
  for (const char* text :
       {"x=[1,8,8,8,8] w=[8,8,1,1,1] ncdhw", "x=[1,8,8,8] w=[8,8,1,1] fused=relu", "x=[1,8,8,8] w=[8,8,3,3] postpad=1,1",
        "x=[1,8,8,8] w=[8,8,1,1] half ytype=float", "x=[1,8,8,8] w=[8,8,1,1] xstride=[1024,1,128,8] wlayout=nchw ylayout=nchw"})
    EXPECT_EQ(letters_of(*parse_problem(text)), "") << text;
}

}  // namespace
}  // namespace convpin::cli
