// Layouts, output dims, the hash and the canonical text of a problem. Reading text is pattern.cpp's.
//
// The numbers come from a caller's descriptors and may be anything: sums and products are made in
// unsigned arithmetic, which may wrap but not overflow.
#include "shim/model/problem.hpp"

#include <algorithm>
#include <cstring>

#include "shim/model/text.hpp"

namespace convpin {
namespace {

std::int32_t safe_rank(const Tensor& t) { return std::clamp(t.rank, 0, kMaxDims); }

bool fits(const Tensor& t, Layout layout) {
  if (layout == Layout::Strided) return false;
  Tensor packed = t;
  set_packed_strides(packed, layout);
  for (std::int32_t i = 0; i < safe_rank(t); ++i)
    if (t.dims[i] != 1 && t.strides[i] != packed.strides[i]) return false;
  return true;
}

using Numbers = std::array<std::int64_t, kMaxDims>;

std::string list(const Numbers& numbers, std::int32_t count) {
  std::string text;
  for (std::int32_t i = 0; i < std::clamp(count, 0, kMaxDims); ++i) {
    if (i) text += ',';
    text += std::to_string(numbers[i]);
  }
  return text;
}

std::string bracketed(const Numbers& numbers, std::int32_t count) { return "[" + list(numbers, count) + "]"; }

bool same(const Numbers& a, const Numbers& b, std::int32_t count) {
  return std::equal(a.begin(), a.begin() + std::clamp(count, 0, kMaxDims), b.begin());
}

// What is said only where it is not as usual.
std::string unusual_parts(const Problem& p, const Layouts& layouts) {
  std::string text;
  if (p.w.type != p.x.type) text += " wtype=" + name_of(p.w.type);
  if (p.y.type != p.x.type) text += " ytype=" + name_of(p.y.type);
  if (p.otype != kOwnType && p.otype != written(p).type) text += " otype=" + name_of(p.otype);
  if (p.compute != usual_compute_type(p.x.type)) text += " compute=" + name_of(p.compute);
  const auto layout_part = [&](const char* key, Layout layout, const Tensor& t) {
    if (layout != layouts.x && layout != Layout::Strided) text += key + layout_name(layout, t.rank);
  };
  layout_part(" wlayout=", layouts.w, p.w);
  layout_part(" ylayout=", layouts.y, p.y);
  const auto stride_part = [&](const char* key, Layout layout, const Tensor& t) {
    if (layout == Layout::Strided) text += key + bracketed(t.strides, t.rank);
  };
  stride_part(" xstride=", layouts.x, p.x);
  stride_part(" wstride=", layouts.w, p.w);
  stride_part(" ystride=", layouts.y, p.y);
  if (!same(p.post_pad, p.pad, p.spatial_dims())) text += " postpad=" + list(p.post_pad, p.spatial_dims());
  if (p.flipped) text += " mode=convolution";
  for (std::int32_t i = 0; i < std::clamp(p.fused_count, 0, kMaxFused); ++i)
    text += (i ? "," : " fused=") + fused_name(p.fused[i]);
  return text;
}

std::int64_t output_dim(std::int64_t x, std::int64_t w, std::int64_t padding, std::int64_t stride,
                        std::int64_t dilation) {
  using U = std::uint64_t;
  const auto room = static_cast<std::int64_t>(U(x) + U(padding) - (U(w) - 1) * U(dilation) - 1);
  return room < 0 || stride < 1 ? 0 : room / stride + 1;
}

}  // namespace

std::uint64_t hash(const Problem& p) {
  static_assert(sizeof(Problem) % sizeof(std::uint64_t) == 0);
  std::array<std::uint64_t, sizeof(Problem) / sizeof(std::uint64_t)> words;
  std::memcpy(words.data(), &p, sizeof p);
  std::uint64_t h = words.size();
  for (const std::uint64_t word : words) {  // splitmix64's finalizer over a running state
    h = (h ^ word) + 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    h ^= h >> 31;
  }
  return h;
}

void set_packed_strides(Tensor& t, Layout layout) {
  const std::int32_t rank = safe_rank(t);
  std::uint64_t next = 1;
  const auto place = [&](std::int32_t i) {
    t.strides[i] = static_cast<std::int64_t>(next);
    next *= static_cast<std::uint64_t>(t.dims[i]);
  };
  const bool last = layout == Layout::ChannelsLast && rank > 1;
  if (last) place(1);
  for (std::int32_t i = rank - 1; i >= 0; --i)
    if (!last || i != 1) place(i);
}

Layout layout_of(const Tensor& t) {
  for (const Layout layout : {Layout::ChannelsFirst, Layout::ChannelsLast})
    if (fits(t, layout)) return layout;
  return Layout::Strided;
}

Layouts layouts_of(const Problem& p) {
  for (const Layout layout : {Layout::ChannelsFirst, Layout::ChannelsLast})
    if (fits(p.x, layout) && fits(p.w, layout) && fits(p.y, layout)) return {layout, layout, layout};
  const Layout x = layout_of(p.x);
  const auto like_x = [&](const Tensor& t) { return fits(t, x) ? x : layout_of(t); };
  return {x, like_x(p.w), like_x(p.y)};
}

Problem canonical(const Problem& p) {
  Problem result = p;
  const Layouts layouts = layouts_of(p);
  const auto settle = [](Tensor& t, Layout layout) {
    if (layout != Layout::Strided) set_packed_strides(t, layout);
  };
  settle(result.x, layouts.x);
  settle(result.w, layouts.w);
  settle(result.y, layouts.y);
  if (result.otype == written(result).type) result.otype = kOwnType;
  return result;
}

std::size_t bytes_of(const Tensor& t) {
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(safe_rank(t)); ++i)
    last += (static_cast<std::uint64_t>(t.dims[i]) - 1) * static_cast<std::uint64_t>(t.strides[i]);
  return static_cast<std::size_t>(last + 1) * size_of(t.type);
}

Tensor output_of(const Problem& p, Layout layout, DataType type) {
  Tensor y;
  y.type = type;
  y.rank = safe_rank(p.x);
  y.dims[0] = p.x.dims[0];
  y.dims[1] = p.w.dims[0];
  for (std::int32_t i = 0; i + 2 < y.rank; ++i) {
    const auto padding = static_cast<std::int64_t>(static_cast<std::uint64_t>(p.pad[i]) +
                                                   static_cast<std::uint64_t>(p.post_pad[i]));
    y.dims[i + 2] = output_dim(p.x.dims[i + 2], p.w.dims[i + 2], padding, p.stride[i], p.dilation[i]);
  }
  if (layout != Layout::Strided) set_packed_strides(y, layout);
  return y;
}

const Tensor& written(const Problem& p) {
  return p.operation == Operation::BackwardData ? p.x : p.operation == Operation::BackwardFilter ? p.w : p.y;
}

DataType result_type(const Problem& p) { return p.otype == kOwnType ? written(p).type : p.otype; }

Problem in_memory(const Problem& p) {
  Problem result = p;
  Tensor& last = p.operation == Operation::BackwardData ? result.x : p.operation == Operation::BackwardFilter ? result.w : result.y;
  last.type = result_type(p);
  return result;
}

std::vector<std::string> operations_of(const Problem& p) {
  std::vector<std::string> before, behind;
  for (std::int32_t i = 0; i < std::clamp(p.fused_count, 0, kMaxFused); ++i)
    (p.fused[i] >= kFusedBefore ? before : behind).push_back(fused_name(p.fused[i] % kFusedBefore));
  before.emplace_back("convolution");
  before.insert(before.end(), behind.begin(), behind.end());
  return before;
}

std::string to_text(const Problem& p) {
  const Layouts layouts = layouts_of(p);
  const std::int32_t spatial = p.spatial_dims();
  std::string text = name_of(p.operation);
  text += " x=" + bracketed(p.x.dims, p.x.rank) + " w=" + bracketed(p.w.dims, p.w.rank);
  text += " " + name_of(p.x.type) + " " + layout_name(layouts.x, p.x.rank);
  text += " pad=" + list(p.pad, spatial) + " stride=" + list(p.stride, spatial);
  text += " dilation=" + list(p.dilation, spatial) + " groups=" + std::to_string(p.groups);
  return text + unusual_parts(p, layouts);
}

}  // namespace convpin
