// A program that is not linked to cuDNN and opens a library that is, as Python does with a framework.
//
//   run: LD_LIBRARY_PATH=<libcudnn's folder> dlopened ./libconvlib.so local
//   run: LD_LIBRARY_PATH=<libcudnn's folder> dlopened ./libconvlib.so global
//   run: LD_LIBRARY_PATH=<libcudnn's folder> dlopened ./libconvlib.so deepbind   a preload is bypassed:
//   glibc's rule
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  int flags = RTLD_NOW;
  if (argc == 3 && !std::strcmp(argv[2], "local"))
    flags |= RTLD_LOCAL;
  else if (argc == 3 && !std::strcmp(argv[2], "global"))
    flags |= RTLD_GLOBAL;
  else if (argc == 3 && !std::strcmp(argv[2], "deepbind"))
    flags |= RTLD_LOCAL | RTLD_DEEPBIND;
  else
    return std::fprintf(stderr, "usage: dlopened LIBRARY local|global|deepbind\n"), 2;

  void* library = dlopen(argv[1], flags);
  if (!library) return std::fprintf(stderr, "dlopened: %s\n", dlerror()), 1;
  auto run = reinterpret_cast<int (*)(const char*)>(dlsym(library, "convlib_run"));
  if (!run) return std::fprintf(stderr, "dlopened: %s\n", dlerror()), 1;
  return run(argv[2]) ? 0 : 1;
}
