#include "tools/convpin/pattern_words.hpp"

#include <algorithm>
#include <vector>

#include "shim/model/text.hpp"

namespace convpin::cli {
namespace {

std::string range_words(const Range& range) {
  const Range any;
  if (range == any) return "*";
  if (range.low == range.high) return std::to_string(range.low);
  return (range.low <= 0 ? "" : std::to_string(range.low)) + ".." + (range.high == any.high ? "" : std::to_string(range.high));
}

std::string match_words(const Match& match) {
  std::vector<std::string> parts;
  const auto ranges = [&](const char* key, const std::optional<Ranges>& of, bool brackets) {
    if (!of) return;
    std::vector<std::string> items;
    for (const Range& range : *of) items.push_back(range_words(range));
    parts.push_back(std::string(key) + "=" + (brackets ? "[" : "") + join(items, ",") + (brackets ? "]" : ""));
  };
  const auto range = [&](const char* key, const std::optional<Range>& of) {
    if (of) parts.push_back(std::string(key) + "=" + range_words(*of));
  };
  const auto words = [&](const char* key, const auto& of, const auto& name) {
    std::vector<std::string> items;
    for (const auto& item : of) items.push_back(name(item));
    if (!items.empty()) parts.push_back(std::string(key) + "=" + join(items, ","));
  };
  ranges("x", match.x, true);
  ranges("w", match.w, true);
  ranges("y", match.y, true);
  ranges("pad", match.pad, false);
  ranges("stride", match.stride, false);
  ranges("dilation", match.dilation, false);
  range("groups", match.groups);
  range("dims", match.dims);
  words("dtype", match.dtypes, [](DataType type) { return name_of(type); });
  words("layout", match.layouts, [](Layout layout) { return layout_name(layout, 4); });
  if (match.fused) parts.emplace_back(*match.fused ? "fused=true" : "fused=false");
  return join(parts, " ");
}

}  // namespace

std::string to_text(const ProblemPattern& p) {
  std::vector<std::string> parts;
  const auto numbers = [&](const char* key, const std::optional<ProblemPattern::Numbers>& n, bool brackets) {
    if (!n) return;
    std::vector<std::string> items;
    for (std::int32_t i = 0; i < n->count; ++i)
      items.push_back(n->at[static_cast<std::size_t>(i)] < 0 ? "*" : std::to_string(n->at[static_cast<std::size_t>(i)]));
    parts.push_back(std::string(key) + "=" + (brackets ? "[" : "") + join(items, ",") + (brackets ? "]" : ""));
  };
  const auto type = [&](const char* key, const std::optional<DataType>& t) {
    if (t) parts.push_back(key + name_of(*t));
  };
  const std::int32_t rank = p.x ? p.x->count : p.w ? p.w->count : 4;
  const auto layout = [&](const char* key, const std::optional<Layout>& l) {
    if (l) parts.push_back(key + layout_name(*l, rank));
  };
  if (p.operation) parts.emplace_back(name_of(*p.operation));
  numbers("x", p.x, true);
  numbers("w", p.w, true);
  type("", p.type);
  layout("", p.layout);
  numbers("pad", p.pad, false);
  numbers("stride", p.stride, false);
  numbers("dilation", p.dilation, false);
  if (p.groups) parts.push_back("groups=" + std::to_string(*p.groups));
  type("wtype=", p.wtype);
  type("ytype=", p.ytype);
  type("otype=", p.otype);
  type("compute=", p.compute);
  layout("wlayout=", p.wlayout);
  layout("ylayout=", p.ylayout);
  numbers("xstride", p.xstride, true);
  numbers("wstride", p.wstride, true);
  numbers("ystride", p.ystride, true);
  numbers("postpad", p.post_pad, false);
  if (p.flipped) parts.emplace_back(*p.flipped ? "mode=convolution" : "mode=cross_correlation");
  if (p.fused) parts.push_back("fused=" + (p.fused->empty() ? "none" : *p.fused));
  return join(parts, " ");
}

std::string with_operation(const ProblemPattern& pattern, Operation operation) {
  const std::string text = to_text(pattern);
  return pattern.operation ? text : name_of(operation) + std::string(text.empty() ? "" : " ") + text;
}

std::string what_for(Operation operation, const ProblemPattern& pattern, const Match& match) {
  const std::string where = match_words(match);
  return with_operation(pattern, operation) + (where.empty() ? "" : " where " + where);
}

std::string place_words(const Match& match) {
  std::vector<std::string> words, versions;
  if (!match.devices.empty()) words.push_back(join(match.devices, " or "));
  for (const Versions& v : match.cudnn) versions.push_back(v.text);
  if (!versions.empty()) words.push_back("cuDNN " + join(versions, " or "));
  return join(words, ", ");
}

std::string whole_for(Operation operation, const ProblemPattern& pattern, const Match& match) {
  const std::string text = what_for(operation, pattern, match), place = place_words(match);
  return place.empty() ? text : text + " (" + place + ")";
}

}  // namespace convpin::cli
