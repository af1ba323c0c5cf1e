// Rules out of a log: what ran, named exactly.
#pragma once

#include <string>
#include <vector>

#include "tools/convpin/usage.hpp"

namespace convpin::cli {

// One rule of a written file, before its text.
struct FrozenRule {
  Problem problem;
  std::string text;                              // of the problem, complete enough to match no other
  std::string gpu, cudnn;
  std::vector<std::string> algo;                 // as `algo` takes them, in order of preference
  std::vector<std::string> comments;             // lines without their #
  std::string name = {};                         // the person's own
};

// A rule for each problem of each GPU and cuDNN. Whatever a rule's text matches that isn't its own problem stands before
// it, since the first match counts. What nothing is known to have run, or what no rule can name, is left out with a
// sentence in `left_out`.
std::vector<FrozenRule> freeze(const std::vector<Usage>&, std::vector<std::string>& left_out);

// Their tables, each with an empty line before it.
std::string rules_text(const std::vector<FrozenRule>&);
// The whole file; `heading` is comment lines.
std::string pin_file(const std::vector<FrozenRule>&, const std::vector<std::string>& heading);
// Says how many rules were written, and how they are used; `output` is empty for standard output.
void say_written(std::size_t rules, const std::string& output);

// The text as a TOML string, with its quotes.
std::string toml_string(const std::string&);

// The problem's text as a rule's pattern that holds for no more than it must: with fused=none where nothing is fused.
std::string pattern_text(const Problem&);

}  // namespace convpin::cli
