// What dlsym and dlerror say, look-up by look-up. The output is to be the same bare and preloaded.
//
//   run: LD_LIBRARY_PATH=<libcudnn's folder> lookups <liblookup_scope_O0.so> <libcudnn_few.so>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace {

// Where an address lies, by its module's name; whose function answers for a function of cuDNN is not for this output.
std::string where(const void* address, std::string_view name) {
  Dl_info info{};
  if (!address) return "not found";
  if (name.substr(0, 5) == "cudnn") return "found";
  if (!dladdr(address, &info)) return "found nowhere";
  const char* slash = std::strrchr(info.dli_fname, '/');
  return std::string("found in ") + (slash ? slash + 1 : info.dli_fname);
}

void look_up(const char* what, void* handle, const char* name) {
  errno = 77;
  void* volatile found = dlsym(handle, name);
  const int after = errno;
  const char* first = dlerror();
  std::printf("%s %s: %s, errno %d, dlerror: %s", what, name, where(found, name).c_str(), after, first ? first : "none");
  const char* second = dlerror();
  std::printf(", then: %s\n", second ? second : "none");
}

// The name's last byte is the last of its page, and the next page can't be read.
void look_up_at_the_end_of_a_page(void* handle, const char* name) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* pages = static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE)) return std::perror("lookups");
  char* text = pages + page - std::strlen(name) - 1;
  std::strcpy(text, name);
  look_up("page's end", handle, text);
  munmap(pages, 2 * page);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: lookups SCOPE_LIBRARY FEW_FUNCTIONS_LIBRARY\n"), 2;
  void* cudnn = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  void* scope = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void* libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  if (!cudnn || !scope || !libc) return std::fprintf(stderr, "lookups: %s\n", dlerror()), 1;

  for (const char* name : {"cudnnBackendFinalize", "cudnnGetVersion", "cudnnNoSuchFunction", "cudnn", "nothing", ""})
    look_up("cudnn", cudnn, name);
  for (const char* name : {"getpid", "cudnnBackendFinalize"}) look_up("libc", libc, name);
  // Closed and opened again: what is looked up then works.
  dlclose(cudnn);
  cudnn = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  look_up("again", cudnn, "cudnnBackendFinalize");
  // A cuDNN that lacks most: what programs probe for stays missing.
  void* few = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  if (!few) return std::fprintf(stderr, "lookups: %s\n", dlerror()), 1;
  for (const char* name : {"cudnnGetVersion", "cudnnBackendCreateDescriptor", "cudnnBackendFinalize", "cudnnConvolutionForward"})
    look_up("few", few, name);
  // An error of before: reported once after a success in between? As glibc has it.
  dlsym(libc, "nothing");
  void* volatile between = dlsym(cudnn, "cudnnBackendExecute");
  const char* left = dlerror();
  std::printf("after a success: %s, %s\n", between ? "found" : "not found", left ? left : "none");
  for (const char* name : {"c", "cu", "cud", "cudn", "cudnn", "cudnnBackendFinalize"})
    look_up_at_the_end_of_a_page(cudnn, name);
  look_up("default", RTLD_DEFAULT, "getpid");
  look_up("default", RTLD_DEFAULT, "scope_mark");  // only in the other library's scope
  look_up("next", RTLD_NEXT, "getpid");

  auto run = reinterpret_cast<int (*)(void)>(dlsym(scope, "scope_run"));
  const bool good = run && run();
  return good ? 0 : 1;
}
