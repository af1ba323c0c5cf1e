// Several copies of cuDNN in one process, each opened by its path and looked up by a library of its own, called in turn. After
// each call it says how many convolutions every copy has run: a preloaded library must send each call to its own copy.
//
//   run: many_copies <the stand-in's folder> <module linked with by_lookup.cpp> <how many>     (in a folder for itself)
//
// The copies are of libcudnn_standin.so.9, which has all functions and the counter: two dispatchers would share one
// implementation, since the loader takes that by its SONAME.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace fs = std::filesystem;

struct Copy {
  bool (*run)(const char*) = nullptr;
  unsigned long long (*runs)(const char*) = nullptr;
};

int main(int argc, char** argv) try {
  if (argc != 4) return std::fprintf(stderr, "usage: many_copies FOLDER_OF_STAND_IN MODULE N\n"), 2;
  const std::string name = "libcudnn_standin.so.9";
  std::vector<Copy> copies(static_cast<std::size_t>(std::atoi(argv[3])));
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const fs::path folder = fs::absolute("copy" + std::to_string(i));
    fs::create_directories(folder);
    for (const auto& entry : fs::directory_iterator(argv[1]))
      if (!entry.is_directory() && entry.path().filename() != name)
        fs::create_symlink(fs::absolute(entry.path()), folder / entry.path().filename());
    fs::copy_file(fs::path(argv[1]) / name, folder / name);
    fs::copy_file(argv[2], folder / "module.so");
    setenv("CLIENT_CUDNN", (folder / name).c_str(), 1);  // the module opens it
    void* module = dlopen((folder / "module.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    void* cudnn = dlopen((folder / name).c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (!module || !cudnn) return std::fprintf(stderr, "many_copies: %s\n", dlerror()), 1;
    copies[i].run = reinterpret_cast<bool (*)(const char*)>(dlsym(module, "convlib_run"));
    copies[i].runs = reinterpret_cast<unsigned long long (*)(const char*)>(dlsym(cudnn, "cudnnStandinRuns"));
  }
  bool good = true;
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const std::string who = "copy " + std::to_string(i);
      good = copies[i].run(who.c_str()) && good;
      std::printf("runs after %s:", who.c_str());
      for (const Copy& copy : copies) std::printf(" %llu", copy.runs(nullptr));
      std::printf("\n");
      std::fflush(stdout);
    }
  return good ? 0 : 1;
} catch (const std::exception& e) {
  return std::fprintf(stderr, "many_copies: %s\n", e.what()), 1;
}
