// Fails when a large tensor's data are not what a small one's are, repeated, or differ from one call to the next.
#include "tools/convclient/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace convclient {
namespace {

convpin::Tensor vector_of(std::int64_t count) {
  convpin::Tensor t;
  t.type = convpin::DataType::Half;
  t.rank = 1;
  t.dims[0] = count;
  t.strides[0] = 1;
  return t;
}

TEST(RepeatedRandomBytes, RepeatABlock) {
  constexpr std::int64_t kBlock = 999983, kSize = 2;
  const auto small = vector_of(1000), large = vector_of(2 * kBlock + 5);
  EXPECT_EQ(repeated_random_bytes(small, 7), random_bytes(small, 7));
  const Bytes bytes = repeated_random_bytes(large, 7);
  ASSERT_EQ(bytes.size(), static_cast<std::size_t>((2 * kBlock + 5) * kSize));
  const Bytes block = random_bytes(vector_of(kBlock), 7);
  for (const std::int64_t start : {std::int64_t{0}, kBlock, 2 * kBlock}) {
    const auto count = std::min<std::int64_t>(kBlock, 2 * kBlock + 5 - start) * kSize;
    EXPECT_TRUE(std::equal(block.begin(), block.begin() + count, bytes.begin() + start * kSize)) << start;
  }
  EXPECT_NE(repeated_random_bytes(small, 8), repeated_random_bytes(small, 7));
}

}  // namespace
}  // namespace convclient
