// Where libconvpin.so is.
#pragma once

#include <string>

namespace convpin::cli {

// Beside this command, or in the lib folder of where it is installed; throws BadUse where it is in neither.
std::string library_path();

}  // namespace convpin::cli
