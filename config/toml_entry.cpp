#include "config/toml_entry.hpp"

#include "shim/model/text.hpp"

namespace convpin {

Entry::Entry(const Value& table, const std::string& file, const char* what, Draft& draft)
    : table_(table), what_(what), draft_(draft) {
  const toml::source_location where = table.location();
  source_ = file + ":" + std::to_string(where.line()) + ":" + std::to_string(where.column());
}

void Entry::check_keys(const std::set<std::string>& allowed) {
  for (const auto& [key, value] : table_.as_table(std::nothrow))
    if (!allowed.contains(key)) error(value, unknown_key(key, allowed));
}

std::optional<std::string> Entry::string_of(const char* key) {
  const Value* value = get(key);
  if (!value) return std::nullopt;
  if (value->is_string()) return scalar_text(*value);
  error(*value, "'" + std::string(key) + "' must be a string, not " + type_name(*value));
  return std::nullopt;
}

std::vector<const Value*> Entry::values_of(const char* key) {
  const Value* value = get(key);
  if (!value) return {};
  auto values = one_or_all(*value);
  if (values.empty()) error(*value, "'" + std::string(key) + "' is an empty list");
  return values;
}

const char* Entry::one_key_of(const std::vector<const char*>& keys, const std::string& advice) {
  const char* found = nullptr;
  for (const char* key : keys) {
    if (!get(key)) continue;
    if (found) {
      error(*get(key), std::string("this ") + what_ + " has " + found + " and " + key + ": only one of them is allowed");
      return nullptr;
    }
    found = key;
  }
  if (!found) error(table_, std::string("this ") + what_ + " has no " + advice);
  return found;
}

std::optional<Operations> Entry::read_operation() {
  const auto text = string_of("operation");
  if (!text) return std::nullopt;
  if (const auto operation = operation_from(trim(*text))) return Operations{*operation};
  if (lower(trim(*text)) == "any") return Operations(std::begin(kOperations), std::end(kOperations));
  error(*get("operation"), quote(*text) + " is not an operation: allowed are forward, backward_data, backward_filter, any");
  return std::nullopt;
}

ProblemPattern Entry::read_problem(std::optional<Operations>& operations) {
  const auto text = string_of("problem");
  if (!text) return {};
  Parsed<ProblemPattern> pattern = parse_problem_pattern(*text);
  if (!pattern) {
    error(*get("problem"), pattern.error);
    return {};
  }
  if (pattern->operation) {
    if (operations && *operations != Operations{*pattern->operation})
      error(*get("problem"), std::string("the problem's operation is not the ") + what_ + "'s");
    operations = Operations{*pattern->operation};
  }
  return std::move(*pattern.value);
}

Match Entry::read_match() {
  const Value* value = get("match");
  return value ? match_from(*value, draft_.settings.errors) : Match{};
}

std::vector<Request> Entry::requests_of(const Value& where, const std::string& text, const Operations& operations) {
  std::vector<Request> requests;
  std::string wrong;
  for (const Operation operation : operations) {
    Parsed<Request> request = parse_request(operation, text);
    if (request) {
      requests.push_back(std::move(*request.value));
    } else {
      wrong += (wrong.empty() ? "" : "; ") + request.error;
    }
  }
  if (requests.empty()) error(where, wrong);
  if (requests.size() > 1 && requests.front().engine.engine >= 0)
    error(where, quote(text) + " is another engine in each operation: name the operation");
  return requests;
}

}  // namespace convpin
