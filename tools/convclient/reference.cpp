#include "tools/convclient/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace convclient {

using convpin::DataType;
using convpin::kMaxDims;
using convpin::Problem;
using convpin::Tensor;

namespace {

using Index = std::array<std::int64_t, kMaxDims>;

Index unravel(std::int64_t flat, const std::int64_t* dims, int rank) {
  Index index{};
  for (int d = rank - 1; d >= 0; --d) {
    index[d] = flat % dims[d];
    flat /= dims[d];
  }
  return index;
}

std::int64_t offset(const Tensor& t, const Index& index) {
  std::int64_t at = 0;
  for (int d = 0; d < t.rank; ++d) at += index[d] * t.strides[d];
  return at;
}

}  // namespace

double reference_at(const Problem& p, const Inputs& in, std::int64_t flat) {
  const Index out = unravel(flat, p.y.dims.data(), p.y.rank);
  const std::int64_t channels = p.w.dims[1];  // of one group
  const std::int64_t group = out[1] / (p.w.dims[0] / p.groups);

  std::int64_t taps = 1;
  for (int d = 2; d < p.w.rank; ++d) taps *= p.w.dims[d];
  double sum = 0;
  for (std::int64_t t = 0; t < taps; ++t) {
    const Index tap = unravel(t, p.w.dims.data() + 2, p.spatial_dims());
    Index x{out[0]}, w{out[1]};
    bool inside = true;
    for (int s = 0; s < p.spatial_dims(); ++s) {
      x[s + 2] = out[s + 2] * p.stride[s] - p.pad[s] + tap[s] * p.dilation[s];
      w[s + 2] = p.flipped ? p.w.dims[s + 2] - 1 - tap[s] : tap[s];
      inside = inside && x[s + 2] >= 0 && x[s + 2] < p.x.dims[s + 2];
    }
    if (!inside) continue;
    std::int64_t x_at = offset(p.x, x) + group * channels * p.x.strides[1];
    std::int64_t w_at = offset(p.w, w);
    for (std::int64_t c = 0; c < channels; ++c, x_at += p.x.strides[1], w_at += p.w.strides[1])
      sum += read(p.x.type, in.x, x_at) * read(p.w.type, in.w, w_at);
  }
  if (in.beta != 0) sum += in.beta * read(p.y.type, in.y_before, offset(p.y, out));
  if (!in.bias.empty()) sum = std::max(0.0, sum + read(p.y.type, in.bias, out[1]));
  return sum;
}

std::vector<std::int64_t> elements_to_check(std::int64_t count, std::size_t limit, std::uint64_t seed) {
  std::vector<std::int64_t> chosen;
  if (count <= static_cast<std::int64_t>(limit)) {
    for (std::int64_t i = 0; i < count; ++i) chosen.push_back(i);
    return chosen;
  }
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < limit; ++i)
    chosen.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count)));
  return chosen;
}

double relative_error(const Problem& p, const Inputs& in, const Bytes& y,
                      const std::vector<std::int64_t>& elements) {
  double worst = 0, largest = 0;
  for (std::int64_t flat : elements) {
    const double ref = reference_at(p, in, flat);
    const double out = read(p.y.type, y, offset(p.y, unravel(flat, p.y.dims.data(), p.y.rank)));
    if (std::isnan(out)) return std::numeric_limits<double>::quiet_NaN();
    worst = std::max(worst, std::fabs(out - ref));
    largest = std::max(largest, std::fabs(ref));
  }
  return largest > 0 ? worst / largest : worst;
}

// 16 * (u_data + u_sum * sqrt(n)) with n = C/groups * R * S, the number of products in one output element.
//
// u is the unit roundoff: double 2^-53, float 2^-24, TF32 and half 2^-11, bfloat16 2^-8.
// u_data, of the coarsest of the types of x, w and y (TF32 for float where tensor cores are allowed):
// rounding the data is an error of each product by itself, so it grows as the result does, as sqrt(n), and
// its share of the result stays. u_sum, of the type that is summed in: each of n sums is rounded, so its
// share grows as sqrt(n) for random data. 16 covers the largest of thousands of elements against a typical
// one, Winograd's and FFT's larger constants, split reductions in the data's type and the tensor cores'
// truncation. Random data of a wrong algorithm are off by about 1.
double error_bound(const Problem& p, bool tf32) {
  const auto roundoff = [&](DataType type, bool data) {
    switch (type) {
      case DataType::Double:
        return 0x1p-53;
      case DataType::Half:
        return 0x1p-11;
      case DataType::BFloat16:
        return 0x1p-8;
      default:
        return data && tf32 ? 0x1p-11 : 0x1p-24;
    }
  };
  double products = static_cast<double>(p.w.dims[1]);
  for (int d = 2; d < p.w.rank; ++d) products *= static_cast<double>(p.w.dims[d]);
  const double data =
      std::max({roundoff(p.x.type, true), roundoff(p.w.type, true), roundoff(p.y.type, true)});
  return 16 * (data + roundoff(p.compute, false) * std::sqrt(products));
}

}  // namespace convclient
