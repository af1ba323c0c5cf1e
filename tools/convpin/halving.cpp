#include "tools/convpin/halving.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace convpin::cli {
namespace {

using Set = std::vector<std::size_t>;

// In `pieces` parts of about the same size, none of them empty.
std::vector<Set> parts_of(const Set& all, std::size_t pieces) {
  std::vector<Set> parts;
  for (std::size_t i = 0; i < pieces; ++i)
    parts.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(all.size() * i / pieces),
                       all.begin() + static_cast<std::ptrdiff_t>(all.size() * (i + 1) / pieces));
  return parts;
}

Set without(const Set& all, const Set& part) {
  Set rest;
  std::ranges::set_difference(all, part, std::back_inserter(rest));
  return rest;
}

}  // namespace

Culprits find_culprits(std::size_t count, const std::function<Verdict(const Set&)>& test) {
  Culprits out;
  std::map<Set, Verdict> known;
  bool skipped = false;
  const auto bad = [&](const Set& set) {
    const auto [at, fresh] = known.try_emplace(set, Verdict::Good);
    if (fresh) {
      at->second = test(set);
      ++out.tests;
    }
    skipped = skipped || at->second == Verdict::Skip;
    return at->second == Verdict::Bad;
  };
  Set& current = out.found;
  current.resize(count);
  std::iota(current.begin(), current.end(), std::size_t{0});
  for (std::size_t pieces = 2; current.size() > 1;) {
    skipped = false;  // what is known of the last size decides whether it is the smallest
    const auto parts = parts_of(current, pieces);
    auto failing = std::ranges::find_if(parts, bad);
    if (failing != parts.end()) {
      current = Set(*failing);
      pieces = 2;
      continue;
    }
    if (pieces > 2) {  // of two parts, the rest is the other part
      failing = std::ranges::find_if(parts, [&](const Set& part) { return bad(without(current, part)); });
      if (failing != parts.end()) {
        current = without(current, *failing);
        pieces = std::max<std::size_t>(pieces - 1, 2);
        continue;
      }
    }
    if (pieces >= current.size()) break;
    pieces = std::min(pieces * 2, current.size());
  }
  out.minimal = !skipped;
  return out;
}

}  // namespace convpin::cli
