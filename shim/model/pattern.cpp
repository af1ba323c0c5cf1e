// Reading the text form, whole or in part, into a pattern, and matching.
#include <algorithm>
#include <limits>

#include "shim/model/problem.hpp"
#include "shim/model/text.hpp"

namespace convpin {
namespace {

using Numbers = ProblemPattern::Numbers;
constexpr std::int64_t kAny = -1;
// Larger than any tensor, and small enough that sums of products of two do not overflow.
constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();

std::string what_is_allowed() {
  return "allowed are forward, backward_data, backward_filter, a data type (float, half, bfloat16, double, int8, fp8_e4m3, fp8_e5m2, ...), "
         "a layout (nchw, nhwc, ncdhw, ndhwc, channels_first, channels_last, strided), x=[..] w=[..] pad= stride= dilation= groups= wtype= "
         "ytype= otype= compute= wlayout= ylayout= xstride=[..] wstride=[..] ystride=[..] postpad= mode= fused=";
}

// ---- the values of single parts. Each gives back what is wrong, or an empty text.

std::string read_list(std::string_view value, std::int64_t largest, Numbers& to) {
  if (value.starts_with('[') != value.ends_with(']')) return "a bracket is missing";
  if (value.starts_with('[')) value = value.substr(1, value.size() - 2);
  for (const std::string_view part : split(value, ',')) {
    if (to.count == kMaxDims) return "at most 8 numbers are allowed";
    const std::string_view number = trim(part);
    const auto read = number == "*" ? std::optional(kAny) : integer_from<std::int64_t>(number);
    if (!read || (*read < 0 && number != "*") || *read > largest)
      return quote(number) + " is not a number from 0 to " + std::to_string(largest);
    to.at[to.count++] = *read;
  }
  return {};
}

template <auto Member, std::int64_t Largest = kLargest>
std::string read_numbers(std::string_view value, ProblemPattern& to) {
  Numbers numbers;
  const std::string wrong = read_list(value, Largest, numbers);
  if (wrong.empty()) to.*Member = numbers;
  return wrong;
}

template <auto Member, auto From>
std::string read_word(std::string_view value, ProblemPattern& to) {
  to.*Member = From(value);
  return to.*Member ? "" : "no such name";
}

std::string read_groups(std::string_view value, ProblemPattern& to) {
  const auto groups = integer_from<std::int64_t>(value);
  if (!groups || *groups < 1 || *groups > kLargest) return "it must be a number from 1";
  to.groups = groups;
  return {};
}

std::string read_mode(std::string_view value, ProblemPattern& to) {
  const std::string mode = lower(value);
  if (mode == "convolution") to.flipped = true;
  if (mode == "cross_correlation" || mode == "cross-correlation") to.flipped = false;
  return to.flipped ? "" : "allowed are convolution and cross_correlation";
}

std::string read_fused(std::string_view value, ProblemPattern& to) {
  std::vector<std::string> names;
  if (lower(value) != "none") {
    for (const std::string_view part : split(value, ',')) {
      const auto mode = fused_from(part);
      if (!mode) return quote(part) + " is not a pointwise operation (none, add, mul, relu, ...)";
      names.push_back(fused_name(*mode));
    }
  }
  if (names.size() > kMaxFused) return "at most 8 operations are allowed";
  to.fused = join(names, ",");
  return {};
}

using P = ProblemPattern;
struct Part {
  std::string_view key;
  std::string (*read)(std::string_view, ProblemPattern&);
};
constexpr std::int64_t kAnyStride = std::numeric_limits<std::int64_t>::max();
constexpr Part kParts[] = {
    {"operation", read_word<&P::operation, operation_from>},
    {"type", read_word<&P::type, data_type_from>},
    {"layout", read_word<&P::layout, layout_from>},
    {"x", read_numbers<&P::x>},
    {"w", read_numbers<&P::w>},
    {"pad", read_numbers<&P::pad>},
    {"stride", read_numbers<&P::stride>},
    {"dilation", read_numbers<&P::dilation>},
    {"groups", read_groups},
    {"wtype", read_word<&P::wtype, data_type_from>},
    {"ytype", read_word<&P::ytype, data_type_from>},
    {"otype", read_word<&P::otype, data_type_from>},
    {"compute", read_word<&P::compute, data_type_from>},
    {"wlayout", read_word<&P::wlayout, layout_from>},
    {"ylayout", read_word<&P::ylayout, layout_from>},
    {"xstride", read_numbers<&P::xstride, kAnyStride>},
    {"wstride", read_numbers<&P::wstride, kAnyStride>},
    {"ystride", read_numbers<&P::ystride, kAnyStride>},
    {"postpad", read_numbers<&P::post_pad>},
    {"mode", read_mode},
    {"fused", read_fused},
};

// ---- the whole text

// Parts are separated by blanks, but people write "[32, 64, 56, 56]" too.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '[') ++depth;
    if (i < text.size() && text[i] == ']') --depth;
    if (i < text.size() && (depth > 0 || !is_blank(text[i]))) continue;
    if (i > begin) parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

// A bare word is an operation, a data type or a layout: the key that it stands for, empty for none.
std::string_view key_of_word(std::string_view word) {
  if (operation_from(word)) return "operation";
  if (data_type_from(word)) return "type";
  if (layout_from(word)) return "layout";
  return {};
}

class Reader {
 public:
  std::string read(std::string_view part) {
    const std::size_t equals = part.find('=');
    const bool bare = equals == part.npos;
    const std::string_view key = bare ? key_of_word(part) : part.substr(0, equals);
    const std::string_view value = bare ? part : trim(part.substr(equals + 1));
    if (part == "*") return {};
    for (std::size_t i = 0; i < std::size(kParts); ++i) {
      if (kParts[i].key != lower(key)) continue;
      if (seen_[i]) return quote(part) + ": " + std::string(kParts[i].key) + " is given twice";
      seen_[i] = true;
      if (value == "*") return {};
      const std::string wrong = kParts[i].read(value, pattern);
      return wrong.empty() ? wrong : quote(part) + " can't be read: " + wrong;
    }
    return quote(part) + " is not a part of a problem: " + what_is_allowed();
  }
  ProblemPattern pattern;

 private:
  std::array<bool, std::size(kParts)> seen_{};
};

// ---- matching

template <typename T>
bool agrees(const std::optional<T>& wanted, const T& is) {
  return !wanted || *wanted == is;
}

bool agrees(const std::optional<Numbers>& wanted, const std::array<std::int64_t, kMaxDims>& is,
            std::int32_t count, bool one_for_all = false) {
  if (!wanted) return true;
  const bool repeat = one_for_all && wanted->count == 1;
  if (!repeat && wanted->count != count) return false;
  for (std::int32_t i = 0; i < std::min(count, kMaxDims); ++i) {
    const std::int64_t number = wanted->at[repeat ? 0 : i];
    if (number != kAny && number != is[i]) return false;
  }
  return true;
}

std::string fused_text(const Problem& p) {
  std::vector<std::string> names;
  for (std::int32_t i = 0; i < std::clamp(p.fused_count, 0, kMaxFused); ++i)
    names.push_back(fused_name(p.fused[i]));
  return join(names, ",");
}

}  // namespace

bool ProblemPattern::matches(const Problem& p) const {
  const Layouts layouts = layouts_of(p);
  const std::int32_t spatial = p.spatial_dims();
  return agrees(operation, p.operation) && agrees(type, p.x.type) && agrees(wtype, p.w.type) && agrees(ytype, p.y.type) &&
         agrees(otype, result_type(p)) && agrees(compute, p.compute) && agrees(layout, layouts.x) && agrees(wlayout, layouts.w) &&
         agrees(ylayout, layouts.y) && agrees(x, p.x.dims, p.x.rank) && agrees(w, p.w.dims, p.w.rank) &&
         agrees(xstride, p.x.strides, p.x.rank) && agrees(wstride, p.w.strides, p.w.rank) && agrees(ystride, p.y.strides, p.y.rank) &&
         agrees(pad, p.pad, spatial, true) && agrees(post_pad, p.post_pad, spatial, true) && agrees(stride, p.stride, spatial, true) &&
         agrees(dilation, p.dilation, spatial, true) && agrees(groups, std::int64_t{p.groups}) && agrees(flipped, p.flipped != 0) &&
         (!fused || *fused == fused_text(p));
}

Parsed<ProblemPattern> parse_problem_pattern(std::string_view text) {
  Reader reader;
  for (const std::string_view part : parts_of(text))
    if (std::string wrong = reader.read(part); !wrong.empty())
      return Parsed<ProblemPattern>::fail(std::move(wrong));
  return Parsed<ProblemPattern>::ok(std::move(reader.pattern));
}

}  // namespace convpin
