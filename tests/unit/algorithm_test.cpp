// Fails when a name, number or tag is taken for another, when nonsense is taken, or when the table of engines
// gives one engine to two algorithms.
#include "shim/model/algorithm.hpp"

#include <gtest/gtest.h>

#include <map>

namespace convpin {
namespace {

constexpr std::size_t kVersion = 91900;

Request request(std::string_view text) {
  const auto parsed = parse_request(Operation::Forward, text);
  EXPECT_TRUE(parsed) << parsed.error;
  return parsed.value.value_or(Request{});
}

TEST(Algorithms, ArePresentInOrder) {
  const auto all = algorithms(Operation::Forward, kVersion);
  ASSERT_EQ(all.size(), 8u);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(all[i].number, i);
    EXPECT_FALSE(all[i].engines.empty());
  }
  EXPECT_EQ(all[1].engines[0], 1) << "the plain engine of the family comes first";
}

TEST(Algorithms, EachEngineBelongsToOne) {
  std::map<int, int> owner;
  for (const Algorithm& algorithm : algorithms(Operation::Forward, kVersion))
    for (const int engine : algorithm.engines) {
      EXPECT_TRUE(owner.emplace(engine, algorithm.number).second) << engine << " is in two algorithms";
      EXPECT_EQ(algorithm_of_engine(Operation::Forward, kVersion, engine), algorithm.number);
    }
  EXPECT_EQ(algorithm_of_engine(Operation::Forward, kVersion, 38), 1);
  EXPECT_EQ(algorithm_of_engine(Operation::Forward, kVersion, 6), 7);
  EXPECT_EQ(algorithm_of_engine(Operation::Forward, kVersion, 5), -1);
  EXPECT_EQ(algorithm_of_engine(Operation::Forward, kVersion, -1), -1);
}

TEST(RequestText, TakesNumbersAndNames) {
  for (const char* text :
       {"7", " 7\t", "WINOGRAD_NONFUSED", "winograd_nonfused", "CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED",
        "cudnn_convolution_fwd_algo_Winograd_Nonfused"}) {
    EXPECT_EQ(request(text).kind, Request::Kind::Algorithm) << text;
    EXPECT_EQ(request(text).algorithm, 7) << text;
    EXPECT_EQ(request(text).to_text(), "7 (WINOGRAD_NONFUSED)") << text;
  }
  EXPECT_EQ(request("0").algorithm, 0);
  EXPECT_EQ(request("WINOGRAD").algorithm, 6);
  EXPECT_EQ(request("1").to_text(), "1 (IMPLICIT_PRECOMP_GEMM)");
}

TEST(RequestText, TakesTheFrameworksChoice) {
  EXPECT_EQ(request("-1").kind, Request::Kind::FrameworkChoice);
  EXPECT_EQ(request("-1").to_text(), "-1 (the framework's choice)");
}

TEST(RequestText, TakesTags) {
  EXPECT_EQ(request("eng38").kind, Request::Kind::Engine);
  EXPECT_EQ(request("ENG38").engine.engine, 38);
  EXPECT_EQ(request("ConvFwd_eng38").to_text(), "eng38");
  const Request exact = request("ConvFwd_eng38_k13=0_k2=-1");
  EXPECT_EQ(exact.kind, Request::Kind::ExactEngine);
  EXPECT_EQ(exact.engine, (EngineConfig{38, {{2, -1}, {13, 0}}})) << "knobs are sorted by type";
  EXPECT_EQ(exact.to_text(), "eng38_k2=-1_k13=0");
  EXPECT_EQ(request(exact.to_text()).engine, exact.engine);
  EXPECT_EQ(request("eng1_k99=5").engine.knobs[0].type, 99) << "newer versions have more knobs than we know";
}

TEST(RequestText, RefusesNonsenseAndListsWhatIsAllowed) {
  for (const char* text : {"",
                           " ",
                           "8",
                           "-2",
                           "+1",
                           "1.0",
                           "1 2",
                           "01x",
                           "99999999999999999999",
                           "foo",
                           "GEMM2",
                           "FWD_ALGO_GEMM",
                           "eng",
                           "eng-1",
                           "eng 38",
                           "eng38_",
                           "eng38_k2",
                           "eng38_k2=",
                           "eng38_k=1",
                           "eng38_k-2=1",
                           "eng38_k2=1_k2=1",
                           "eng38_k2=1 ,",
                           "eng38k2=1",
                           "eng99999999999",
                           "eng38_k2=99999999999999999999",
                           "ConvBwdData_eng3",
                           "38eng"}) {
    const auto parsed = parse_request(Operation::Forward, text);
    ASSERT_FALSE(parsed) << text << " was taken as " << parsed->to_text();
    EXPECT_EQ(parsed.error,
              std::string("'") + text +
                  "' is not a forward algorithm: allowed are 0-7, IMPLICIT_GEMM, "
                  "IMPLICIT_PRECOMP_GEMM, GEMM, DIRECT, FFT, FFT_TILING, WINOGRAD, WINOGRAD_NONFUSED, "
                  "an engine tag (eng38, eng38_k2=1), or -1 for the framework's choice");
  }
}

TEST(RequestText, TakesListsInOrderOfPreference) {
  const auto list = parse_requests(Operation::Forward, "FFT, eng38_k2=1 ,-1");
  ASSERT_TRUE(list) << list.error;
  ASSERT_EQ(list->size(), 3u);
  EXPECT_EQ((*list)[0].algorithm, 4);
  EXPECT_EQ((*list)[1].engine.engine, 38);
  EXPECT_EQ((*list)[2].kind, Request::Kind::FrameworkChoice);
  EXPECT_EQ(parse_requests(Operation::Forward, "1")->size(), 1u);
  for (const char* text : {"", "1,", ",1", "1,,2", "1;2", "1,9"}) EXPECT_FALSE(parse_requests(Operation::Forward, text)) << text;
  EXPECT_EQ(parse_requests(Operation::Forward, "-1,2").error, "'-1,2': -1 is always possible: what stands behind it would never be tried");
}

TEST(RequestText, QuotesHostileTextsSafely) {
  const auto parsed = parse_request(Operation::Forward, "\x1b[31m" + std::string(100000, 'x'));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error.find('\x1b'), std::string::npos);
  EXPECT_LT(parsed.error.size(), 500u);
}

}  // namespace
// Fails when a backward operation's numbers, enum names or tags are not understood, or mean another algorithm.
TEST(Algorithm, BackwardNames) {
  struct Case { Operation operation; const char* text; int number; };
  for (const Case& c : {Case{Operation::BackwardData, "CUDNN_CONVOLUTION_BWD_DATA_ALGO_0", 0}, Case{Operation::BackwardData, "algo_1", 1},
                        Case{Operation::BackwardData, "5", 5}, Case{Operation::BackwardData, "winograd_nonfused", 5},
                        Case{Operation::BackwardFilter, "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING", 6},
                        Case{Operation::BackwardFilter, "cudnn_convolution_bwd_filter_algo_3", 3}, Case{Operation::BackwardFilter, "FFT", 2}}) {
    const auto request = parse_request(c.operation, c.text);
    ASSERT_TRUE(request) << c.text << ": " << request.error;
    EXPECT_EQ(request->algorithm, c.number) << c.text;
    EXPECT_EQ(request->operation, c.operation);
  }
  EXPECT_EQ(parse_request(Operation::BackwardData, "ConvBwdData_eng25")->engine.engine, 25);
  EXPECT_EQ(parse_request(Operation::BackwardFilter, "convbwdfilter_ENG17_k2=1")->kind, Request::Kind::ExactEngine);
  for (const char* text : {"6", "GEMM", "CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0", "ConvFwd_eng1", "CUDNN_CONVOLUTION_BWD_DATA_FFT", ""})
    EXPECT_FALSE(parse_request(Operation::BackwardData, text)) << text;
  EXPECT_NE(parse_request(Operation::BackwardData, "6").error.find("is not a backward data algorithm: allowed are 0-5, ALGO_0"), std::string::npos);
}

}  // namespace convpin
