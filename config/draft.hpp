// Settings while they are being read: where each came from decides who wins. Internal to config/.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/settings.hpp"

namespace convpin {

struct Draft {
  Settings settings;
  struct Given {
    std::string name;  // as the person wrote it: "CONVPIN_LOG" or "log.path"
    std::string file;  // empty: the environment
  };
  std::map<std::string, Given> given;                         // by settings.def's member name
  std::vector<std::pair<std::string, std::vector<Operation>>> rules_of;  // the operations of each file's rules
  std::vector<std::string> notices;
};

// Adds a file's settings and rules. `name` is the path as the person wrote it, for messages.
void read_toml(const std::string& name, const std::string& path, Draft&);

// Open brackets and braces and a key's dots, outside strings and comments: how deep a parser recurses.
int deepest_nesting(std::string_view toml);

}  // namespace convpin
