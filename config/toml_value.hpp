// A value of a TOML file, for whoever reads one: by type, and with errors that show its place. Internal to config/.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <toml.hpp>
#include <vector>

#include "config/draft.hpp"

namespace convpin {

using Value = toml::basic_value<toml::discard_comments, std::map, std::vector>;

// `message` with the file, the line and a caret below the value.
std::string at(const Value&, const std::string& message, const std::string& comment = "here");
std::string without_label(std::string_view toml11_message);  // its "[error] " and the name of its function
std::string type_name(const Value&);             // "integer", "string", ...
const Value* find(const Value& table, const std::string& key);   // null where it isn't there
std::string scalar_text(const Value&);           // of a string, a number or a boolean

std::string unknown_key(const std::string& key, const std::set<std::string>& allowed);   // the message
std::vector<const Value*> one_or_all(const Value&);          // itself, or an array's elements
// Calls `read` with each table of [[name]].
void each_table(const Value& tables, const std::string& name, Draft&, const std::function<void(const Value&)>& read);

// match = { .. }, and cudnn = of a denial too.
Match match_from(const Value&, std::vector<std::string>& errors);
std::vector<Versions> versions_from(const Value&, std::vector<std::string>& errors);

// What stands in [[rule]] and [[deny]].
void read_rules(const Value& rules, const std::string& file, Draft&);
void read_denials(const Value& denials, const std::string& file, Draft&);

}  // namespace convpin
