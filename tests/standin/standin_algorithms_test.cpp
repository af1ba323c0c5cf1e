// The stand-in's algorithms themselves, without cuDNN: every one on every shape that it can do, beyond what
// cuDNN would let through. Fails when one computes a wrong convolution.
#include "tests/standin/test_problem.hpp"

namespace standin {
namespace {

const Shape shapes[] = {{2, 5, 13, 11, 7, 3, 3, 1},
                        {1, 4, 40, 37, 6, 3, 3, 2},
                        {2, 6, 12, 10, 8, 3, 3, 0, 1, 1, 2},
                        {1, 3, 33, 9, 4, 5, 7, 2},
                        {2, 6, 14, 9, 4, 3, 3, 2, 2, 2, 2},
                        {1, 4, 15, 12, 4, 3, 2, 0, 3, 1, 4},  // rows and columns that no tap sees
                        {1, 2, 5, 6, 3, 2, 3, 4},             // padding larger than the filter
                        {2, 4, 7, 6, 6, 3, 3, 1, 2, 1, 2, 5, 3},
                        {1, 2, 6, 5, 3, 2, 3, 2, 1, 2, 1, 7, 3},
                        {1, 1, 1, 1, 1, 1, 1}};

void expect_right(Algorithm algorithm, const Problem& p) {
  const std::vector<double> values[] = {unpack(p.x, p.x_memory), unpack(p.w, p.w_memory),
                                        unpack(p.y, p.y_memory)};
  const auto& a = values[first_of(p.operation)];
  const auto& b = values[second_of(p.operation)];
  const std::vector<float> a_float(a.begin(), a.end()), b_float(b.begin(), b.end());
  std::vector<std::byte> workspace(transform_bytes(p.operation, algorithm, p.conv, sizeof(double)));
  std::vector<double> result(p.reference.size());
  std::vector<float> result_float(p.reference.size());
  Scratch in_workspace{workspace}, on_heap{std::span<std::byte>()};
  convolve(p.operation, algorithm, p.conv, a.data(), b.data(), result.data(), in_workspace);
  convolve(p.operation, algorithm, p.conv, a_float.data(), b_float.data(), result_float.data(), on_heap);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double expected = p.reference[i];
    ASSERT_NEAR(result[i], expected, error_bound(CUDNN_DATA_DOUBLE, algorithm, p.terms(), expected));
    // the inputs were rounded to float as well: one more unit each per term
    ASSERT_NEAR(result_float[i], expected, 2 * error_bound(CUDNN_DATA_FLOAT, algorithm, p.terms(), expected));
  }
}

TEST(StandinAlgorithms, AgreeWithTheDefinition) {
  int checked = 0;
  for (Shape shape : shapes) {
    for (int i = 0; i < operation_count * algorithm_count * 2; ++i) {
      shape.operation = static_cast<Operation>(i / 2 / algorithm_count);
      const auto algorithm = static_cast<Algorithm>(i / 2 % algorithm_count);
      const Problem p = make_problem(shape, CUDNN_DATA_DOUBLE, Layout::Nchw, i % 2 == 1);
      if (!documented_as_supported(shape.operation, algorithm, p.conv)) continue;
      SCOPED_TRACE(::testing::Message() << name_of(shape.operation) << ' ' << name_of(algorithm) << " h "
                                        << shape.h << " r " << shape.r << " turned " << p.conv.flipped);
      expect_right(algorithm, p);
      ++checked;
    }
  }
  EXPECT_GT(checked, 250);
}

}  // namespace
}  // namespace standin
