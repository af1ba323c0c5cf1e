// A configuration's files by themselves: what the environment says is not looked at.
#pragma once

#include <string>
#include <vector>

#include "config/settings.hpp"

namespace convpin::cli {

// `errors` of the settings says what is wrong with them. Throws BadUse where a file can't be read at all.
Settings load_files(const std::vector<std::string>& files);

// The files of a list as CONVPIN_CONFIG has it: throws BadUse where one can't be read. `named_by` comes before the message:
// "CONVPIN_CONFIG: ", "--config: ", or nothing.
void check_readable(const std::string& list, const std::string& named_by);
// For files that the person named to us: their errors don't speak of CONVPIN_CONFIG, which they came by.
void name_no_variable(Settings&);

}  // namespace convpin::cli
