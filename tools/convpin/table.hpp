// A table of values, shown as text for people, as JSON, or as CSV.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace convpin::cli {

using Json = nlohmann::ordered_json;

struct Table {
  std::vector<std::string> columns;              // "time_ms": as JSON's keys and CSV's first line
  std::vector<std::vector<Json>> rows;           // a value a column; null for what does not exist

  std::string text() const;                      // columns under each other; times with four digits
  Json json() const;                             // a list of objects
  std::string csv() const;                       // RFC 4180
};

std::string cell_text(const Json&);              // "" for null, lists with commas

}  // namespace convpin::cli
