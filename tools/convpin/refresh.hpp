// A pin file as a text whose rules can be replaced: what people wrote into it, comments included, stays as it
// is.
#pragma once

#include <string>
#include <vector>

#include "shim/model/rule.hpp"
#include "tools/convpin/freeze.hpp"

namespace convpin::cli {

// A table of the file with the comment lines right above it, without blank lines at its ends.
struct PinBlock {
  std::string text;
  std::vector<Rule> rules;  // of a [[rule]], one for each of its operations; else none
  bool bound = false;       // it requires something, or has a limit or an on_unsupported of its own: a tuned rule would not keep to that
};
struct PinText {
  std::string head;              // what stands before the first table
  std::vector<PinBlock> blocks;  // in the file's order
};
// Throws BadUse where the file can't be used, or has rules that are not written as [[rule]].
PinText read_pin_text(const std::string& file);

// What is to be tuned so that the file is right at this place: the problems of rules that are stale here and
// name one single problem, which no other rule covers in their place; and those of `logged` that no rule
// covers. Logged ones come first. Not those of bound rules.
std::vector<Usage> to_refresh(const PinText&, const std::vector<Usage>& logged, const Place&);

struct Refreshed {
  std::string text;
  std::size_t kept = 0, replaced = 0, added = 0;  // rules of the old file, and new ones
  std::size_t still_stale = 0;                    // kept rules for this GPU, but another cuDNN
  std::size_t bound = 0;                          // those of them that are bound
};
// The file with these new rules, by their old names, before the first of those that they are made for, and with `general` ones at
// its end (before rules for all of an operation, which nothing behind them would come by). Rules of this GPU
// for another cuDNN go where there is one for the same problem here now, unless `keep`; all else stays.
Refreshed refreshed(const PinText&, const std::vector<FrozenRule>& rules,
                    const std::vector<FrozenRule>& general, const Place&, bool keep);

// What became of it, for the person.
std::string summary_of(const Refreshed&, const std::string& file);

}  // namespace convpin::cli
