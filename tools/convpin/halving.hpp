// Finding the few of many things that make a test fail (delta debugging: Zeller, Hildebrandt, "Simplifying and isolating
// failure-inducing input", 2002).
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace convpin::cli {

enum class Verdict { Good, Bad, Skip };

struct Culprits {
  std::vector<std::size_t> found;                // together they fail, and without any one of them they don't
  bool minimal = true;                           // false: some tests were skipped, so that fewer might do
  int tests = 0;
};
// `test` is asked with sorted numbers below `count`, each set once. All of them together must be Bad.
Culprits find_culprits(std::size_t count, const std::function<Verdict(const std::vector<std::size_t>&)>& test);

}  // namespace convpin::cli
