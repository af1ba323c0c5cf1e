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

// One sample of candidate i, in ms, of so many launches in a row; nothing where it failed. 0 launches: one by
// itself, roughly, since the host's time may be in it.
using Sample = std::function<std::optional<double>(std::size_t i, int launches)>;
struct TimingPlan {
  int warmup = 1;  // before the one by itself that the number of launches is taken from
  int rounds = 15;
  double sample_ms = 0.2;                        // short kernels are launched so often that a sample takes this long
  int most_launches = 100;
  double most_ms = 40;                           // of a candidate's samples together, but a third of the rounds are taken
  // What takes so many times the best in the first round is in no other; what takes five times as much as that by itself,
  // is in none and has that one sample.
  double hopeless = 2.0;
};
// A timing a candidate; nothing for what failed. The likely best should come first: what is hopeless is then
// known early.
std::vector<std::optional<Timing>> interleaved(std::size_t candidates, const Sample&, const TimingPlan&, const std::function<bool()>& stop);

}  // namespace convpin::cli
