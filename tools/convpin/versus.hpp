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

// The clock of one GPU moves by 1 or 2 % between turns whatever runs: what differs by no more than this is the same.
inline constexpr double kDiffers = 0.05;
// "by more than 5 % and the spread", as the verdicts have it.
std::string bound_words();

struct Versus {
  Table table;                                   // a row for each problem and candidate that either side knows
  bool any_ran = false;                          // something, on one side at least
  bool convicted = false;                        // a verdict is "slower" or "only A"
};
// Times are medians over a side's turns. The spread is the range of its turns' times, or their samples' interquartile range
// where that is more. The verdict is "same" where the times differ by no more than the larger spread, or no more than kDiffers
// of the lesser time; else B is "slower" or "faster".
Versus compare(const Side& a, const Side& b);

// Takes turns: A, B, A, B ... `arguments` are those of `convpin replay`, without --json and --cudnn. What a turn says on stderr
// is said after it, and once where others say it too. Throws BadUse where a side can't do it at all.
void take_turns(Side& a, Side& b, int alternations, const std::vector<std::string>& arguments);

}  // namespace convpin::cli
