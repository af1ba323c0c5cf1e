// What a launch takes of energy, by a counter that moves in steps: loops from one step to another, long
// enough that a step is little.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace convpin::cli {

struct EnergyMeter {
  std::function<std::optional<double>()> counter_mj;
  std::function<double()> seconds;  // a clock
};
struct EnergyPlan {
  double seconds = 5;  // of each loop, at least
  int repeats = 3;
  // Of a trial's candidates: the fastest that take at most so many times the best time, and the one that is
  // always in.
  std::size_t most = 4;
  double within = 1.5;
};

struct Spent {
  double mj = 0, seconds = 0, launches = 0;
};
// `work` keeps the GPU busy for some ms, and gives the number of its launches, 0 where one failed. From the
// first step of the counter to the first step that is at least so many seconds later. Nothing where work
// fails or the counter doesn't move.
std::optional<Spent> spend(const EnergyMeter&, double seconds, const std::function<int()>& work);

// The power of the GPU while it has nothing to do, over 2 s. Throws BadUse where there is no counter that
// moves.
double idle_power_w(const EnergyMeter&);

struct Energy {
  double mj = 0, sd_mj = 0;  // a launch: mean and standard deviation of the repeats
  double power_w = 0;
};
Energy energy_of(const std::vector<Spent>&);  // not empty
// The candidates in turn, and that as often as planned. Nothing for what failed, or where `stop` came first.
std::vector<std::optional<Energy>> energies(const EnergyMeter&, const EnergyPlan&, std::size_t candidates,
                                            const std::function<int(std::size_t)>& work, const std::function<bool()>& stop);

}  // namespace convpin::cli
