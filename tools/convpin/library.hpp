// Where libconvpin.so is, and how it is preloaded.
#pragma once

#include <string>

namespace convpin::cli {

// Beside this command, or in the lib folder of where it is installed; throws BadUse where it is in neither.
std::string library_path();
// LD_PRELOAD with the library before what stands there already. Throws BadUse where its path can't stand there.
std::string preload_list(const std::string& library);

}  // namespace convpin::cli
