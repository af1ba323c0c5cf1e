// Fails when one of something is told in the plural, or several in the singular.
#include "tools/convpin/counted.hpp"

#include <gtest/gtest.h>

namespace convpin::cli {
namespace {

TEST(Counted, OneAndSeveral) {
  EXPECT_EQ(counted(0, "rule"), "0 rules");
  EXPECT_EQ(counted(1, "rule"), "1 rule");
  EXPECT_EQ(counted(2, "rule"), "2 rules");
  EXPECT_EQ(counted(1, "rule makes", "rules together make"), "1 rule makes");
  EXPECT_EQ(counted(3, "rule makes", "rules together make"), "3 rules together make");
}

}  // namespace
}  // namespace convpin::cli
