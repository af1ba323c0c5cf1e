// What [[rule]] and [[deny]] have in common. Internal to config/.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/toml_value.hpp"

namespace convpin {

using Operations = std::vector<Operation>;

// What an entry with an error holds does not matter: with any error no rule is in force.
class Entry {
 protected:
  Entry(const Value& table, const std::string& file, const char* what, Draft& draft);  // what: "rule"

  void error(const Value& where, const std::string& message) { draft_.settings.errors.push_back(at(where, message)); }
  const Value* get(const char* key) const { return find(table_, key); }
  void check_keys(const std::set<std::string>& allowed);
  std::optional<std::string> string_of(const char* key);       // nothing, and an error, for another type
  std::vector<const Value*> values_of(const char* key);        // of one value, or of an array
  // Which of the keys is there; null, and an error with `advice`, unless it is exactly one.
  const char* one_key_of(const std::vector<const char*>& keys, const std::string& advice);

  std::optional<Operations> read_operation();
  ProblemPattern read_problem(std::optional<Operations>&);     // may name the operation, too
  Match read_match();
  // What `text` asks for in each of the operations. It is enough that one of them has it; but an engine is another one in
  // each, and so must not be asked for in several.
  std::vector<Request> requests_of(const Value& where, const std::string& text, const Operations&);

  const Value& table_;
  const char* what_;
  std::string source_;
  Draft& draft_;
};

}  // namespace convpin
