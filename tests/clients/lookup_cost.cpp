// What a preloaded library costs a process that has nothing to do with cuDNN: a look-up by dlsym, against libc's own in the
// same process, and the start of a process, against one without the preload. Not a test: it prints medians and ratios.
//
//   run: LD_PRELOAD=<library> lookup_cost          (bare, it shows the noise: ratios of 1)
#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

template <typename Body>
double microseconds(Body body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> samples) {
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  return samples[samples.size() / 2];
}

// Alternating, so that a change of the machine's speed meets both.
template <typename Base, typename Other>
void compare(const char* what, const char* unit, double scale, int rounds, Base base, Other other) {
  std::vector<double> bases, others;
  for (int i = 0; i < rounds; ++i) bases.push_back(microseconds(base)), others.push_back(microseconds(other));
  std::printf("%s: %.1f %s against %.1f, ratio %.3f\n", what, median(others) * scale, unit, median(bases) * scale,
              median(others) / median(bases));
}

using Dlsym = void* (*)(void*, const char*);

void look_up(Dlsym by, void* handle, const char* name) {
  for (int i = 0; i < 10000; ++i) by(handle, name);
}

void start(const std::vector<char*>& environment) {
  char* const arguments[] = {const_cast<char*>("true"), nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, "/bin/true", nullptr, nullptr, arguments, environment.data()) == 0) waitpid(child, nullptr, 0);
}

}  // namespace

int main() {
  Dlsym libc = nullptr;
  for (const char* version : {"GLIBC_2.2.5", "GLIBC_2.17"})
    if (!libc) libc = reinterpret_cast<Dlsym>(dlvsym(RTLD_NEXT, "dlsym", version));
  Dlsym volatile bound = dlsym;
  void* library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  if (!libc || !library) return std::fprintf(stderr, "lookup_cost: %s\n", dlerror()), 1;
  for (const char* name : {"getpid", "cuGetProcAddress"})
    compare(name, "ns", 1000.0 / 10000, 101, [&] { look_up(libc, library, name); }, [&] { look_up(bound, library, name); });

  std::vector<char*> with, without;
  for (char** entry = environ; *entry; ++entry) {
    with.push_back(*entry);
    if (std::strncmp(*entry, "LD_PRELOAD=", 11)) without.push_back(*entry);
  }
  with.push_back(nullptr), without.push_back(nullptr);
  compare("start of /bin/true", "us", 1, 1001, [&] { start(without); }, [&] { start(with); });
  return 0;
}
