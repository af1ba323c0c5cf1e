#include "tools/convclient/reference.hpp"

#include <cudnn.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>

namespace convclient {

using convpin::DataType;
using convpin::kMaxDims;
using convpin::Operation;
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

std::int64_t product(const std::int64_t* dims, int count) {
  std::int64_t all = 1;
  for (int d = 0; d < count; ++d) all *= dims[d];
  return all;
}

// Where the tap of an output position lies in x. False: in the padding.
bool input_of(const Problem& p, const Index& out, const Index& tap, Index& in) {
  for (int s = 0; s < p.spatial_dims(); ++s) {
    in[s] = out[s] * p.stride[s] - p.pad[s] + tap[s] * p.dilation[s];
    if (in[s] < 0 || in[s] >= p.x.dims[s + 2]) return false;
  }
  return true;
}

// The output position whose tap lies there in x. False: there is none.
bool output_of(const Problem& p, const Index& in, const Index& tap, Index& out) {
  for (int s = 0; s < p.spatial_dims(); ++s) {
    const std::int64_t from = in[s] + p.pad[s] - tap[s] * p.dilation[s];
    out[s] = from / p.stride[s];
    if (from % p.stride[s] != 0 || from < 0 || out[s] >= p.y.dims[s + 2]) return false;
  }
  return true;
}

// An element by its first two dims and its position in the others.
std::int64_t offset(const Tensor& t, std::int64_t first, std::int64_t second, const Index& position) {
  Index index{first, second};
  for (int d = 2; d < t.rank; ++d) index[d] = position[d - 2];
  return offset(t, index);
}

// What the convolution's definition calls w[..., tap].
Index tap_in_filter(const Problem& p, Index tap) {
  for (int s = 0; s < p.spatial_dims() && p.flipped; ++s) tap[s] = p.w.dims[s + 2] - 1 - tap[s];
  return tap;
}

Index position_of(const Index& index) {
  Index position{};
  std::copy(index.begin() + 2, index.end(), position.begin());
  return position;
}

double forward_at(const Problem& p, const Inputs& in, const Index& at) {
  const std::int64_t channels = p.w.dims[1], group = at[1] / (p.w.dims[0] / p.groups);
  const std::int64_t taps = product(p.w.dims.data() + 2, p.spatial_dims());
  double sum = 0;
  for (std::int64_t t = 0; t < taps; ++t) {
    const Index tap = unravel(t, p.w.dims.data() + 2, p.spatial_dims());
    Index x{};
    if (!input_of(p, position_of(at), tap, x)) continue;
    std::int64_t x_at = offset(p.x, at[0], group * channels, x);
    std::int64_t w_at = offset(p.w, at[1], 0, tap_in_filter(p, tap));
    for (std::int64_t c = 0; c < channels; ++c, x_at += p.x.strides[1], w_at += p.w.strides[1])
      sum += read(p.x.type, in.x, x_at) * read(p.w.type, in.w, w_at);
  }
  return sum;
}

double backward_data_at(const Problem& p, const Inputs& in, const Index& at) {
  const std::int64_t filters = p.w.dims[0] / p.groups, group = at[1] / p.w.dims[1];
  const std::int64_t taps = product(p.w.dims.data() + 2, p.spatial_dims());
  double sum = 0;
  for (std::int64_t t = 0; t < taps; ++t) {
    const Index tap = unravel(t, p.w.dims.data() + 2, p.spatial_dims());
    Index y{};
    if (!output_of(p, position_of(at), tap, y)) continue;
    std::int64_t y_at = offset(p.y, at[0], group * filters, y);
    std::int64_t w_at = offset(p.w, group * filters, at[1] % p.w.dims[1], tap_in_filter(p, tap));
    for (std::int64_t k = 0; k < filters; ++k, y_at += p.y.strides[1], w_at += p.w.strides[0])
      sum += read(p.y.type, in.y, y_at) * read(p.w.type, in.w, w_at);
  }
  return sum;
}

double backward_filter_at(const Problem& p, const Inputs& in, const Index& at) {
  const std::int64_t group = at[0] / (p.w.dims[0] / p.groups), channel = group * p.w.dims[1] + at[1];
  const std::int64_t positions = product(p.y.dims.data() + 2, p.spatial_dims());
  const Index tap = tap_in_filter(p, position_of(at));
  double sum = 0;
  for (std::int64_t q = 0; q < positions; ++q) {
    const Index y = unravel(q, p.y.dims.data() + 2, p.spatial_dims());
    Index x{};
    if (!input_of(p, y, tap, x)) continue;
    std::int64_t x_at = offset(p.x, 0, channel, x);
    std::int64_t y_at = offset(p.y, 0, at[0], y);
    for (std::int64_t n = 0; n < p.x.dims[0]; ++n, x_at += p.x.strides[0], y_at += p.y.strides[0])
      sum += read(p.x.type, in.x, x_at) * read(p.y.type, in.y, y_at);
  }
  return sum;
}

}  // namespace

bool knows_fused(const Problem& p) {
  static constexpr std::int32_t kBias[] = {CUDNN_POINTWISE_ADD, CUDNN_POINTWISE_RELU_FWD};
  static constexpr std::int32_t kZAndBias[] = {CUDNN_POINTWISE_ADD, CUDNN_POINTWISE_ADD, CUDNN_POINTWISE_RELU_FWD};
  const auto fused = std::span(p.fused).first(static_cast<std::size_t>(p.fused_count));
  return fused.empty() || (p.operation == Operation::Forward && (std::ranges::equal(fused, kBias) || std::ranges::equal(fused, kZAndBias)));
}

bool has_reference(const Problem& p) {
  return knows_fused(p) && can_hold(p.x.type) && can_hold(p.w.type) && can_hold(p.y.type) && can_hold(convpin::result_type(p));
}

const Bytes& Inputs::written(const Problem& p) const {
  return p.operation == Operation::Forward ? y : p.operation == Operation::BackwardData ? x : w;
}
Bytes& Inputs::written(const Problem& p) {
  return const_cast<Bytes&>(static_cast<const Inputs&>(*this).written(p));
}

double reference_at(const Problem& p, const Inputs& in, std::int64_t flat) {
  const Tensor& out = convpin::written(p);
  const DataType type = convpin::result_type(p);
  const Index at = unravel(flat, out.dims.data(), out.rank);
  double sum = p.operation == Operation::Forward        ? forward_at(p, in, at)
               : p.operation == Operation::BackwardData ? backward_data_at(p, in, at)
                                                        : backward_filter_at(p, in, at);
  if (in.beta != 0) sum += in.beta * read(type, in.written(p), offset(out, at));
  if (!in.z.empty()) sum += read(type, in.z, offset(out, at));
  if (!in.bias.empty()) sum = std::max(0.0, sum + read(type, in.bias, at[1]));
  return sum;
}

double products_of(const Problem& p) {
  const bool over_positions = p.operation == Operation::BackwardFilter;
  const std::int64_t summed = over_positions                           ? p.x.dims[0]
                              : p.operation == Operation::BackwardData ? p.w.dims[0] / p.groups
                                                                       : p.w.dims[1];
  const Tensor& place = over_positions ? p.y : p.w;
  return static_cast<double>(summed * product(place.dims.data() + 2, p.spatial_dims()));
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

double relative_error(const Problem& p, const Inputs& in, const Bytes& output,
                      const std::vector<std::int64_t>& elements) {
  const Tensor& t = convpin::written(p);
  double worst = 0, largest = 0;
  for (std::int64_t flat : elements) {
    const double ref = reference_at(p, in, flat);
    const double out = read(convpin::result_type(p), output, offset(t, unravel(flat, t.dims.data(), t.rank)));
    if (std::isnan(out)) return std::numeric_limits<double>::quiet_NaN();
    worst = std::max(worst, std::fabs(out - ref));
    largest = std::max(largest, std::fabs(ref));
  }
  return largest > 0 ? worst / largest : worst;
}

// 16 * (u_data + u_sum * sqrt(n)) with n = products_of, the number of products in one output element.
//
// u is the unit roundoff: double 2^-53, float 2^-24, TF32 and half 2^-11, bfloat16 2^-8.
// u_data, of the coarsest of the types of x, w, y and the result (TF32 for float where tensor cores are allowed):
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
  const double data =
      std::max({roundoff(p.x.type, true), roundoff(p.w.type, true), roundoff(p.y.type, true), roundoff(convpin::result_type(p), true)});
  return 16 * (data + roundoff(p.compute, false) * std::sqrt(products_of(p)));
}

}  // namespace convclient
