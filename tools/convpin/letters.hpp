// MIOpenDriver's letters for a convolution: -n 32 -c 64 -H 56 -W 56 -k 64 -y 3 -x 3 -p 1 -q 1.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "shim/model/parsed.hpp"
#include "shim/model/problem.hpp"

namespace convpin::cli {

struct Letters {
  std::int64_t n = 0, c = 0, h = 0, w = 0, k = 0, y = 0, x = 0;      // needed together
  std::int64_t p = 0, q = 0, u = 1, v = 1, l = 1, j = 1, g = 1;
  int operations = 1;                            // 1 forward, 2 backward data, 4 backward filter, added; 0: all three
  std::string dtype = "float", layout = "nchw";
  bool any() const { return n || c || h || w || k || y || x; }
};
std::shared_ptr<Letters> declare_letters(CLI::App&);
// A problem for each of the operations.
Parsed<std::vector<Problem>> problems_of(const Letters&);
// As MIOpenDriver would be asked for it; empty where its letters can't say it.
std::string letters_of(const Problem&);

}  // namespace convpin::cli
