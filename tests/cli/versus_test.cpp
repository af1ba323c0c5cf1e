// Fails when a verdict is not what the times and their spread say, or what the exit status says; a candidate that only one side
// runs is not told; what was refused in one turn counts as running; or that nothing ran at all is taken for an answer.
#include "tools/convpin/versus.hpp"

#include <gtest/gtest.h>

namespace convpin::cli {
namespace {

Json row(const char* name, Json time, double iqr = 0.001, const char* status = "ok") {
  return {{"problem", "p"}, {"candidate", Json::array({name})}, {"engine", "eng1"}, {"time_ms", time}, {"time_iqr_ms", iqr},
          {"error", 1e-6},  {"status", status},                 {"reason", std::string(status) == "ok" ? Json() : Json("refused")}};
}
Side side(std::vector<Json> turns) { return {"here", std::move(turns)}; }
Side steady(double time, double iqr = 0.001) {
  return side(std::vector<Json>(3, Json::array({row("eng1", time, iqr)})));
}
Json only_row(const Versus& v) {
  const Json rows = v.table.json();
  EXPECT_EQ(rows.size(), 1u);
  return rows.at(0);
}

TEST(Versus, VerdictsGoBeyondTheSpreadAndTheClock) {
  EXPECT_EQ(only_row(compare(steady(1), steady(1.0005)))["verdict"], "same");
  EXPECT_EQ(only_row(compare(steady(1), steady(0.9)))["verdict"], "faster");
  // Beyond the spread, but by less than 5 %: a GPU's clock does as much. Either way round, and the exit status says the same.
  EXPECT_EQ(only_row(compare(steady(1), steady(1.04)))["verdict"], "same");
  EXPECT_EQ(only_row(compare(steady(1.04), steady(1)))["verdict"], "same");
  EXPECT_FALSE(compare(steady(1), steady(1.04)).convicted);
  EXPECT_EQ(only_row(compare(steady(1), steady(1.06)))["verdict"], "slower");
  EXPECT_EQ(only_row(compare(steady(1.06), steady(1)))["verdict"], "faster");
  EXPECT_TRUE(compare(steady(1), steady(1.06)).convicted);
  EXPECT_FALSE(compare(steady(1.06), steady(1)).convicted);
  EXPECT_EQ(bound_words(), "by more than 5 % and the spread");
  Versus v = compare(steady(1), steady(1.2));
  EXPECT_TRUE(v.convicted);
  EXPECT_DOUBLE_EQ(only_row(v)["ratio"].get<double>(), 1.2);
  v = compare(steady(1), steady(1.2, 0.3));
  EXPECT_EQ(only_row(v)["verdict"], "same") << "its samples spread by more";
  EXPECT_FALSE(v.convicted);
}

TEST(Versus, WhereNothingRan) {
  const Side refused = side({Json::array({row("eng1", Json(), 0, "unsupported")})}), died = side({Json::array()});
  EXPECT_EQ(only_row(compare(refused, refused))["verdict"], "neither");
  for (const Side& one : {refused, died}) {
    EXPECT_FALSE(compare(one, one).any_ran);
    EXPECT_TRUE(compare(one, steady(1)).any_ran);
    EXPECT_TRUE(compare(steady(1), one).any_ran);
  }
}

TEST(Versus, TurnsThatDisagreeAreSpread) {
  const auto turn = [](double time) { return Json::array({row("eng1", time)}); };
  const Json r = only_row(compare(side({turn(1), turn(1.3), turn(1.1)}), steady(1.25)));
  EXPECT_DOUBLE_EQ(r["time_ms_a"].get<double>(), 1.1);
  EXPECT_NEAR(r["spread_ms_a"].get<double>(), 0.3, 1e-12);
  EXPECT_EQ(r["verdict"], "same");
}

TEST(Versus, WhatOnlyOneSideRuns) {
  const Side lacks = side({Json::array()});
  const Side fails_once = side({Json::array({row("eng1", 1.0)}), Json::array({row("eng1", Json(), 0, "unsupported")})});
  const Side dies_once = side({Json::array({row("eng1", 1.0)}), Json::array()});
  EXPECT_EQ(only_row(compare(steady(1), dies_once))["reason_b"], "missing in 1 of 2 turns");
  for (const Side& b : {lacks, fails_once, dies_once}) {
    Versus v = compare(steady(1), b);
    EXPECT_EQ(only_row(v)["verdict"], "only A");
    EXPECT_TRUE(v.convicted);
    v = compare(b, steady(1));
    EXPECT_EQ(only_row(v)["verdict"], "only B");
    EXPECT_FALSE(v.convicted);
  }
  EXPECT_EQ(only_row(compare(steady(1), fails_once))["reason_b"], "refused");
}

TEST(Versus, ARowOfSeveralNamesIsEachOfThem) {
  Json both = row("-1", 1.0);
  both["candidate"] = Json::array({"-1", "eng1"});
  const Versus v = compare(side({Json::array({both})}), side({Json::array({row("-1", 1.0), row("eng1", 1.0)})}));
  EXPECT_EQ(v.table.rows.size(), 2u);
}

}  // namespace
}  // namespace convpin::cli
