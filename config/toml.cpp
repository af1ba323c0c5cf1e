// TOML files. Every key is looked for by name and checked by type; toml11's find_or is not used, because
// it gives back its default where the type is wrong.
#include <sys/stat.h>

#include <array>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <type_traits>

#include "config/toml_value.hpp"
#include "config/values.hpp"
#include "shim/model/text.hpp"

namespace convpin {
namespace {

constexpr std::size_t kLargestFile = 16 << 20;  // what is larger is not a file of settings
constexpr int kDeepest = 100;

std::vector<std::string> setting_keys() {
  return {
#define CONVPIN_SETTING(member, type, fallback, env, toml, doc) toml,
#include "config/settings.def"
#undef CONVPIN_SETTING
  };
}

// The keys allowed in a table: "" for the file itself, "log." for [log].
std::set<std::string> allowed_in(const std::string& prefix) {
  std::set<std::string> allowed;
  if (prefix.empty()) allowed = {"version", "rule", "deny"};
  for (const std::string& key : setting_keys())
    if (!key.empty() && key.starts_with(prefix))
      allowed.insert(key.substr(prefix.size(), key.find('.', prefix.size()) - prefix.size()));
  return allowed;
}

// What a setting of type T may be in TOML. A number of bytes or seconds may come with its unit, as a string.
template <typename T>
const char* wrong_type(const Value& value) {
  if constexpr (std::is_same_v<T, bool>) return value.is_boolean() ? nullptr : "true or false";
  if constexpr (std::is_same_v<T, int>) return value.is_integer() ? nullptr : "a whole number";
  if constexpr (std::is_same_v<T, std::int64_t>)
    return value.is_integer() || value.is_string() ? nullptr
                                                   : "a number of bytes or a string such as \"64 MiB\"";
  if constexpr (std::is_same_v<T, double>)
    return value.is_integer() || value.is_floating() || value.is_string()
               ? nullptr
               : "a number of seconds or a string such as \"10 s\"";
  return value.is_string() ? nullptr : "a string";
}

Value parse(const std::string& text, const std::string& name) {
  std::istringstream in(text);
  return toml::parse<toml::discard_comments, std::map, std::vector>(in, name);
}

class File {
 public:
  File(const std::string& name, Draft& draft) : name_(name), draft_(draft) {}

  void read(const Value& root) {
    if (!check_version(root)) return;
    check_keys(root, "");
#define CONVPIN_SETTING(member, type, fallback, env, toml, doc) \
  take(root, #member, toml, draft_.settings.member);
#include "config/settings.def"
#undef CONVPIN_SETTING
    if (const Value* rules = find(root, "rule")) read_rules(*rules, name_, draft_);
    if (const Value* denials = find(root, "deny")) read_denials(*denials, name_, draft_);
  }

  void read_rules_alone(const Value& root) {
    if (find(root, "version") && !check_version(root)) return;
    for (const auto& [key, value] : root.as_table(std::nothrow))
      if (key != "version" && key != "rule") error(value, "'" + key + "' can't be set while the program runs: [[rule]] tables can");
    if (const Value* rules = find(root, "rule")) read_rules(*rules, name_, draft_);
  }

 private:
  void error(const Value& where, const std::string& message) {
    draft_.settings.errors.push_back(at(where, message));
  }

  // A file for another version may mean something else by the same words: nothing more is read.
  bool check_version(const Value& root) {
    const Value* version = find(root, "version");
    if (!version) {
      draft_.settings.errors.push_back(
          at(root, "the version is missing: add the line version = 1", "before this"));
      return false;
    }
    if (version->is_integer() && version->as_integer(std::nothrow) == 1) return true;
    error(*version, "this version of the file is not known: version = 1 is");
    return false;
  }

  void check_keys(const Value& table, const std::string& prefix) {
    const std::set<std::string> allowed = allowed_in(prefix);
    for (const auto& [key, value] : table.as_table(std::nothrow)) {
      const bool section = !allowed_in(prefix + key + ".").empty();
      if (!allowed.contains(key)) {
        error(value, unknown_key(key, allowed));
      } else if (section && !value.is_table()) {
        error(value, "'" + prefix + key + "' must be a table, not " + type_name(value));
      } else if (section) {
        check_keys(value, prefix + key + ".");
      }
    }
  }

  template <typename T>
  void take(const Value& root, const std::string& member, const std::string& key, T& to) {
    const Value* value = &root;
    for (const std::string_view step : split(key, '.'))
      value = value ? find(*value, std::string(step)) : nullptr;
    if (key.empty() || !value) return;
    if (const char* expected = wrong_type<T>(*value))
      return error(*value, "'" + key + "' must be " + expected + ", not " + type_name(*value));
    Parsed<T> parsed = setting_from<T>(member, scalar_text(*value));
    if (!parsed) return error(*value, "'" + key + "': " + parsed.error);
    const auto [before, first] = draft_.given.try_emplace(member, Draft::Given{key, name_});
    if (first) {
      to = std::move(*parsed.value);
    } else if (!before->second.file.empty()) {  // the environment wins silently: that is what it is for
      draft_.notices.push_back("convpin: " + key + " of " + name_ + " is not used: " + before->second.file +
                               " comes first");
    }
  }

  const std::string& name_;
  Draft& draft_;
};

}  // namespace

std::optional<std::string> contents_of(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode)) return std::nullopt;  // could wait for ever
  std::ifstream in(path, std::ios::binary);
  std::string text;
  std::array<char, 65536> block;
  while (in.read(block.data(), block.size()) || in.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > kLargestFile) return std::nullopt;
  }
  if (!in.eof() || in.bad()) return std::nullopt;          // a directory opens, and fails to read
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);  // toml11 counts a byte order mark as columns
  return text;
}

void read_toml(const std::string& name, const std::string& path, Draft& draft) {
  std::optional<std::string> text = contents_of(path);
  if (!text) {
    draft.settings.errors.push_back("CONVPIN_CONFIG: " + quote(name) + " can't be read (as " +
                                    one_line(path, 300) + ")");
    return;
  }
  if (text->starts_with("{\"type\":\"header\"")) {
    draft.settings.errors.push_back("CONVPIN_CONFIG: " + quote(name) +
                                    " is a log of convpin's, not a configuration: convpin freeze or convpin tune makes one of it");
    return;
  }
  if (deepest_nesting(*text) > kDeepest) {
    draft.settings.errors.push_back("CONVPIN_CONFIG: " + quote(name) + " nests too deeply");
    return;
  }
  try {
    File(name, draft).read(parse(*text, name));
  } catch (const std::exception& e) {
    draft.settings.errors.push_back(without_label(e.what()));
  }
}

Parsed<std::vector<Rule>> rules_from_toml(const std::string& text, const std::string& name, const Settings& settings) {
  using Result = Parsed<std::vector<Rule>>;
  if (text.size() > kLargestFile) return Result::fail(name + ": the text is too long");
  if (deepest_nesting(text) > kDeepest) return Result::fail(name + ": the text nests too deeply");
  Draft draft;
  try {
    if (!trim(text).empty()) File(name, draft).read_rules_alone(parse(text, name));
  } catch (const std::exception& e) {
    return Result::fail(without_label(e.what()));
  }
  if (!draft.settings.errors.empty()) return Result::fail(join(draft.settings.errors, "\n"));
  std::vector<Rule> rules;
  for (DraftRule& rule : draft.rules) rules.push_back(finished(std::move(rule), settings));
  return Result::ok(std::move(rules));
}

}  // namespace convpin
