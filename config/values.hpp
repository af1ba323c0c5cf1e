// The values of settings: read from text, and written for the echo. Internal to config/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "config/settings.hpp"
#include "shim/model/parsed.hpp"

namespace convpin {

// `text` as the value of the setting `member` (settings.def's first column).
template <typename T>
Parsed<T> setting_from(std::string_view member, std::string_view text);

std::string text_of(const std::string&);
std::string text_of(bool);
std::string text_of(ProfileLevel);
std::string text_of(OnUnsupported);
std::string text_of(OnMiss);
std::string text_of(int);
std::string text_of(std::int64_t);
std::string text_of(double seconds);

// Relative paths are seen from `cwd`.
std::string absolute_path(const std::string& path, const std::string& cwd);
// The same for a pattern of expand_path: a `%` in `cwd` is no part of the pattern.
std::string absolute_pattern(const std::string& pattern, const std::string& cwd);

}  // namespace convpin
