// Fails when what stderr shows differs from the documented shape: columns, order, mark, remarks, digits,
// wording.
#include <gtest/gtest.h>

#include "shim/model/record.hpp"

namespace convpin {
namespace {

Problem problem() { return *parse_problem("x=[32,64,56,56] w=[64,64,3,3] pad=1"); }

Candidate ok(int algorithm, int engine, double ms, std::int64_t workspace, std::vector<int> notes) {
  Candidate c;
  c.algorithm = algorithm;
  c.engine.engine = engine;
  c.status = CandidateStatus::Ok;
  c.time_ms = ms;
  c.workspace_bytes = workspace;
  c.numerical_notes = std::move(notes);
  return c;
}

Candidate refused(int algorithm, int engine, CandidateStatus status, std::string reason) {
  Candidate c;
  c.algorithm = algorithm;
  c.engine.engine = engine;
  c.status = status;
  c.reason = std::move(reason);
  return c;
}

std::vector<Candidate> some() {
  std::vector<Candidate> all = {refused(6, 12, CandidateStatus::Unsupported, "architecture mismatch"),
                                ok(5, 4, 0.1552, 53477376, {3}), ok(1, 38, 0.10879, 25837584, {0}),
                                ok(7, 6, 0.13821, 116195328, {5})};
  all[2].requested = all[2].framework_choice = true;
  return all;
}

std::string table(const std::vector<Candidate>& candidates) {
  Device device;
  device.name = "NVIDIA H200";
  return candidate_table(problem(), candidates, device, "9.19.0");
}

TEST(Table, HasTheDocumentedShape) {
  EXPECT_EQ(
      table(some()),
      "convpin: forward x=[32,64,56,56] w=[64,64,3,3] float nchw pad=1,1 stride=1,1 dilation=1,1 groups=1   "
      "(NVIDIA H200, cuDNN 9.19.0)\n"
      "  algo                        engine   time ms    workspace   notes\n"
      "* 1 IMPLICIT_PRECOMP_GEMM     eng38    0.1088     25837584    tf32                 requested; same "
      "as "
      "the framework's choice\n"
      "  7 WINOGRAD_NONFUSED         eng6     0.1382     116195328   winograd\n"
      "  5 FFT_TILING                eng4     0.1552     53477376    fft\n"
      "  6 WINOGRAD                  eng12    -1                     not supported: architecture mismatch\n"
      "convpin: supported forward algorithms, fastest first: 1 7 5\n");
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

// The number of the line that begins with `start`, -1 for none.
int line_number(const std::string& text, const std::string& start) {
  const std::size_t at = ("\n" + text).find("\n" + start);
  return at == std::string::npos ? -1 : static_cast<int>(std::count(text.begin(), text.begin() + at, '\n'));
}

TEST(Table, MarksTheFrameworksChoiceWhereTheRequestCannotRun) {
  auto all = some();
  all[2].requested = false;
  all[0].requested = true;
  const std::string text = table(all);
  EXPECT_GE(line_number(text, "* 1 IMPLICIT_PRECOMP_GEMM"), 0) << text;
  EXPECT_GE(line_number(text, "  6 WINOGRAD "), 0) << text;
  EXPECT_NE(text.find("tf32                 the framework's choice\n"), std::string::npos) << text;
  EXPECT_NE(text.find("architecture mismatch; requested\n"), std::string::npos) << text;
}

TEST(Table, MarksARequestThatIsNotTheFrameworksChoice) {
  auto all = some();
  all[2].requested = false;
  all[3].requested = true;
  const std::string text = table(all);
  EXPECT_GE(line_number(text, "* 7 WINOGRAD_NONFUSED"), 0) << text;
  EXPECT_GE(line_number(text, "  1 IMPLICIT_PRECOMP_GEMM"), 0) << text;
  EXPECT_NE(text.find("winograd             requested\n"), std::string::npos) << text;
}

TEST(Table, RefusedOnesComeLastInTheirOrder) {
  auto all = some();
  Candidate slow = ok(3, 0, 40, 0, {});
  slow.status = CandidateStatus::TooSlow;
  all.insert(all.begin(), {refused(2, 2, CandidateStatus::Skipped, "the budget is spent"), slow,
                           refused(4, 3, CandidateStatus::NoMemory, "")});
  const std::string text = table(all);
  EXPECT_LT(line_number(text, "  5 "), line_number(text, "  3 DIRECT"));
  EXPECT_LT(line_number(text, "  3 DIRECT"), line_number(text, "  4 FFT "));
  EXPECT_LT(line_number(text, "  4 FFT "), line_number(text, "  2 GEMM"));
  EXPECT_LT(line_number(text, "  2 GEMM"), line_number(text, "  6 WINOGRAD"));
  EXPECT_TRUE(has_line(text, "  3 DIRECT                    eng0     40.00      0           too slow"))
      << text;
  EXPECT_TRUE(has_line(text,
                       "  2 GEMM                      eng2     -                      skipped: the budget is "
                       "spent"))
      << text;
  EXPECT_TRUE(
      has_line(text, "  4 FFT                       eng3     -                      not enough memory"))
      << text;
  EXPECT_TRUE(has_line(text, "convpin: supported forward algorithms, fastest first: 1 7 5 3; not timed: 4 2")) << text;
}

TEST(Table, EnginesWithoutAnAlgorithmHaveADash) {
  auto all = some();
  all.push_back(ok(-1, 72, 0.09, 0, {0}));
  all.back().behavior_notes = {0};
  all.back().deterministic = false;
  const std::string text = table(all);
  EXPECT_NE(text.find("  -                           eng72    0.09000    0"), std::string::npos) << text;
  EXPECT_NE(text.find("tf32,nondeterministic,runtime_compilation\n"), std::string::npos) << text;
  EXPECT_TRUE(has_line(text, "convpin: supported forward algorithms, fastest first: 1 7 5")) << text;
}

TEST(Table, KnobsAreShownWhereOnlyTheyTellRowsApart) {
  auto all = some();
  all[2].engine.knobs = {{2, 1}};
  EXPECT_EQ(table(all).find("_k2=1"), std::string::npos);
  all.push_back(ok(1, 38, 0.2, 0, {}));
  const std::string text = table(all);
  EXPECT_NE(text.find("eng38_k2=1  0.1088"), std::string::npos) << text;
  EXPECT_NE(text.find("eng38       0.2000"), std::string::npos) << text;
  EXPECT_TRUE(has_line(text, "convpin: supported forward algorithms, fastest first: 1 7 5"))
      << "1 is there once";
}

TEST(Table, LegacyRowsNameTheirMathType) {
  auto all = some();
  all[2].engine.engine = -1;
  all[2].math_type = 3;
  EXPECT_NE(table(all).find("* 1 IMPLICIT_PRECOMP_GEMM     -        0.1088"), std::string::npos);
  EXPECT_NE(table(all).find("fma_math"), std::string::npos);
}

TEST(Table, ReasonsStayOnTheirLine) {
  const auto all = {refused(6, 12, CandidateStatus::Unsupported, "one\ntwo" + std::string(5000, 'x'))};
  const std::string text = table(all);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  EXPECT_NE(text.find("one two"), std::string::npos);
  EXPECT_LT(text.size(), 1000u);
  EXPECT_TRUE(has_line(text, "convpin: supported forward algorithms, fastest first: none")) << text;
}

TEST(Summary, IsOneLine) {
  auto all = some();
  all[2].time_ms = 0.2;
  const std::string begin = "convpin: " + to_text(problem()) + ": ";
  EXPECT_EQ(
      candidate_summary(problem(), all),
      begin +
          "1 IMPLICIT_PRECOMP_GEMM eng38 0.2000 ms (requested); fastest 7 WINOGRAD_NONFUSED eng6 0.1382 ms; "
          "3 of 4 supported\n");
  all[2].requested = false;
  EXPECT_NE(candidate_summary(problem(), all).find("0.2000 ms (the framework's choice); fastest"),
            std::string::npos);
  EXPECT_EQ(candidate_summary(problem(), {}), begin + "0 of 0 supported\n");
}

TEST(ChoiceLine, SaysWhatIsSet) {
  Choice choice{ChoiceKind::Set, "graph", "eng38_k2=1", "CONV_FWD_ALGO", "1 (IMPLICIT_PRECOMP_GEMM)", ""};
  EXPECT_EQ(choice_line(problem(), choice),
            "convpin: requested forward algorithm 1 (IMPLICIT_PRECOMP_GEMM) is set");
  choice.requested = "eng38";
  EXPECT_EQ(choice_line(problem(), choice), "convpin: requested forward engine eng38 is set");
  choice.kind = ChoiceKind::LeftAlone;
  EXPECT_EQ(choice_line(problem(), choice), "");
}

TEST(ChoiceLine, SaysWhyNotAndWhatRuns) {
  Choice choice{ChoiceKind::Unsupported, "graph",        "eng38_k2=1",
                "CONV_FWD_ALGO",         "6 (WINOGRAD)", "arch\nmismatch"};
  EXPECT_EQ(choice_line(problem(), choice),
            "convpin: warning: requested forward algorithm 6 (WINOGRAD) is not possible for " +
                to_text(problem()) + ": arch mismatch; the framework's choice runs instead (eng38_k2=1)");
  choice.kind = ChoiceKind::Refused;
  choice.ran.clear();
  EXPECT_EQ(choice_line(problem(), choice),
            "convpin: warning: requested forward algorithm 6 (WINOGRAD) for " + to_text(problem()) +
                " was not taken by the framework: arch mismatch; the framework's choice runs instead");
}

TEST(Label, StandsBehindTheProblem) {
  const std::string labelled = to_text(problem()) + " [layer3.0.conv2]";
  Choice choice{ChoiceKind::Unsupported, "graph", "eng38", "CONV_FWD_ALGO", "6 (WINOGRAD)", "no"};
  EXPECT_NE(choice_line(problem(), choice, "layer3.0.conv2").find("for " + labelled + ": no;"), std::string::npos);
  EXPECT_TRUE(candidate_summary(problem(), {}, "layer3.0.conv2").starts_with("convpin: " + labelled + ": "));
  EXPECT_TRUE(candidate_table(problem(), {}, Device{}, "9.19.0", "layer3.0.conv2").starts_with("convpin: " + labelled));
}

TEST(EndLine, CountsOrSaysThatNothingWasReached) {
  EXPECT_EQ(end_line({53, 5300, 52, 1, 5200}), "convpin: 53 problems, 5300 calls, 52 pinned, 1 unsupported");
  EXPECT_EQ(end_line({1, 1, 0, 0, 0}), "convpin: 1 problem, 1 call, 0 pinned, 0 unsupported");
  EXPECT_EQ(end_line({2, 1, 0, 1, 0, 1, 9}), "convpin: 2 problems, 1 call, 0 pinned, 1 unsupported, 1 failed");
  EXPECT_EQ(end_line({}), "convpin: 0 convolutions reached");
}

TEST(FourDigits, AreFourAndPlain) {
  four_digits(1.234e-123);  // leaves digits where the next call writes its shorter text
  EXPECT_EQ(four_digits(0.9682), "0.9682");
  EXPECT_EQ(four_digits(0.1088), "0.1088");
  EXPECT_EQ(four_digits(12.6), "12.60");
  EXPECT_EQ(four_digits(1234), "1234");
  EXPECT_EQ(four_digits(9.99996), "10.00");
  EXPECT_EQ(four_digits(0.09), "0.09000");
  EXPECT_EQ(four_digits(0.00001234), "0.00001234");
  EXPECT_EQ(four_digits(123456), "123500");
  EXPECT_EQ(four_digits(0), "0");
  EXPECT_EQ(four_digits(-1.5), "-1.500");
  EXPECT_EQ(four_digits(1e-300), "0.000000000000");
  EXPECT_EQ(four_digits(1e300).size(), 301u);
}

}  // namespace
}  // namespace convpin
