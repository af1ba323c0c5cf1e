#include "tools/convpin/child.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "tools/convpin/command.hpp"

namespace convpin::cli {

Ended run_child(const std::vector<std::string>& command, const std::vector<std::pair<std::string, std::string>>& variables,
                Stderr where) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw BadUse("no pipe can be made");
  const pid_t child = fork();
  if (child < 0) throw BadUse("no process can be made");
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    if (where == Stderr::Collected) dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(ends[1]);
  Ended ended;
  std::array<char, 4096> block{};
  for (ssize_t got; (got = read(ends[0], block.data(), block.size())) > 0 || (got < 0 && errno == EINTR);)
    if (got > 0) ended.output.append(block.data(), static_cast<std::size_t>(got));
  close(ends[0]);
  while (waitpid(child, &ended.status, 0) < 0 && errno == EINTR) {
  }
  return ended;
}

}  // namespace convpin::cli
