#include "tests/standin/real.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace standin {
namespace {

void* open(const char* library) {
  const char* directory = std::getenv("STANDIN_CUDNN_DIR");
  const std::string path =
      std::string(directory != nullptr ? directory : STANDIN_CUDNN_DIRECTORY) + "/" + library;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::fprintf(stderr, "cuDNN stand-in: needs the real cuDNN's libraries (STANDIN_CUDNN_DIR): %s\n",
                 dlerror());
  }
  return handle;
}

void* symbol(void* library, const char* name) { return library == nullptr ? nullptr : dlsym(library, name); }

void* graph_library() {
  static void* const library = open("libcudnn_graph.so.9");
  return library;
}

}  // namespace

void* find_graph(const char* name) { return symbol(graph_library(), name); }

void* find_ops(const char* name) {
  static void* const library = open("libcudnn_ops.so.9");
  return symbol(library, name);
}

void* find_cnn(const char* name) {
  static void* const library = open("libcudnn_cnn.so.9");
  return symbol(library, name);
}

bool real_cudnn_available() { return graph_library() != nullptr; }

std::string own_directory() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_directory), &info) == 0) return ".";
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/'));
}

}  // namespace standin

// The exports that are the real library's own.
#define STANDIN_HOME_OWN(name, count)
#define STANDIN_HOME_GRAPH(name, count) STANDIN_FORWARD(name, count, standin::find_graph)
#define STANDIN_HOME_OPS(name, count) STANDIN_FORWARD(name, count, standin::find_ops)
#define STANDIN_HOME_CNN(name, count) STANDIN_FORWARD(name, count, standin::find_cnn)
// The parameters keep their names, which -Wunused-parameter would complain of.
#define STANDIN_HOME_REFUSED(name, count)                                                            \
  STANDIN_EXPORT convpin::Signature<decltype(name)>::Result name(CONVPIN_PARAMETERS_##count(name)) { \
    (void)std::tuple(CONVPIN_ARGUMENTS_##count);                                                     \
    return CUDNN_STATUS_NOT_SUPPORTED;                                                               \
  }
#define STANDIN(name, count, home) STANDIN_HOME_##home(name, count)
#include "tests/standin/standin.def"
