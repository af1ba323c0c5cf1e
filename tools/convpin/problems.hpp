// The problems that a command line names.
#pragma once

#include <string>
#include <vector>

#include "tools/convpin/letters.hpp"

namespace convpin::cli {

// By their text forms, by letters, and all those of logs, each once. Throws BadUse, also where there are none.
std::vector<Problem> problems_from(const std::vector<std::string>& texts, const Letters&, const std::vector<std::string>& logs);

}  // namespace convpin::cli
