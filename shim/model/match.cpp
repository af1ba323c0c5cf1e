// Reading ranges, versions and globs, and matching problems and places with them.
#include "shim/model/match.hpp"

#include <algorithm>
#include <array>

#include "shim/model/text.hpp"

namespace convpin {
namespace {

// ---- ranges

std::optional<std::int64_t> bound_from(std::string_view text, std::int64_t where_empty) {
  text = trim(text);
  if (text.empty()) return where_empty;
  const auto number = integer_from<std::int64_t>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

std::optional<Range> range_from(std::string_view text) {
  text = trim(text);
  if (text == "*" || text == "-1") return Range{};
  const std::size_t dots = text.find("..");
  const bool one = dots == text.npos;
  if (text.empty() || text == "..") return std::nullopt;
  const auto low = bound_from(text.substr(0, dots), 0);
  const auto high = one ? low : bound_from(text.substr(dots + 2), Range{}.high);
  if (!low || !high || *low > *high) return std::nullopt;
  return Range{*low, *high};
}

// ---- versions

constexpr std::int64_t kPart = 1000;  // comparable_version's digits for one of the three parts

// "9.19" stands for all of 9.19.x: the first and the last of them.
std::optional<Range> version_from(std::string_view text) {
  const auto parts = split(trim(text), '.');
  if (parts.size() > 3) return std::nullopt;
  Range range{0, 0};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto number = i < parts.size() ? integer_from<int>(parts[i]) : std::nullopt;
    if (i < parts.size() && (!number || *number < 0 || *number >= kPart)) return std::nullopt;
    range = {range.low * kPart + number.value_or(0), range.high * kPart + number.value_or(kPart - 1)};
  }
  return range;
}

struct Comparison {
  std::string_view sign;
  Range (*with)(Range version);
};
constexpr Comparison kComparisons[] = {  // longer signs before those they begin with
    {">=", [](Range v) { return Range{v.low, Range{}.high}; }},
    {"<=", [](Range v) { return Range{Range{}.low, v.high}; }},
    {"==", [](Range v) { return v; }},
    {">", [](Range v) { return Range{v.high + 1, Range{}.high}; }},
    {"<", [](Range v) { return Range{Range{}.low, v.low - 1}; }},
    {"=", [](Range v) { return v; }},
    {"", [](Range v) { return v; }},
};

std::optional<Range> versions_from(std::string_view text) {
  text = trim(text);
  if (const std::size_t dash = text.find('-'); dash != text.npos) {
    const auto first = version_from(text.substr(0, dash)), last = version_from(text.substr(dash + 1));
    if (!first || !last || first->low > last->high) return std::nullopt;
    return Range{first->low, last->high};
  }
  for (const Comparison& comparison : kComparisons) {
    if (!text.starts_with(comparison.sign)) continue;
    const auto version = version_from(text.substr(comparison.sign.size()));
    return version ? std::optional(comparison.with(*version)) : std::nullopt;
  }
  return std::nullopt;
}

std::array<std::size_t, 3> parts_of(std::size_t v) {
  const bool eight = v < 90000;  // cuDNN 8 and before: 1000 * major + 100 * minor + patch
  return {eight ? v / 1000 : v / 10000, eight ? v / 100 % 10 : v / 100 % 100, v % 100};
}

// ---- matching

bool agrees(const std::optional<Ranges>& wanted, const std::array<std::int64_t, kMaxDims>& is, std::int32_t count,
            bool one_for_all = false) {
  if (!wanted) return true;
  const bool repeat = one_for_all && wanted->size() == 1;
  if (!repeat && wanted->size() != static_cast<std::size_t>(count)) return false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count) && i < is.size(); ++i)
    if (!(*wanted)[repeat ? 0 : i].holds(is[i])) return false;
  return true;
}

bool agrees(const std::optional<Range>& wanted, std::int64_t is) { return !wanted || wanted->holds(is); }

template <typename T>
bool one_of(const std::vector<T>& wanted, const T& is) {
  return wanted.empty() || std::ranges::find(wanted, is) != wanted.end();
}

}  // namespace

Parsed<Range> parse_range(std::string_view text) {
  const auto range = range_from(text);
  if (!range)
    return Parsed<Range>::fail(quote(text) +
                               " is not a number or a range: allowed are a number from 0, \"128..512\" (both included), "
                               "\"128..\", \"..512\", and -1 or \"*\" for any");
  return Parsed<Range>::ok(*range);
}

Parsed<Versions> parse_versions(std::string_view text) {
  Versions all{{}, std::string(trim(text))};
  for (const std::string_view part : split(text, ',')) {
    const auto range = versions_from(part);
    if (!range)
      return Parsed<Versions>::fail(quote(part) +
                                    " is not a version of cuDNN: allowed are \"9.19\" (any 9.19.x), \"9.19.0\", \">=9.10\", \">9.9\", "
                                    "\"<9.5\", \"<=9.4\", \"9.1 - 9.4\", and several separated by commas, all of which must hold");
    all.range = {std::max(all.range.low, range->low), std::min(all.range.high, range->high)};
  }
  if (all.range.low > all.range.high)
    return Parsed<Versions>::fail(quote(text) + " holds for no version: what commas separate must all hold; alternatives are "
                                  "written [\"9.1\", \"9.4\"]");
  return Parsed<Versions>::ok(std::move(all));
}

std::int64_t comparable_version(std::size_t cudnn_version) {
  std::int64_t number = 0;
  for (const std::size_t part : parts_of(cudnn_version)) number = number * kPart + static_cast<std::int64_t>(part);
  return number;
}

std::string version_text(std::size_t cudnn_version) {
  const auto [major, minor, patch] = parts_of(cudnn_version);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

bool matches_glob(std::string_view glob, std::string_view text) {
  const std::string pattern = lower(glob), is = lower(text);
  std::size_t p = 0, t = 0, star = std::string::npos, resume = 0;
  while (t < is.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == is[t])) {
      ++p, ++t;
    } else if (star != std::string::npos) {  // the last star takes one character more
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string::npos;
}

bool Match::matches(const Place& place) const {
  const auto fits_device = [&](const std::string& glob) { return matches_glob(glob, place.device); };
  const auto fits_cudnn = [&](const Versions& v) {
    return place.cudnn_version > 0 && v.range.holds(comparable_version(place.cudnn_version));
  };
  return (devices.empty() || std::ranges::any_of(devices, fits_device)) &&
         (cudnn.empty() || std::ranges::any_of(cudnn, fits_cudnn));
}

bool Match::matches(const Problem& p, const Place& place) const { return matches(place) && matches(p); }

bool Match::matches(const Problem& p) const {
  const std::int32_t spatial = p.spatial_dims();
  return agrees(x, p.x.dims, p.x.rank) && agrees(w, p.w.dims, p.w.rank) && agrees(y, p.y.dims, p.y.rank) &&
         agrees(pad, p.pad, spatial, true) && agrees(stride, p.stride, spatial, true) &&
         agrees(dilation, p.dilation, spatial, true) && agrees(groups, p.groups) && agrees(dims, spatial) &&
         one_of(dtypes, p.x.type) && one_of(layouts, layouts_of(p).x) &&
         (!fused || *fused == (p.fused_count > 0));
}

}  // namespace convpin
