// Times that can be compared: candidates take turns, so that a clock that sinks sinks for all of them.
#pragma once

#include <functional>
#include <optional>
#include <vector>

namespace convpin::cli {

struct Timing {
  double median_ms = 0, iqr_ms = 0;
  int samples = 0;
};
// Linear interpolation between ranks, as numpy's default does. `sorted` is not empty.
double quantile(const std::vector<double>& sorted, double q);
Timing timing_of(std::vector<double> samples);

// One sample of candidate i, in ms, of so many launches in a row; nothing where it failed.
using Sample = std::function<std::optional<double>(std::size_t i, int launches)>;
struct TimingPlan {
  int warmup = 2;
  int rounds = 15;
  double sample_ms = 0.2;                        // short kernels are launched so often that a sample takes this long
  int most_launches = 50;
  double hopeless = 2.0;                         // after the warm-up: so many times the best is not looked at again
};
// A timing a candidate; nothing for what failed. What is hopeless has its one sample.
std::vector<std::optional<Timing>> interleaved(std::size_t candidates, const Sample&, const TimingPlan&, const std::function<bool()>& stop);

}  // namespace convpin::cli
