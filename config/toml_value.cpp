#include "config/toml_value.hpp"

#include <sstream>

#include "config/values.hpp"
#include "shim/model/text.hpp"

namespace convpin {

std::string at(const Value& value, const std::string& message, const std::string& comment) {
  return without_label(toml::format_error(message, value, comment));
}

std::string without_label(std::string_view message) {
  constexpr std::string_view label = "[error] ";
  if (message.starts_with(label)) message.remove_prefix(label.size());
  if (message.starts_with("toml::")) message.remove_prefix(message.find(' ') + 1);  // npos + 1 is none
  return std::string(message);
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

std::string scalar_text(const Value& value) {
  if (value.is_string()) return value.as_string(std::nothrow).str;
  if (value.is_integer()) return std::to_string(value.as_integer(std::nothrow));
  if (value.is_boolean()) return text_of(value.as_boolean(std::nothrow));
  const std::string seconds = text_of(double{value.as_floating(std::nothrow)});
  return seconds.substr(0, seconds.find(' '));
}

std::string unknown_key(const std::string& key, const std::set<std::string>& allowed) {
  return "unknown key " + quote(key) + ": allowed are " + join({allowed.begin(), allowed.end()}, ", ");
}

std::vector<const Value*> one_or_all(const Value& value) {
  if (!value.is_array()) return {&value};
  std::vector<const Value*> values;
  for (const Value& element : value.as_array(std::nothrow)) values.push_back(&element);
  return values;
}

void each_table(const Value& tables, const std::string& name, Draft& draft, const std::function<void(const Value&)>& read) {
  const std::string what = name == "deny" ? "denial" : name;
  const auto error = [&](const Value& where, const std::string& message) {
    draft.settings.errors.push_back(at(where, message));
  };
  if (!tables.is_array()) return error(tables, "a " + what + " begins with [[" + name + "]]");
  for (const Value& table : tables.as_array(std::nothrow)) {
    if (table.is_table()) {
      read(table);
    } else {
      error(table, "a " + what + " must be a table, not " + type_name(table));
    }
  }
}

}  // namespace convpin
