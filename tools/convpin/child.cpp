#include "tools/convpin/child.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "tools/convpin/command.hpp"

namespace convpin::cli {
namespace {

void read_on(int from, std::string& to) {
  std::array<char, 4096> block{};
  for (ssize_t got; (got = read(from, block.data(), block.size())) > 0 || (got < 0 && errno == EINTR);)
    if (got > 0) to.append(block.data(), static_cast<std::size_t>(got));
}

}  // namespace

Ended run_child(const std::vector<std::string>& command, const std::vector<std::pair<std::string, std::string>>& variables,
                Stderr where) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw BadUse("no pipe can be made");
  const int apart = where == Stderr::Apart ? memfd_create("stderr", MFD_CLOEXEC) : -1;  // a second pipe could fill unread
  const pid_t child = fork();
  if (child < 0) throw BadUse("no process can be made");
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(where == Stderr::Apart ? apart : ends[1], STDERR_FILENO);
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
  read_on(ends[0], ended.output);
  close(ends[0]);
  while (waitpid(child, &ended.status, 0) < 0 && errno == EINTR) {
  }
  if (apart < 0) return ended;
  lseek(apart, 0, SEEK_SET);
  read_on(apart, ended.errors);
  close(apart);
  return ended;
}

}  // namespace convpin::cli
