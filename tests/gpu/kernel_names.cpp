// Which kernels a program runs, and how often, whatever the program is: the CUDA driver loads this library, CUPTI tells.
//
//   CUDA_INJECTION64_PATH=$PWD/libkernel_names.so KERNEL_NAMES=file program
//
// At the end of each process that used CUDA, file.PID has a line "COUNT NAME" for each kernel; names are mangled. Kernels of
// replayed CUDA graphs count as any other. With KERNEL_ORDER=1 it has a line "NAME" for each launch instead, in the order in
// which they started, and "d2h" for each copy to the host.
#include <cupti.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

#if CUPTI_API_VERSION >= 130000
using Kernel = CUpti_ActivityKernel10;
#else
using Kernel = CUpti_ActivityKernel9;
#endif

// Never destroyed: CUPTI's thread may come late.
std::mutex& lock = *new std::mutex;
std::map<std::string, long>& counts = *new std::map<std::string, long>;
std::vector<std::pair<std::uint64_t, std::string>>& launches = *new std::vector<std::pair<std::uint64_t, std::string>>;
bool in_order = false;

void add(std::uint64_t start, const char* name) {
  if (in_order)
    launches.emplace_back(start, name);
  else
    ++counts[name];
}

void requested(uint8_t** buffer, size_t* size, size_t* records) {
  *size = 1 << 20;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
  *records = 0;
}

void completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  std::lock_guard hold(lock);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
      const auto* kernel = reinterpret_cast<Kernel*>(record);
      add(kernel->start, kernel->name);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      const auto* copy = reinterpret_cast<CUpti_ActivityMemcpy6*>(record);
      if (copy->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH) add(copy->start, "d2h");
    }
  }
  std::free(buffer);
}

void write_counts() {
  cuptiActivityFlushAll(1);
  const char* base = std::getenv("KERNEL_NAMES");
  std::lock_guard hold(lock);
  if (!base || (counts.empty() && launches.empty())) return;
  std::FILE* file = std::fopen((std::string(base) + "." + std::to_string(getpid())).c_str(), "w");
  if (!file) return;
  for (const auto& [name, count] : counts) std::fprintf(file, "%ld %s\n", count, name.c_str());
  std::sort(launches.begin(), launches.end());
  for (const auto& [start, name] : launches) std::fprintf(file, "%s\n", name.c_str());
  std::fclose(file);
}

}  // namespace

extern "C" int InitializeInjection() {
  in_order = std::getenv("KERNEL_ORDER") != nullptr;
  cuptiActivityRegisterCallbacks(requested, completed);
  CUptiResult enabled = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  if (enabled == CUPTI_SUCCESS && in_order) enabled = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
  if (enabled != CUPTI_SUCCESS) std::fprintf(stderr, "kernel_names: CUPTI says %d\n", enabled);
  std::atexit(write_counts);
  return 1;
}
