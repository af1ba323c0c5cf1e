// Two libraries in one process, each bound to its own copy of libcudnn.so.9, called in turn: a framework
// beside another one's wheel. A preloaded library must send each call to the copy of the library that made
// it.
//
//   run: two_copies <libcudnn's folder>        (LD_LIBRARY_PATH unset)
//
// glibc takes a DT_NEEDED of "libcudnn.so.9" from any copy already loaded, whatever the RUNPATH, since their
// SONAMEs are equal. Two copies come about where one is asked for by its path. So the two libraries are
// linked with DT_NEEDED entries that are paths, COPY_A and COPY_B/libcudnn.so.9 (CMakeLists.txt), and this
// program puts the copies there first: libcudnn.so.9 itself copied, everything beside it as links.
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

namespace {

namespace fs = std::filesystem;

// Each entry is put in place by a rename, so that another run of this program is not disturbed.
void copy_folder(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    if (entry.is_directory()) continue;
    const fs::path name = entry.path().filename();
    const fs::path fresh = to / ("." + name.string() + "." + std::to_string(getpid()));
    if (name == "libcudnn.so.9")
      fs::copy_file(entry.path(), fresh);
    else
      fs::create_symlink(fs::absolute(entry.path()), fresh);
    fs::rename(fresh, to / name);
  }
}

int count_copies(dl_phdr_info* info, std::size_t, void* count) {
  const char* slash = std::strrchr(info->dlpi_name, '/');
  if (slash && !std::strcmp(slash, "/libcudnn.so.9")) ++*static_cast<int*>(count);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return std::fprintf(stderr, "usage: two_copies FOLDER_OF_LIBCUDNN\n"), 2;
  copy_folder(argv[1], COPY_A);
  copy_folder(argv[1], COPY_B);

  int (*run[2])(const char*) = {};
  const char* libraries[2] = {CONVLIB_A, CONVLIB_B};
  for (int i = 0; i < 2; ++i) {
    void* library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
    if (library) run[i] = reinterpret_cast<int (*)(const char*)>(dlsym(library, "convlib_run"));
    if (!run[i]) return std::fprintf(stderr, "two_copies: %s\n", dlerror()), 1;
  }
  int copies = 0;
  dl_iterate_phdr(count_copies, &copies);
  std::printf("copies of libcudnn.so.9: %d\n", copies);

  bool good = copies == 2;
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 2; ++i) good = run[i](i == 0 ? "copy a" : "copy b") && good;
  return good ? 0 : 1;
} catch (const std::exception& e) {
  return std::fprintf(stderr, "two_copies: %s\n", e.what()), 1;
}
