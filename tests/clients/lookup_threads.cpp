// Threads that look cuDNN's functions up and call them, while others open and close libraries.
//
//   run: LD_LIBRARY_PATH=<libcudnn's folder> lookup_threads <any library>
#include <cudnn.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

std::atomic<int> wrong{0};

void look_up_and_call() {
  for (int i = 0; i < 200; ++i) {
    void* cudnn = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    const auto create = reinterpret_cast<decltype(&cudnnBackendCreateDescriptor)>(dlsym(cudnn, "cudnnBackendCreateDescriptor"));
    const auto destroy = reinterpret_cast<decltype(&cudnnBackendDestroyDescriptor)>(dlsym(cudnn, "cudnnBackendDestroyDescriptor"));
    cudnnBackendDescriptor_t tensor = nullptr;
    if (!create || !destroy || create(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &tensor) || destroy(tensor)) ++wrong;
    if (dlsym(cudnn, "cudnnNoSuchFunction") || !dlerror()) ++wrong;
    dlclose(cudnn);
  }
}

void open_and_close(const char* path) {
  for (int i = 0; i < 200; ++i) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library || !dlsym(library, "scope_mark") || dlclose(library)) ++wrong;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: lookup_threads LIBRARY\n"), 2;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(look_up_and_call);
  for (int i = 0; i < 2; ++i) threads.emplace_back(open_and_close, argv[1]);
  for (auto& thread : threads) thread.join();
  std::printf("wrong: %d\n", wrong.load());
  return wrong ? 1 : 0;
}
