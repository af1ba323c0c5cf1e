// From the text form to a problem: read as a pattern, then completed and checked.
#include <algorithm>

#include "shim/model/problem.hpp"
#include "shim/model/text.hpp"

namespace convpin {
namespace {

using Numbers = ProblemPattern::Numbers;

std::string dims_into(const char* name, const std::optional<Numbers>& numbers, Tensor& t) {
  if (!numbers) return std::string("x=[..] and w=[..] are needed, and ") + name + " is missing";
  t.rank = numbers->count;
  t.dims = numbers->at;
  std::int64_t elements = 1;
  for (std::int32_t i = 0; i < t.rank; ++i)
    if (t.dims[i] < 1 || __builtin_mul_overflow(elements, t.dims[i], &elements))
      return std::string(name) + "'s dimensions must be at least 1 and their product below 2^63";
  return {};
}

std::string spatial_into(const char* name, const std::optional<Numbers>& numbers, std::int64_t usual,
                         std::int64_t smallest, const Problem& p, std::array<std::int64_t, kMaxDims>& to) {
  const std::int32_t count = p.spatial_dims();
  if (numbers && numbers->count != 1 && numbers->count != count)
    return std::string(name) + " needs " + std::to_string(count) + " numbers, or one for all";
  for (std::int32_t i = 0; i < count; ++i) {
    to[i] = numbers ? numbers->at[numbers->count == 1 ? 0 : i] : usual;
    if (to[i] < smallest) return std::string(name) + " must be at least " + std::to_string(smallest);
  }
  return {};
}

std::string strides_into(const char* name, const std::optional<Numbers>& strides, Layout layout, Tensor& t) {
  if (!strides && layout == Layout::Strided)
    return "a strided tensor needs its strides: " + std::string(name) + "stride=[..]";
  if (strides && strides->count != t.rank)
    return std::string(name) + "stride needs " + std::to_string(t.rank) + " numbers";
  if (strides) {
    t.strides = strides->at;
  } else {
    set_packed_strides(t, layout);
  }
  return {};
}

std::string check_shape(const Problem& p) {
  if (p.x.rank < 3 || p.x.rank != p.w.rank)
    return "x and w need the same number of dimensions, from 3 to 8 (N, C, and one for each axis)";
  return {};
}

std::string check_channels(const Problem& p) {
  if (p.w.dims[1] * p.groups != p.x.dims[1] || p.w.dims[0] % p.groups != 0)
    return "the channels don't agree: x has " + std::to_string(p.x.dims[1]) + ", w takes " +
           std::to_string(p.w.dims[1]) + " in each of " + std::to_string(p.groups) + " groups and gives " +
           std::to_string(p.w.dims[0]);
  return {};
}

std::string output_into(const ProblemPattern& from, Layout layout, Problem& p) {
  p.y = output_of(p, layout, from.ytype.value_or(p.x.type));
  std::int64_t elements = 1;
  for (std::int32_t i = 0; i < p.y.rank; ++i)
    if (p.y.dims[i] < 1 || __builtin_mul_overflow(elements, p.y.dims[i], &elements))
      return "there is no output: the filter is larger than the padded input, or the output is too large";
  return strides_into("y", from.ystride, layout, p.y);
}

void words_into(const ProblemPattern& from, Problem& p) {
  p.operation = from.operation.value_or(Operation::Forward);
  p.x.type = from.type.value_or(DataType::Float);
  p.w.type = from.wtype.value_or(p.x.type);
  p.compute = from.compute.value_or(usual_compute_type(p.x.type));
  p.groups = static_cast<std::int32_t>(from.groups.value_or(1));
  p.flipped = from.flipped.value_or(false);
  if (!from.fused || from.fused->empty()) return;
  for (const std::string_view name : split(*from.fused, ','))
    p.fused[p.fused_count++] = fused_from(name).value_or(0);
}

// Needs the types of x, w and y.
std::string result_into(const ProblemPattern& from, Problem& p) {
  if (!from.otype || *from.otype == written(p).type) return {};
  const auto end = p.fused.begin() + p.fused_count;
  if (std::none_of(p.fused.begin(), end, [](std::int32_t fused) { return fused < kFusedOther; }))
    return "otype is the type of what the last operation behind the convolution writes (fused=relu), and there is none; the "
           "convolution's own output has " +
           std::string(p.operation == Operation::Forward        ? "ytype"
                       : p.operation == Operation::BackwardData ? "x's type"
                                                                : "wtype");
  p.otype = *from.otype;
  return {};
}

// Gives back what is wrong, or an empty text.
std::string complete(const ProblemPattern& from, Problem& p) {
  words_into(from, p);
  const Layout layout = from.xstride ? Layout::Strided : from.layout.value_or(Layout::ChannelsFirst);
  const Layout others =
      from.layout.value_or(Layout::Strided) == Layout::Strided ? Layout::ChannelsFirst : *from.layout;
  const auto layout_of_other = [&](std::optional<Layout> own) { return own.value_or(others); };
  const auto post_pad = from.post_pad ? from.post_pad : from.pad;
  std::string wrong = dims_into("x", from.x, p.x);
  if (wrong.empty()) wrong = dims_into("w", from.w, p.w);
  if (wrong.empty()) wrong = check_shape(p);
  if (wrong.empty()) wrong = check_channels(p);
  if (wrong.empty()) wrong = spatial_into("pad", from.pad, 0, 0, p, p.pad);
  if (wrong.empty()) wrong = spatial_into("postpad", post_pad, 0, 0, p, p.post_pad);
  if (wrong.empty()) wrong = spatial_into("stride", from.stride, 1, 1, p, p.stride);
  if (wrong.empty()) wrong = spatial_into("dilation", from.dilation, 1, 1, p, p.dilation);
  if (wrong.empty()) wrong = strides_into("x", from.xstride, layout, p.x);
  if (wrong.empty()) wrong = strides_into("w", from.wstride, layout_of_other(from.wlayout), p.w);
  if (wrong.empty()) wrong = output_into(from, layout_of_other(from.ylayout), p);
  if (wrong.empty()) wrong = result_into(from, p);
  return wrong;
}

}  // namespace

Parsed<Problem> parse_problem(std::string_view text) {
  if (text.find('*') != text.npos)
    return Parsed<Problem>::fail(quote(text) + ": a '*' is for rules, a problem needs its numbers");
  const Parsed<ProblemPattern> pattern = parse_problem_pattern(text);
  if (!pattern) return Parsed<Problem>::fail(pattern.error);
  Problem problem;
  std::string wrong = complete(*pattern, problem);
  if (!wrong.empty()) return Parsed<Problem>::fail(quote(text) + ": " + wrong);
  return Parsed<Problem>::ok(problem);
}

}  // namespace convpin
