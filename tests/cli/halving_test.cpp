// Fails when the search gives back something that does not fail, more than is needed, or asks far more often than halving
// does; or when a skipped test passes for an answer.
#include "tools/convpin/halving.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace convpin::cli {
namespace {

using Set = std::vector<std::size_t>;

bool holds(const Set& set, const Set& part) { return std::ranges::includes(set, part); }

Culprits search(std::size_t count, const Set& culprits) {
  std::set<Set> asked;
  return find_culprits(count, [&](const Set& set) {
    EXPECT_TRUE(asked.insert(set).second) << "asked twice";
    EXPECT_TRUE(std::ranges::is_sorted(set));
    EXPECT_FALSE(set.empty());
    return holds(set, culprits) ? Verdict::Bad : Verdict::Good;
  });
}

TEST(FindCulprits, OneOfMany) {
  for (const std::size_t count : {1u, 2u, 3u, 7u, 64u, 100u})
    for (std::size_t culprit = 0; culprit < count; ++culprit) {
      const Culprits found = search(count, {culprit});
      EXPECT_EQ(found.found, Set{culprit});
      EXPECT_TRUE(found.minimal);
      EXPECT_LE(found.tests, 14);  // 2 log2(100)
    }
}

TEST(FindCulprits, SeveralTogether) {
  for (const Set& culprits : {Set{0, 1}, Set{0, 63}, Set{5, 20, 41}, Set{0, 1, 2, 3, 4, 5, 6, 7}}) {
    EXPECT_EQ(search(64, culprits).found, culprits);
    EXPECT_EQ(search(culprits.back() + 1, culprits).found, culprits);
  }
}

TEST(FindCulprits, EitherOfTwoWillDo) {
  const Culprits found =
      find_culprits(16, [](const Set& set) { return holds(set, {3}) || holds(set, {12}) ? Verdict::Bad : Verdict::Good; });
  EXPECT_TRUE(found.found == Set{3} || found.found == Set{12});
}

TEST(FindCulprits, SkippedTestsDecideNothing) {
  // 3 fails; whatever holds 3 without 4 can't be tested.
  const Culprits found = find_culprits(8, [](const Set& set) {
    return !holds(set, {3}) ? Verdict::Good : holds(set, {4}) ? Verdict::Bad : Verdict::Skip;
  });
  EXPECT_EQ(found.found, (Set{3, 4}));
  EXPECT_FALSE(found.minimal);
}

}  // namespace
}  // namespace convpin::cli
