#include "tools/convpin/covers.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "shim/model/text.hpp"

namespace convpin::cli {
namespace {

bool inside(const Range& inner, const Range& outer) { return outer.low <= inner.low && inner.high <= outer.high; }

// What a rule wants of a problem, in its problem's text and its match together. What is not in here may be anything.
struct Wanted {
  std::map<std::string, Ranges> numbers;               // "x": a range a dimension; "pad": also one for all of them
  std::map<std::string, std::set<std::string>> words;  // "dtype": one of these
  bool none = false;                                   // nothing can be all of it

  void add(const std::string& key, const Ranges& ranges) {
    const auto [at, first] = numbers.try_emplace(key, ranges);
    if (first) return;
    Ranges& both = at->second;
    if (both.size() == 1 && ranges.size() > 1) both.resize(ranges.size(), both[0]);
    for (std::size_t i = 0; i < both.size(); ++i) {
      if (i >= ranges.size() && ranges.size() > 1) break;
      const Range& other = ranges[ranges.size() == 1 ? 0 : i];
      both[i] = {std::max(both[i].low, other.low), std::min(both[i].high, other.high)};
    }
    // One stands for all where there may be one; x and the like always have a number of dimensions of their own.
    none = none || (ranges.size() > 1 && both.size() != ranges.size()) ||
           std::ranges::any_of(both, [](const Range& range) { return range.low > range.high; });
  }
  void add(const std::string& key, const std::set<std::string>& allowed) {
    const auto [at, first] = words.try_emplace(key, allowed);
    if (!first) std::erase_if(at->second, [&](const std::string& word) { return !allowed.contains(word); });
    none = none || at->second.empty();
  }
};

template <typename List, typename Name>
std::set<std::string> names(const List& list, Name name) {
  std::set<std::string> all;
  for (const auto& item : list) all.insert(name(item));
  return all;
}

Wanted wanted_by(const Rule& rule) {
  Wanted wanted;
  // All their members by name: one that is added and not looked at here doesn't compile.
  const auto& [operation, dtype, wtype, ytype, otype, compute, layout, wlayout, ylayout, x, w, xstride, wstride, ystride, pad, post_pad,
               stride, dilation, groups, flipped, fused] = rule.problem;
  const auto& [mx, mw, my, mpad, mstride, mdilation, mgroups, mdims, mdtypes, mlayouts, mfused, devices, cudnn] = rule.match;
  const auto ranges_of = [](const ProblemPattern::Numbers& numbers) {
    Ranges ranges;
    for (std::size_t i = 0; i < static_cast<std::size_t>(numbers.count); ++i)
      ranges.push_back(numbers.at[i] < 0 ? Range{} : Range{numbers.at[i], numbers.at[i]});
    return ranges;
  };
  // A tensor of so many dimensions says how many of them are spatial.
  const auto tensor = [&](const char* key, const Ranges& ranges) {
    wanted.add(key, ranges);
    const auto spatial = static_cast<std::int64_t>(ranges.size()) - 2;
    wanted.add("dims", Ranges{{spatial, spatial}});
  };
  for (const auto& [key, numbers] : {std::pair("x", &x), std::pair("w", &w), std::pair("xstride", &xstride), std::pair("wstride", &wstride),
                                     std::pair("ystride", &ystride)})
    if (*numbers) tensor(key, ranges_of(**numbers));
  for (const auto& [key, ranges] : {std::pair("x", &mx), std::pair("w", &mw), std::pair("y", &my)})
    if (*ranges) tensor(key, **ranges);
  for (const auto& [key, numbers] :
       {std::pair("pad", &pad), std::pair("postpad", &post_pad), std::pair("stride", &stride), std::pair("dilation", &dilation)})
    if (*numbers) wanted.add(key, ranges_of(**numbers));
  for (const auto& [key, ranges] : {std::pair("pad", &mpad), std::pair("stride", &mstride), std::pair("dilation", &mdilation)})
    if (*ranges) wanted.add(key, **ranges);
  if (mdims) wanted.add("dims", Ranges{*mdims});
  if (groups) wanted.add("groups", Ranges{{*groups, *groups}});
  if (mgroups) wanted.add("groups", Ranges{*mgroups});

  const auto type_name = [](DataType t) { return name_of(t); };
  const auto name = [](Layout l) { return layout_name(l, 4); };
  for (const auto& [key, is] : {std::pair("dtype", &dtype), std::pair("wtype", &wtype), std::pair("ytype", &ytype),
                                std::pair("otype", &otype), std::pair("compute", &compute)})
    if (*is) wanted.add(key, std::set{type_name(**is)});
  for (const auto& [key, is] : {std::pair("layout", &layout), std::pair("wlayout", &wlayout), std::pair("ylayout", &ylayout)})
    if (*is) wanted.add(key, std::set{name(**is)});
  if (!mdtypes.empty()) wanted.add("dtype", names(mdtypes, type_name));
  if (!mlayouts.empty()) wanted.add("layout", names(mlayouts, name));
  if (flipped) wanted.add("mode", std::set<std::string>{*flipped ? "convolution" : "cross_correlation"});
  const auto any_fused = [&](bool any) { wanted.add("any fused", std::set<std::string>{any ? "yes" : "no"}); };
  if (fused) wanted.add("fused", std::set{*fused});
  if (fused) any_fused(!fused->empty());
  if (mfused) any_fused(*mfused);
  return wanted;
}

bool inside(const Ranges& inner, const Ranges& outer) {
  if (outer.size() > 1 && inner.size() != outer.size()) return false;
  for (std::size_t i = 0; i < inner.size(); ++i)
    if (!inside(inner[i], outer[outer.size() == 1 ? 0 : i])) return false;
  return true;
}

bool covers(const Wanted& first, const Wanted& later) {
  for (const auto& [key, ranges] : first.numbers) {
    const auto at = later.numbers.find(key);
    if (at == later.numbers.end() || !inside(at->second, ranges)) return false;
  }
  for (const auto& [key, allowed] : first.words) {
    const auto at = later.words.find(key);
    if (at == later.words.end() || !std::ranges::includes(allowed, at->second)) return false;
  }
  return true;
}

bool has_wildcard(const std::string& glob) { return glob.find_first_of("*?") != std::string::npos; }

bool covers(const Match& first, const Match& later) {
  const auto device = [&](const std::string& name) {
    const bool one = !has_wildcard(name);
    return std::ranges::any_of(first.devices,
                               [&](const std::string& glob) { return lower(glob) == lower(name) || (one && matches_glob(glob, name)); });
  };
  const auto version = [&](const Versions& v) {
    return std::ranges::any_of(first.cudnn, [&](const Versions& of) { return inside(v.range, of.range); });
  };
  return (first.devices.empty() || (!later.devices.empty() && std::ranges::all_of(later.devices, device))) &&
         (first.cudnn.empty() || (!later.cudnn.empty() && std::ranges::all_of(later.cudnn, version)));
}

bool may_meet(const Match& a, const Match& b) {
  const auto device = [&](const std::string& name) {
    return std::ranges::any_of(b.devices, [&](const std::string& other) {
      return (has_wildcard(name) && has_wildcard(other)) || matches_glob(name, other) || matches_glob(other, name);
    });
  };
  const auto version = [&](const Versions& v) {
    return std::ranges::any_of(b.cudnn,
                               [&](const Versions& other) { return v.range.low <= other.range.high && other.range.low <= v.range.high; });
  };
  return (a.devices.empty() || b.devices.empty() || std::ranges::any_of(a.devices, device)) &&
         (a.cudnn.empty() || b.cudnn.empty() || std::ranges::any_of(a.cudnn, version));
}

}  // namespace

bool covers(const Rule& first, const Rule& later) {
  return first.operation == later.operation && covers(first.match, later.match) && covers(wanted_by(first), wanted_by(later));
}

bool may_meet(const Rule& a, const Rule& b) {
  if (a.operation != b.operation || !may_meet(a.match, b.match)) return false;
  Wanted both = wanted_by(a);
  const Wanted more = wanted_by(b);
  for (const auto& [key, ranges] : more.numbers) both.add(key, ranges);
  for (const auto& [key, allowed] : more.words) both.add(key, allowed);
  return !both.none && !more.none;
}

bool contradicts_itself(const Rule& rule) { return wanted_by(rule).none; }

}  // namespace convpin::cli
