// Settings and rules: the environment and TOML files, read once into plain structs.
//
// config/settings.def is the one table of settings (environment name, TOML key, type, default, one
// line of documentation); parsing, validation, the echo of what is not default and the README's
// reference are made from it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shim/model/rule.hpp"

namespace convpin {

enum class ProfileLevel : std::uint8_t { Off, Algorithms, Engines };

// Fields are made from settings.def; their names are its member column.
struct Settings {
#define CONVPIN_SETTING(member, type, fallback, env, toml, doc) type member = fallback;
#include "config/settings.def"
#undef CONVPIN_SETTING
  std::vector<Rule> rules;                       // in order of precedence: CONV_FWD_ALGO first, then the files'
  std::vector<Denial> denials;
  std::vector<std::string> errors;               // each: where it is, the value, what is allowed. Not empty:
                                                 // no rule is in force (all of it runs as if nothing had been asked)
  std::vector<std::string> notices;              // one line each, for stderr: echo of non-default settings, shadowed rules
  std::vector<std::pair<std::string, std::string>> non_default;  // name, value: for the log's header

  bool profiling() const { return profile_level != ProfileLevel::Off; }
  // Nothing at all is asked for: hooks pass every call on untouched.
  bool idle() const;
};

// `getenv_` is secure_getenv in the shim and a map in tests: null for unset. `cwd` makes relative paths
// absolute. Reads the TOML files named by CONVPIN_CONFIG. Never throws.
Settings load_settings(const std::function<const char*(const char*)>& getenv_, const std::string& cwd);

// The [[rule]] tables of a text. `name` is it in messages and in the rules' source; where a rule is silent, `settings` say.
Parsed<std::vector<Rule>> rules_from_toml(const std::string& text, const std::string& name, const Settings& settings);

// %h host, %p pid, %r rank (0 where there is none), %q{VAR} an environment variable (empty if unset), %% a percent sign.
std::string expand_path(const std::string& pattern, const std::function<const char*(const char*)>& getenv_);

// The rank that launchers put into the environment, -1 for none: RANK, LOCAL_RANK, OMPI_COMM_WORLD_*, PMI_*, SLURM_*.
struct Ranks { int global = -1; int local = -1; };
Ranks ranks_of(const std::function<const char*(const char*)>& getenv_);

// The README's table of settings, from settings.def; a unit test compares the two.
std::string settings_reference();

// "64 MiB", "1.5 GB", "4096", "10 s", "500 ms".
Parsed<std::int64_t> parse_bytes(std::string_view);
Parsed<double> parse_seconds(std::string_view);

}  // namespace convpin
