// The same candidates under two cuDNN libraries, in alternation. Their parts share names, so that one process can't hold both:
// each turn is a process of its own.
#pragma once

#include <string>
#include <vector>

#include "tools/convpin/table.hpp"

namespace convpin::cli {

// Rows of `replay --json`, a list a turn; a turn that died has none.
struct Side {
  std::string where;                             // as the person names it: a folder or a file
  std::vector<Json> turns;
};

struct Versus {
  Table table;                                   // a row for each problem and candidate that either side knows
  bool convicted = false;                        // B is slower beyond the spread by more than 5 %, or lacks what A runs
};
// Times are medians over a side's turns. The spread is the range of its turns' times, or their samples' interquartile range
// where that is more; what differs by no more than the larger spread is the same.
Versus compare(const Side& a, const Side& b);

// Takes turns: A, B, A, B ... `arguments` are those of `convpin replay`, without --json and --cudnn. What a turn says on stderr
// is said after it, and once where others say it too. Throws BadUse where a side can't do it at all.
void take_turns(Side& a, Side& b, int alternations, const std::vector<std::string>& arguments);

}  // namespace convpin::cli
