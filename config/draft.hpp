// Settings while they are being read: where each came from decides who wins. Internal to config/.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/settings.hpp"

namespace convpin {

// A rule before it is known what the settings say where it is silent.
struct DraftRule {
  Rule rule;
  std::optional<OnUnsupported> on_unsupported;
  std::optional<std::int64_t> workspace_limit;  // -1: none
};

inline std::optional<std::int64_t> limit_of(std::int64_t bytes) { return bytes < 0 ? std::nullopt : std::optional(bytes); }
inline Rule finished(DraftRule draft, const Settings& settings) {
  draft.rule.on_unsupported = draft.on_unsupported.value_or(settings.on_unsupported);
  draft.rule.workspace_limit = limit_of(draft.workspace_limit.value_or(settings.workspace_limit));
  return std::move(draft.rule);
}

struct Draft {
  Settings settings;                             // without rules
  std::vector<DraftRule> rules;
  struct Given {
    std::string name;  // as the person wrote it: "CONVPIN_LOG" or "log.path"
    std::string file;  // empty: the environment
  };
  std::map<std::string, Given> given;                         // by settings.def's member name
  std::vector<std::pair<std::string, std::vector<Operation>>> rules_of;  // the operations of each file's rules
  std::vector<std::string> notices;
};

// Adds a file's settings, rules and denials. `name` is the path as the person wrote it, for messages.
void read_toml(const std::string& name, const std::string& path, Draft&);

// Adds the denials of a file of cudnn-frontend's errata.
void read_errata(const std::string& name, const std::string& path, Draft&);

// The text of a file; nothing where it can't be read (a directory, a pipe, no end).
std::optional<std::string> contents_of(const std::string& path);

// Open brackets and braces and a key's dots, outside strings and comments: how deep a parser recurses.
int deepest_nesting(std::string_view toml);

}  // namespace convpin
