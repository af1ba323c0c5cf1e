#include "tools/convpin/energy.hpp"

#include <chrono>
#include <cmath>
#include <thread>

#include "tools/convpin/command.hpp"

namespace convpin::cli {

std::optional<Spent> spend(const EnergyMeter& meter, double seconds, const std::function<int()>& work) {
  constexpr double kStandsStill = 2;  // seconds: no counter is that slow
  auto last = meter.counter_mj();
  if (!last) return std::nullopt;
  std::optional<double> from_mj;  // at the first step
  double from = 0, launches = 0, stepped = meter.seconds();
  for (;;) {
    const int done = work();
    const auto now_mj = meter.counter_mj();
    const double now = meter.seconds();
    if (done <= 0 || !now_mj) return std::nullopt;
    launches += done;
    if (*now_mj == *last) {
      if (now - stepped > kStandsStill) return std::nullopt;
      continue;
    }
    last = now_mj;
    stepped = now;
    if (!from_mj) {
      from_mj = now_mj;
      from = now;
      launches = 0;
    } else if (now - from >= seconds) {
      return Spent{*now_mj - *from_mj, now - from, launches};
    }
  }
}

double idle_power_w(const EnergyMeter& meter) {
  const auto wait = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return 1;
  };
  const auto spent = spend(meter, 2, wait);
  if (!spent) throw BadUse("energy can't be measured: NVML has no energy counter that moves for this GPU");
  return spent->mj / spent->seconds / 1000;
}

Energy energy_of(const std::vector<Spent>& repeats) {
  Energy e;
  const auto n = static_cast<double>(repeats.size());
  for (const Spent& s : repeats) {
    e.mj += s.mj / s.launches / n;
    e.power_w += s.mj / s.seconds / 1000 / n;
  }
  double squares = 0;
  for (const Spent& s : repeats) squares += std::pow(s.mj / s.launches - e.mj, 2);
  e.sd_mj = n > 1 ? std::sqrt(squares / (n - 1)) : 0;
  return e;
}

std::vector<std::optional<Energy>> energies(const EnergyMeter& meter, const EnergyPlan& plan, std::size_t candidates,
                                            const std::function<int(std::size_t)>& work, const std::function<bool()>& stop) {
  std::vector<std::vector<Spent>> spent(candidates);
  for (int repeat = 0; repeat < plan.repeats; ++repeat)
    for (std::size_t i = 0; i < candidates; ++i) {
      if (stop() || spent[i].size() < static_cast<std::size_t>(repeat)) continue;  // it failed before
      if (const auto s = spend(meter, plan.seconds, [&] { return work(i); })) spent[i].push_back(*s);
    }
  std::vector<std::optional<Energy>> all(candidates);
  for (std::size_t i = 0; i < candidates; ++i)
    if (spent[i].size() == static_cast<std::size_t>(plan.repeats)) all[i] = energy_of(spent[i]);
  return all;
}

}  // namespace convpin::cli
