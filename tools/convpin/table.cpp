#include "tools/convpin/table.hpp"

#include <algorithm>

#include "shim/model/record.hpp"
#include "shim/model/text.hpp"

namespace convpin::cli {

std::string cell_text(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return four_digits(value.get<double>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (!value.is_array()) return value.dump();
  std::vector<std::string> items;
  for (const Json& item : value) items.push_back(cell_text(item));
  return join(items, ",");
}

std::string Table::text() const {
  std::vector<std::vector<std::string>> lines{columns};
  for (const auto& row : rows) {
    lines.emplace_back();
    for (const Json& value : row) lines.back().push_back(one_line(cell_text(value), 400));
  }
  std::vector<std::size_t> widths(columns.size(), 0);
  for (const auto& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const auto& line : lines) {
    std::string out;
    for (std::size_t i = 0; i < line.size(); ++i) {
      out += line[i];
      if (i + 1 < line.size()) out.append(widths[i] - line[i].size() + 2, ' ');
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  }
  return text;
}

Json Table::json() const {
  Json list = Json::array();
  for (const auto& row : rows) {
    Json object = Json::object();
    for (std::size_t i = 0; i < row.size() && i < columns.size(); ++i) object[columns[i]] = row[i];
    list.push_back(std::move(object));
  }
  return list;
}

std::string Table::csv() const {
  const auto field = [](const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
    return quoted + '"';
  };
  const auto line = [&](const auto& values, const auto& text_of) {
    std::string out;
    for (std::size_t i = 0; i < values.size(); ++i) out += (i ? "," : "") + field(text_of(values[i]));
    return out + "\n";
  };
  std::string text = line(columns, [](const std::string& name) { return name; });
  for (const auto& row : rows)  // numbers in full: a table for people rounds them
    text += line(row, [](const Json& value) {
      return value.is_number() ? value.dump() : value.is_boolean() ? std::to_string(value.get<bool>()) : cell_text(value);
    });
  return text;
}

}  // namespace convpin::cli
