// Reading and writing single values.
#include "config/values.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "shim/model/text.hpp"

namespace convpin {
namespace {

struct Unit {
  std::string_view name;  // lower case
  double factor;
};
constexpr Unit kByteUnits[] = {{"", 1},     {"b", 1},      {"kb", 1e3},      {"mb", 1e6},
                               {"gb", 1e9}, {"kib", 1024}, {"mib", 1048576}, {"gib", 1073741824}};
constexpr Unit kTimeUnits[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"min", 60}, {"h", 3600}};

bool starts_number(char c) { return (c >= '0' && c <= '9') || c == '.'; }

// A decimal number without sign or exponent, and a unit. Nothing for anything else.
template <std::size_t N>
std::optional<double> number_with_unit(std::string_view text, const Unit (&units)[N]) {
  text = trim(text);
  if (text.empty() || !starts_number(text.front())) return std::nullopt;
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (problem != std::errc{}) return std::nullopt;
  const std::string unit = lower(trim({stop, static_cast<std::size_t>(end - stop)}));
  for (const Unit& known : units)
    if (unit == known.name) return number * known.factor;
  return std::nullopt;
}

// The words for the values of an enum, in its order, and what such a value is called.
struct Words {
  const char* what;
  std::span<const char* const> words;
};
constexpr const char* kLevelWords[] = {"off", "algorithms", "engines"};
constexpr const char* kOnUnsupportedWords[] = {"fallback", "error"};
constexpr const char* kOnMissWords[] = {"leave", "error"};
constexpr Words kLevels{"a profile level", kLevelWords};
constexpr Words kOnUnsupported{"a way out", kOnUnsupportedWords};
constexpr Words kOnMiss{"a way out", kOnMissWords};

template <typename Enum>
Parsed<Enum> word_from(const Words& known, std::string_view text) {
  const std::string wanted = lower(trim(text));
  for (std::size_t i = 0; i < known.words.size(); ++i)
    if (wanted == known.words[i]) return Parsed<Enum>::ok(static_cast<Enum>(i));
  return Parsed<Enum>::fail(quote(text) + " is not " + known.what + ": allowed are " +
                            join({known.words.begin(), known.words.end()}, ", "));
}

struct BoolWord {
  const char* word;
  bool value;
};
constexpr BoolWord kBoolWords[] = {{"1", true},  {"0", false},   {"true", true}, {"false", false},
                                   {"on", true}, {"off", false}, {"yes", true},  {"no", false}};

constexpr int kLargestCount = 1000000;

}  // namespace

Parsed<std::int64_t> parse_bytes(std::string_view text) {
  using Result = Parsed<std::int64_t>;
  // Whole numbers of bytes are exact, which they would not be as a double.
  if (const auto whole = integer_from<std::int64_t>(trim(text)); whole && *whole >= 0)
    return Result::ok(*whole);
  const auto bytes = number_with_unit(text, kByteUnits);
  if (!bytes || !(*bytes < 0x1p63))
    return Result::fail(
        quote(text) +
        " is not a size: allowed is a number from 0 to below 2^63 bytes, with B, KB, MB, GB, KiB, "
        "MiB, GiB or no unit, e.g. 64 MiB");
  return Result::ok(std::llround(*bytes));
}

Parsed<double> parse_seconds(std::string_view text) {
  const auto seconds = number_with_unit(text, kTimeUnits);
  if (!seconds || !std::isfinite(*seconds))
    return Parsed<double>::fail(quote(text) +
                                " is not a time: allowed is a number from 0, with ms, s, min, h or no unit for "
                                "seconds, e.g. 10 s");
  return Parsed<double>::ok(*seconds);
}

template <>
Parsed<std::string> setting_from(std::string_view, std::string_view text) {
  return Parsed<std::string>::ok(std::string(text));
}

template <>
Parsed<bool> setting_from(std::string_view, std::string_view text) {
  const std::string wanted = lower(trim(text));
  for (const BoolWord& known : kBoolWords)
    if (wanted == known.word) return Parsed<bool>::ok(known.value);
  return Parsed<bool>::fail(quote(text) +
                            " is neither yes nor no: allowed are 0, 1, true, false, on, off, yes, no");
}

template <>
Parsed<ProfileLevel> setting_from(std::string_view, std::string_view text) {
  return word_from<ProfileLevel>(kLevels, text);
}

template <>
Parsed<OnUnsupported> setting_from(std::string_view, std::string_view text) {
  return word_from<OnUnsupported>(kOnUnsupported, text);
}

template <>
Parsed<OnMiss> setting_from(std::string_view, std::string_view text) {
  return word_from<OnMiss>(kOnMiss, text);
}

template <>
Parsed<int> setting_from(std::string_view member, std::string_view text) {
  const int smallest = member == "profile_repeats" ? 1 : 0;  // the median of no run is no time
  const auto count = integer_from<int>(trim(text));
  if (!count || *count < smallest || *count > kLargestCount)
    return Parsed<int>::fail(quote(text) + " is not allowed: it must be a whole number from " +
                             std::to_string(smallest) + " to " + std::to_string(kLargestCount));
  return Parsed<int>::ok(*count);
}

template <>
Parsed<std::int64_t> setting_from(std::string_view, std::string_view text) {
  if (trim(text) == "-1") return Parsed<std::int64_t>::ok(-1);
  Parsed<std::int64_t> bytes = parse_bytes(text);
  if (!bytes) bytes.error += ", or -1 for no limit";
  return bytes;
}

template <>
Parsed<double> setting_from(std::string_view, std::string_view text) {
  return parse_seconds(text);
}

std::string text_of(const std::string& text) { return text; }
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(ProfileLevel level) { return kLevels.words[static_cast<std::size_t>(level)]; }
std::string text_of(OnUnsupported value) { return kOnUnsupported.words[static_cast<std::size_t>(value)]; }
std::string text_of(OnMiss value) { return kOnMiss.words[static_cast<std::size_t>(value)]; }
std::string text_of(int value) { return std::to_string(value); }
std::string text_of(std::int64_t value) { return std::to_string(value); }
std::string text_of(double seconds) {
  std::array<char, 400> digits;
  const auto result =
      std::to_chars(digits.data(), digits.data() + digits.size(), seconds, std::chars_format::fixed);
  return std::string(digits.data(), result.ptr) + " s";
}

std::string absolute_path(const std::string& path, const std::string& cwd) {
  if (path.empty() || path.front() == '/' || cwd.empty()) return path;
  return (cwd.ends_with('/') ? cwd : cwd + "/") + path;
}

std::string absolute_pattern(const std::string& pattern, const std::string& cwd) {
  std::string literal;
  for (const char c : cwd) literal += c == '%' ? std::string("%%") : std::string(1, c);
  return absolute_path(pattern, literal);
}

}  // namespace convpin
