// Other programs, run to their end.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace convpin::cli {

enum class Stderr : bool { Collected, Apart };   // the program's stderr: into the output, or a text of its own

struct Ended {
  int status = 0;                                // as waitpid gives it; 127 << 8 where there is no such program
  std::string output;
  std::string errors;                            // its stderr, where that is apart
};
// The program by its path or, found in PATH, by its name, with these variables besides ours. Throws BadUse where no
// process can be made.
Ended run_child(const std::vector<std::string>& command, const std::vector<std::pair<std::string, std::string>>& variables, Stderr);

}  // namespace convpin::cli
