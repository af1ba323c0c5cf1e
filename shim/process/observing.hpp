// What is looked at in each execution besides: one word, so that a program that wants none of it pays for one load.
#pragma once

#include <atomic>

namespace convpin {

enum Observing : unsigned { kLabels = 1, kRanges = 2 };
inline constinit std::atomic<unsigned> observing_{0};
inline bool observing(Observing what) noexcept { return observing_.load(std::memory_order_relaxed) & what; }

}  // namespace convpin
