// Convolutions in children of fork, and children that never call cuDNN.
//
//   run: LD_LIBRARY_PATH=<libcudnn's folder> fork
//
// CUDA can't be used in a child once the parent has used it; so on a GPU only the child forked before that
// runs one.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/clients/one_conv.hpp"

namespace {

// Whether the child ended with status 0.
template <typename Body>
bool in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) body();
  int status = -1;
  const bool good =
      child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!good) std::printf("a child ended with status %d\n", status), std::fflush(stdout);
  return good;
}

}  // namespace

int main() {
  bool good = in_child([] { std::exit(clients::print_both("child before") ? 0 : 1); });
  good = clients::print_both("parent") && good;
  if (convclient::on_standin()) {
    good = in_child([] { std::exit(clients::print_both("child after") ? 0 : 1); }) && good;
    good = in_child([] { _exit(clients::print_both("child with _exit") ? 0 : 1); }) && good;
  }
  good = in_child([] { std::exit(0); }) && good;
  good = in_child([] { _exit(0); }) && good;
  good = in_child([] { execl("/bin/true", "true", static_cast<char*>(nullptr)), _exit(1); }) && good;
  good = clients::print_both("parent again") && good;
  return good ? 0 : 1;
}
