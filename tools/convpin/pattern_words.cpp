#include "tools/convpin/pattern_words.hpp"

#include <algorithm>
#include <vector>

#include "shim/model/text.hpp"

namespace convpin::cli {

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

std::string place_words(const Match& match) {
  std::vector<std::string> words, versions;
  if (!match.devices.empty()) words.push_back(join(match.devices, " or "));
  for (const Versions& v : match.cudnn) versions.push_back(v.text);
  if (!versions.empty()) words.push_back("cuDNN " + join(versions, " or "));
  return join(words, ", ");
}

}  // namespace convpin::cli
