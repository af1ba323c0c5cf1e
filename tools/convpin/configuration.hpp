// A configuration's files by themselves: what the environment says is not looked at.
#pragma once

#include <string>
#include <vector>

#include "config/settings.hpp"

namespace convpin::cli {

// `errors` of the settings says what is wrong with them.
Settings load_files(const std::vector<std::string>& files);

}  // namespace convpin::cli
