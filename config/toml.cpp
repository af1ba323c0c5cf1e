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
#include <toml.hpp>
#include <type_traits>

#include "config/draft.hpp"
#include "config/values.hpp"
#include "shim/model/text.hpp"

namespace convpin {
namespace {

using Value = toml::basic_value<toml::discard_comments, std::map, std::vector>;

constexpr std::size_t kLargestFile = 16 << 20;  // what is larger is not a file of settings
constexpr int kDeepest = 100;

std::string at(const Value& value, const std::string& message, const std::string& comment = "here") {
  std::string text = toml::format_error(message, value, comment);
  constexpr std::string_view label = "[error] ";
  return text.starts_with(label) ? text.substr(label.size()) : text;
}

std::string type_name(const Value& value) {
  std::ostringstream name;
  name << value.type();
  return name.str();
}

const Value* find(const Value& table, const std::string& key) {
  if (!table.is_table()) return nullptr;
  const auto& entries = table.as_table(std::nothrow);
  const auto found = entries.find(key);
  return found == entries.end() ? nullptr : &found->second;
}

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
  if (prefix.empty()) allowed = {"version", "rule"};
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

std::string scalar_text(const Value& value) {
  if (value.is_string()) return value.as_string(std::nothrow).str;
  if (value.is_integer()) return std::to_string(value.as_integer(std::nothrow));
  if (value.is_boolean()) return text_of(value.as_boolean(std::nothrow));
  const std::string seconds = text_of(double{value.as_floating(std::nothrow)});
  return seconds.substr(0, seconds.find(' '));
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
    if (const Value* rules = find(root, "rule")) read_rules(*rules);
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
        unknown_key(key, value, allowed);
      } else if (section && !value.is_table()) {
        error(value, "'" + prefix + key + "' must be a table, not " + type_name(value));
      } else if (section) {
        check_keys(value, prefix + key + ".");
      }
    }
  }

  void unknown_key(const std::string& key, const Value& value, const std::set<std::string>& allowed) {
    error(value,
          "unknown key " + quote(key) + ": allowed are " + join({allowed.begin(), allowed.end()}, ", "));
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

  void read_rules(const Value& rules) {
    if (!rules.is_array()) return error(rules, "a rule begins with [[rule]]");
    std::vector<Operation> operations;
    for (const Value& rule : rules.as_array(std::nothrow)) {
      if (!rule.is_table()) {
        error(rule, "a rule must be a table, not " + type_name(rule));
      } else {
        draft_.settings.rules.push_back(read_rule(rule));
        operations.push_back(draft_.settings.rules.back().operation);
      }
    }
    draft_.rules_of.emplace_back(name_, std::move(operations));
  }

  // What a rule with an error holds does not matter: with any error no rule is in force.
  Rule read_rule(const Value& table) {
    static const std::set<std::string> allowed = {"operation", "problem", "algo"};
    for (const auto& [key, value] : table.as_table(std::nothrow))
      if (!allowed.contains(key)) unknown_key(key, value, allowed);
    Rule rule;
    const toml::source_location where = table.location();
    rule.source = name_ + ":" + std::to_string(where.line()) + ":" + std::to_string(where.column());
    if (const Value* value = find(table, "operation")) read_operation(*value, rule);
    if (const Value* value = find(table, "problem")) read_problem(*value, rule);
    if (const Value* value = find(table, "algo")) {
      read_algorithm(*value, rule);
    } else {
      error(table, "this rule has no algo: add algo = \"...\"");
    }
    return rule;
  }

  void read_operation(const Value& value, Rule& rule) {
    if (!value.is_string()) return error(value, "'operation' must be a string, not " + type_name(value));
    const std::string text = scalar_text(value);
    const auto operation = operation_from(text);
    if (operation) {
      rule.operation = *operation;
    } else {
      error(value, quote(text) + " is not an operation: allowed are forward, backward_data, backward_filter");
    }
  }

  void read_problem(const Value& value, Rule& rule) {
    if (!value.is_string()) return error(value, "'problem' must be a string, not " + type_name(value));
    Parsed<ProblemPattern> pattern = parse_problem_pattern(scalar_text(value));
    if (!pattern) return error(value, pattern.error);
    if (pattern->operation && *pattern->operation != rule.operation)
      return error(value, "the problem's operation is not the rule's");
    rule.problem = std::move(*pattern.value);
  }

  void read_algorithm(const Value& value, Rule& rule) {
    if (!value.is_string() && !value.is_integer())
      return error(value, "'algo' must be a number or a string, not " + type_name(value));
    Parsed<Request> request = parse_request(rule.operation, scalar_text(value));
    if (!request) return error(value, request.error);
    rule.requests = {std::move(*request.value)};
  }

  const std::string& name_;
  Draft& draft_;
};

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

}  // namespace

void read_toml(const std::string& name, const std::string& path, Draft& draft) {
  std::optional<std::string> text = contents_of(path);
  if (!text) {
    draft.settings.errors.push_back("CONVPIN_CONFIG: " + quote(name) + " can't be read (as " +
                                    one_line(path, 300) + ")");
    return;
  }
  if (deepest_nesting(*text) > kDeepest) {
    draft.settings.errors.push_back("CONVPIN_CONFIG: " + quote(name) + " nests too deeply");
    return;
  }
  try {
    std::istringstream in(*text);
    File(name, draft).read(toml::parse<toml::discard_comments, std::map, std::vector>(in, name));
  } catch (const std::exception& e) {
    const std::string_view what = e.what();
    constexpr std::string_view label = "[error] ";
    draft.settings.errors.emplace_back(what.starts_with(label) ? what.substr(label.size()) : what);
  }
}

}  // namespace convpin
