// Fails when energy is counted from elsewhere than a step of the counter, for less than the time that was
// asked for, or together with launches outside of it; when a counter that stands still is waited for without
// end; when a clock that sinks or a throttling GPU goes unseen.
#include "tools/convpin/energy.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tools/convpin/nvml.hpp"
#include "tools/convpin/progress.hpp"

namespace convpin::cli {
namespace {

// A GPU of so many watts whose counter moves every 100 ms; its time goes on as work is done.
struct Gpu {
  double watts = 400, now = 0.037;
  bool counts = true;
  EnergyMeter meter() {
    return {[this] { return counts ? std::optional(std::floor(now * 10) / 10 * watts * 1000) : std::optional(0.0); },
            [this] { return now; }};
  }
};

TEST(Spend, FromStepToStep) {
  Gpu gpu;
  int works = 0;
  const auto spent = spend(gpu.meter(), 1.0, [&] {
    gpu.now += 0.003;
    ++works;
    return 10;
  });
  ASSERT_TRUE(spent);
  EXPECT_GE(spent->seconds, 1.0);
  EXPECT_LT(spent->seconds, 1.11);
  EXPECT_NEAR(spent->mj / spent->seconds, 400 * 1000, 400 * 1000 * 0.01);  // 3 ms at both ends
  EXPECT_NEAR(spent->mj / spent->launches, 400 * 1000 * 0.0003, 1.2);
  EXPECT_LT(spent->launches, works * 10);  // what was before the first step
}

TEST(Spend, IdlePower) {
  Gpu gpu{.watts = 77};
  EnergyMeter meter = gpu.meter();
  meter.seconds = [&] { return gpu.now += 0.01; };
  EXPECT_NEAR(idle_power_w(meter), 77, 1);
  EXPECT_GT(gpu.now, 2);
}

TEST(Spend, WhatCannotBeMeasured) {
  Gpu gpu;
  EXPECT_FALSE(spend(gpu.meter(), 1.0, [] { return 0; }));
  gpu.counts = false;
  const auto work = [&] {
    gpu.now += 0.01;
    return 1;
  };
  EXPECT_FALSE(spend(gpu.meter(), 1.0, work));
  EXPECT_LT(gpu.now, 3);
  EXPECT_FALSE(spend({[] { return std::optional<double>(); }, [] { return 0.0; }}, 1.0, work));
}

TEST(Energies, MeanAndDeviation) {
  const Energy e = energy_of({{1000, 2, 100}, {1200, 2, 100}, {1400, 2, 100}});
  EXPECT_DOUBLE_EQ(e.mj, 12);
  EXPECT_DOUBLE_EQ(e.sd_mj, 2);
  EXPECT_DOUBLE_EQ(e.power_w, 0.6);
}

TEST(Energies, InTurns) {
  Gpu gpu;
  EnergyPlan plan;
  plan.seconds = 0.5;
  plan.repeats = 2;
  std::vector<std::size_t> turns;
  const auto all = energies(
      gpu.meter(), plan, 3,
      [&](std::size_t i) {
        if (turns.empty() || turns.back() != i) turns.push_back(i);
        gpu.now += 0.005;
        return i == 1 ? 0 : i == 0 ? 5 : 10;
      },
      [] { return false; });
  EXPECT_EQ(turns, (std::vector<std::size_t>{0, 1, 2, 0, 2}));
  ASSERT_TRUE(all[0] && all[2]);
  EXPECT_FALSE(all[1]);
  EXPECT_NEAR(all[0]->mj / all[2]->mj, 2, 0.1);  // half as many launches in the same time
  EXPECT_NEAR(all[0]->power_w, 400, 8);
}

TEST(Progress, Bar) {
  EXPECT_EQ(bar_text(0, 4, 3.2, 8), "[--------] 0 %, 4 s left");
  EXPECT_EQ(bar_text(3, 4, 0, 8), "[######--] 75 %, 1 s left");
  EXPECT_EQ(bar_text(0, 0, 0, 2), "[--] 0 %, 1 s left");
}

TEST(Disturbance, ClocksAndThrottling) {
  GpuState cool{1980, 50, 0}, warm{1925, 80, 0};
  EXPECT_EQ(disturbance(cool, warm), "");
  warm.sm_clock_mhz = 1900;
  EXPECT_EQ(disturbance(cool, warm), "the SM clock went from 1980 to 1900 MHz");
  EXPECT_EQ(disturbance({}, warm), "");
  warm.event_reasons = 0x4;
  EXPECT_TRUE(at_power_limit(warm));
  EXPECT_EQ(disturbance({1900, 80, 0}, warm), "");
  warm.event_reasons = 0x4 | 0x20 | 0x80;
  EXPECT_EQ(disturbance(cool, warm), "SW thermal slowdown, HW power brake (at 80 C)");
}

}  // namespace
}  // namespace convpin::cli
