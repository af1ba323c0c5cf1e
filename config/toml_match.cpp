// match = { .. } of a rule or a denial.
#include <algorithm>

#include "config/toml_value.hpp"
#include "shim/model/text.hpp"

namespace convpin {
namespace {

class Reader {
 public:
  Reader(std::string key, const Value& value, std::vector<std::string>& errors)
      : key_("'" + std::move(key) + "'"), value_(value), errors_(errors) {}

  void read(std::optional<Range>& to) { to = range_of(value_); }

  void read_dims(std::optional<Ranges>& to) {
    if (!value_.is_array()) return error(value_, key_ + " must be a list with a number or a range for each dimension, such as [-1, 3, \"128..512\", -1]");
    read_list(to, 3, kMaxDims);
  }

  void read_spatial(std::optional<Ranges>& to) { read_list(to, 1, kMaxDims - 2); }

  void read(std::optional<bool>& to) {
    if (!value_.is_boolean()) return error(value_, key_ + " must be true or false, not " + type_name(value_));
    to = value_.as_boolean(std::nothrow);
  }

  // One word, or a list of those that are allowed. `from` gives an optional.
  template <typename T, typename From>
  void read_words(std::vector<T>& to, const From& from, const char* allowed) {
    const auto values = one_or_all(value_);
    if (values.empty()) error(value_, key_ + " is an empty list");
    for (const Value* value : values) {
      const auto word = value->is_string() ? from(std::string(trim(scalar_text(*value)))) : std::nullopt;
      if (word) {
        to.push_back(*word);
      } else {
        error(*value, (value->is_string() ? key_ + " is " + quote(scalar_text(*value)) + ", and must be " : key_ + " must be ") + allowed);
      }
    }
  }

  void read(std::vector<Versions>& to) {
    const auto values = one_or_all(value_);
    if (values.empty()) error(value_, key_ + " is an empty list");
    for (const Value* value : values) {
      if (!value->is_string()) {  // 9.10 as a number would be 9.1
        error(*value, key_ + " must be a string such as \">=9.10\", or a list of them, not " + type_name(*value));
      } else if (Parsed<Versions> versions = parse_versions(scalar_text(*value))) {
        to.push_back(std::move(*versions.value));
      } else {
        error(*value, versions.error);
      }
    }
  }

 private:
  void error(const Value& where, const std::string& message) { errors_.push_back(at(where, message)); }

  Range range_of(const Value& value) {
    if (!value.is_integer() && !value.is_string()) {
      error(value, "in " + key_ + " a number or a range such as \"128..512\" must stand, not " + type_name(value));
      return {};
    }
    const Parsed<Range> range = parse_range(scalar_text(value));
    if (!range) error(value, range.error);
    return range.value.value_or(Range{});
  }

  void read_list(std::optional<Ranges>& to, int least, int most) {
    const auto values = one_or_all(value_);
    const auto count = static_cast<int>(values.size());
    if (count < least || count > most)
      return error(value_, key_ + " must have " + std::to_string(least) + " to " + std::to_string(most) + " numbers or ranges");
    to.emplace();
    for (const Value* value : values) to->push_back(range_of(*value));
  }

  std::string key_;
  const Value& value_;
  std::vector<std::string>& errors_;
};

std::optional<std::string> glob_from(const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); }

struct Key {
  const char* name;
  void (*read)(Reader, Match&);
};
constexpr Key kKeys[] = {
    {"x", [](Reader r, Match& to) { r.read_dims(to.x); }},
    {"w", [](Reader r, Match& to) { r.read_dims(to.w); }},
    {"y", [](Reader r, Match& to) { r.read_dims(to.y); }},
    {"pad", [](Reader r, Match& to) { r.read_spatial(to.pad); }},
    {"stride", [](Reader r, Match& to) { r.read_spatial(to.stride); }},
    {"dilation", [](Reader r, Match& to) { r.read_spatial(to.dilation); }},
    {"groups", [](Reader r, Match& to) { r.read(to.groups); }},
    {"dims", [](Reader r, Match& to) { r.read(to.dims); }},
    {"dtype", [](Reader r, Match& to) { r.read_words(to.dtypes, data_type_from, "a data type, or a list of them: float, half, bfloat16, double, int8, fp8_e4m3, ..."); }},
    {"layout", [](Reader r, Match& to) { r.read_words(to.layouts, layout_from, "a layout, or a list of them: nchw, nhwc, ncdhw, ndhwc, channels_first, channels_last, strided"); }},
    {"fused", [](Reader r, Match& to) { r.read(to.fused); }},
    {"device", [](Reader r, Match& to) { r.read_words(to.devices, glob_from, "the GPU's name, or a list of names, with * for any text: \"*H200*\""); }},
    {"cudnn", [](Reader r, Match& to) { r.read(to.cudnn); }},
};

}  // namespace

Match match_from(const Value& table, std::vector<std::string>& errors) {
  Match match;
  if (!table.is_table()) {
    errors.push_back(at(table, "'match' must be a table such as { groups = 1, dims = 2 }, not " + type_name(table)));
    return match;
  }
  std::set<std::string> allowed;
  for (const Key& key : kKeys) allowed.insert(key.name);
  for (const auto& [name, value] : table.as_table(std::nothrow)) {
    const auto* key = std::ranges::find(kKeys, name, [](const Key& k) { return std::string(k.name); });
    if (key == std::end(kKeys)) {
      errors.push_back(at(value, unknown_key(name, allowed)));
    } else {
      key->read({name, value, errors}, match);
    }
  }
  return match;
}

std::vector<Versions> versions_from(const Value& value, std::vector<std::string>& errors) {
  std::vector<Versions> versions;
  Reader("cudnn", value, errors).read(versions);
  return versions;
}

}  // namespace convpin
