#include "shim/process/device.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "shim/hooks/lookup.hpp"
#include "shim/profile/driver.hpp"

namespace convpin {
namespace {

std::string uuid_text(const CUuuid& uuid) {
  char text[64];
  const auto* b = reinterpret_cast<const unsigned char*>(uuid.bytes);
  std::snprintf(text, sizeof text, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
                b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
  return text;
}

// What only NVML knows (NVML API reference). The library is the driver's own and was asked for by wanting a log.
void ask_nvml_about(Device& device) {
  void* nvml = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!nvml) return;
  using Plain = int (*)();
  using ByPci = int (*)(const char*, void**);
  using Text = int (*)(char*, unsigned);
  using Clock = int (*)(void*, int, unsigned*);
  using Value = int (*)(void*, unsigned*);
  using Pair = int (*)(void*, unsigned*, unsigned*);
  const auto symbol = [&](const char* name) { return symbol_in(nvml, name); };
  const auto init = reinterpret_cast<Plain>(symbol("nvmlInit_v2"));
  const auto shutdown = reinterpret_cast<Plain>(symbol("nvmlShutdown"));
  if (!init || !shutdown || init() != 0) return;
  if (const auto driver_text = reinterpret_cast<Text>(symbol("nvmlSystemGetDriverVersion"))) {
    char text[96] = {};
    if (driver_text(text, sizeof text) == 0) device.driver = text;
  }
  void* gpu = nullptr;
  const auto by_pci = reinterpret_cast<ByPci>(symbol("nvmlDeviceGetHandleByPciBusId_v2"));
  if (by_pci && by_pci(device.pci.c_str(), &gpu) == 0) {
    unsigned value = 0, pending = 0;
    const auto clock = reinterpret_cast<Clock>(symbol("nvmlDeviceGetClockInfo"));
    if (clock && clock(gpu, 1, &value) == 0) device.sm_clock_mhz = static_cast<int>(value);      // NVML_CLOCK_SM
    if (clock && clock(gpu, 2, &value) == 0) device.memory_clock_mhz = static_cast<int>(value);  // NVML_CLOCK_MEM
    const auto limit = reinterpret_cast<Value>(symbol("nvmlDeviceGetPowerManagementLimit"));
    if (limit && limit(gpu, &value) == 0) device.power_limit_mw = static_cast<int>(value);
    const auto mig = reinterpret_cast<Pair>(symbol("nvmlDeviceGetMigMode"));
    if (mig && mig(gpu, &value, &pending) == 0) device.mig = value != 0;
  }
  shutdown();
}

// By the list of what is loaded: dlopen with RTLD_NOLOAD looks for the file on disk where it is not loaded, and every
// child process comes here.
bool loaded(const char* soname) {
  return dl_iterate_phdr(
             [](dl_phdr_info* info, std::size_t, void* wanted) {
               const char* slash = info->dlpi_name ? std::strrchr(info->dlpi_name, '/') : nullptr;
               return slash && !std::strncmp(slash + 1, static_cast<const char*>(wanted),
                                             std::strlen(static_cast<const char*>(wanted))) ? 1 : 0;
             },
             const_cast<char*>(soname)) != 0;
}

}  // namespace

Device describe_device(const Library& library, bool ask_nvml) {
  Device out;
  const Driver* d = driver(library);
  if (!d) return out;
  const CudaScope scope(*d);
  CUdevice device = 0;
  if (d->driver_version(&out.driver_version) != CUDA_SUCCESS || d->current_device(&device) != CUDA_SUCCESS) return out;
  out.ordinal = device;
  char text[256] = {};
  if (d->device_name(text, sizeof text, device) == CUDA_SUCCESS) out.name = text;
  if (d->device_pci(text, sizeof text, device) == CUDA_SUCCESS) out.pci = text;
  CUuuid uuid{};
  if (d->device_uuid(&uuid, device) == CUDA_SUCCESS) out.uuid = uuid_text(uuid);
  int major = 0, minor = 0;
  d->device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  d->device_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  out.compute_capability = major * 10 + minor;
  std::size_t bytes = 0;
  if (d->device_memory(&bytes, device) == CUDA_SUCCESS) out.memory_bytes = static_cast<std::int64_t>(bytes);
  if (ask_nvml) ask_nvml_about(out);
  return out;
}

std::string command_line() {
  const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  char text[1024];
  const ssize_t got = read(file, text, sizeof text);
  close(file);
  std::string line(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!line.empty() && line.back() == '\0') line.pop_back();
  for (char& c : line)
    if (c == '\0') c = ' ';
  return line;
}

std::string silence_explained(const std::function<const char*(const char*)>& getenv_) {
  const auto is_set = [&](const char* name) {
    const char* value = getenv_(name);
    return value && *value;
  };
  if (is_set("CONVPIN_DISABLE")) return {};
  if (!is_set("CONV_FWD_ALGO") && !is_set("CONV_BWD_DATA_ALGO") && !is_set("CONV_BWD_FILTER_ALGO") && !is_set("CONVPIN_CONFIG") && !is_set("CONVPIN_LOG") && !is_set("CONVPIN_PROFILE")) return {};
  const bool cuda = loaded("libcuda.so.1");
  const bool cudnn = loaded("libcudnn.so.") || loaded("libcudnn_");  // a program may have only sub-libraries
  if (!cuda && !cudnn) return {};
  // A framework's worker processes (Python's multiprocessing, torch.compile's) import cuDNN and have nothing to tell.
  const std::string command = command_line();
  for (const char* worker : {"multiprocessing", "compile_worker"})
    if (command.find(worker) != std::string::npos) return {};
  if (cuda) {  // a worker process that imports the framework but never uses the GPU has nothing to tell
    using Get = CUresult (*)(CUcontext*);
    void* handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    const auto current = reinterpret_cast<Get>(symbol_in(handle, "cuCtxGetCurrent"));
    CUcontext context = nullptr;
    if (!current || current(&context) == CUDA_ERROR_NOT_INITIALIZED) return {};
  }
  if (cudnn)
    return "convpin: 0 convolutions reached: cuDNN is loaded, but none of its functions was called through convpin (no "
           "convolution ran, or the program reaches cuDNN past a preload: a library opened with RTLD_DEEPBIND, or another "
           "tool before convpin in LD_PRELOAD that answers dlsym)\n";
  return "convpin: 0 convolutions reached: this program uses the GPU without a shared libcudnn "
         "(not used at all, or linked statically)\n";
}

}  // namespace convpin
