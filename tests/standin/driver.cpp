// The CUDA driver functions that the preload library's profiler uses, on the host: "device" memory is
// host memory, streams do everything at once, events are points of the monotonic clock (but see device_now).
#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "tests/standin/cuda_graph.hpp"
#include "tests/standin/faults.hpp"
#include "tests/standin/forward.hpp"
#include "tests/standin/handle.hpp"

namespace standin {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t total_memory = std::size_t{32} << 30;
std::mutex memory_mutex;
std::size_t memory_used = 0;
std::unordered_map<CUdeviceptr, std::size_t>& allocations() {
  static auto* const map = new std::unordered_map<CUdeviceptr, std::size_t>;
  return *map;
}

void* host(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

std::size_t free_memory() {  // with memory_mutex held
  const char* value = std::getenv("STANDIN_FREE_BYTES");
  const std::size_t limit = value != nullptr ? std::strtoull(value, nullptr, 10) : total_memory / 2;
  return limit > memory_used ? limit - memory_used : 0;
}

bool capturing() {
  const char* value = std::getenv("STANDIN_CAPTURING");
  return value != nullptr && *value == '1';
}

CUresult event_create(CUevent* event, unsigned) {
  *event = reinterpret_cast<CUevent>(new Clock::time_point);
  return CUDA_SUCCESS;
}

CUresult event_record(CUevent event, CUstream) {
  if (capturing()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  *reinterpret_cast<Clock::time_point*>(event) = device_now();
  return CUDA_SUCCESS;
}

CUresult event_synchronize(CUevent) { return CUDA_SUCCESS; }

CUresult event_elapsed(float* milliseconds, CUevent start, CUevent end) {
  const auto elapsed =
      *reinterpret_cast<Clock::time_point*>(end) - *reinterpret_cast<Clock::time_point*>(start);
  *milliseconds = std::chrono::duration<float, std::milli>(elapsed).count();
  return CUDA_SUCCESS;
}

CUresult event_destroy(CUevent event) {
  delete reinterpret_cast<Clock::time_point*>(event);
  return CUDA_SUCCESS;
}

CUresult allocate(CUdeviceptr* address, std::size_t size, CUstream) {
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (capturing()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const std::lock_guard lock(memory_mutex);
  void* memory = size > free_memory() ? nullptr : std::aligned_alloc(256, (size + 255) / 256 * 256);
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(memory);
  allocations()[*address] = size;
  memory_used += size;
  return CUDA_SUCCESS;
}

CUresult release(CUdeviceptr address, CUstream) {
  const std::lock_guard lock(memory_mutex);
  const auto found = allocations().find(address);
  if (found == allocations().end()) return CUDA_ERROR_INVALID_VALUE;
  memory_used -= found->second;
  allocations().erase(found);
  std::free(host(address));
  return CUDA_SUCCESS;
}

CUresult copy_to_host(void* to, CUdeviceptr from, std::size_t size, CUstream) {
  std::memcpy(to, host(from), size);
  return CUDA_SUCCESS;
}

CUresult copy_to_device(CUdeviceptr to, const void* from, std::size_t size, CUstream) {
  std::memcpy(host(to), from, size);
  return CUDA_SUCCESS;
}

CUresult copy_on_device(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream) {
  std::memcpy(host(to), host(from), size);
  return CUDA_SUCCESS;
}

CUresult set_bytes(CUdeviceptr to, unsigned char value, std::size_t count, CUstream) {
  std::memset(host(to), value, count);
  return CUDA_SUCCESS;
}

CUresult memory_info(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(memory_mutex);
  *free = free_memory();
  *total = total_memory;
  return CUDA_SUCCESS;
}

CUresult is_capturing(CUstream, CUstreamCaptureStatus* status) {
  *status = capturing() ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

CUresult synchronize(CUstream) { return capturing() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS; }

CUresult exchange_capture_mode(CUstreamCaptureMode* mode) {
  static thread_local CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::swap(*mode, current);
  return CUDA_SUCCESS;
}

CUresult current_device(CUdevice* device) {
  *device = 0;
  return CUDA_SUCCESS;
}

CUresult current_context(CUcontext* context) {
  static int the_context;
  *context = reinterpret_cast<CUcontext>(&the_context);
  return CUDA_SUCCESS;
}

CUresult device_name(char* name, int length, CUdevice) {
  std::snprintf(name, static_cast<std::size_t>(length), "convpin stand-in (CPU)");
  return CUDA_SUCCESS;
}

// The device that cuDNN is told of.
CUresult device_attribute(int* value, CUdevice_attribute attribute, CUdevice) {
  const auto json = nlohmann::json::parse(device_json(), nullptr, false);
  const auto number = [&](const char* key) { return json.is_object() ? json.value(key, 0) : 0; };
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = number("deviceVer") / 100;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = number("deviceVer") % 100 / 10;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = number("multiProcessorCount");
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      *value = number("l2CacheSize");
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      *value = number("smClockRateKHz");
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      *value = number("memClockRateKHz");
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      *value = number("warpSize");
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      *value = 1;
      return CUDA_SUCCESS;
    default:
      *value = 0;
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult device_uuid(CUuuid* uuid, CUdevice) {
  std::memcpy(uuid->bytes, "convpin standin", sizeof uuid->bytes);
  return CUDA_SUCCESS;
}

CUresult driver_version(int* version) {
  *version = 0;
  return CUDA_SUCCESS;
}

CUresult device_memory(std::size_t* bytes, CUdevice) {
  *bytes = total_memory;
  return CUDA_SUCCESS;
}

CUresult device_bus_id(char* id, int length, CUdevice) {
  std::snprintf(id, static_cast<std::size_t>(length), "0000:00:00.0");
  return CUDA_SUCCESS;
}

// There are no streams to make on the CPU: what is captured is the default one.
CUresult stream_create(CUstream*, unsigned) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult stream_destroy(CUstream) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult graph_nodes(CUgraph, CUgraphNode*, std::size_t*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult node_type(CUgraphNode, CUgraphNodeType*) { return CUDA_ERROR_NOT_SUPPORTED; }

struct Entry {
  std::string_view name;
  const void* function;
};

// A function that doesn't have cuda.h's type doesn't compile. cuda.h renames some by macros, so the name
// that a look-up uses is given as text.
#define STANDIN_DRIVER(name, declared, function) \
  Entry { name, reinterpret_cast<const void*>(static_cast<decltype(&::declared)>(function)) }

const Entry* driver_entry(std::string_view name) {
  static const Entry entries[] = {
      STANDIN_DRIVER("cuEventCreate", cuEventCreate, event_create),
      STANDIN_DRIVER("cuEventRecord", cuEventRecord, event_record),
      STANDIN_DRIVER("cuEventSynchronize", cuEventSynchronize, event_synchronize),
      STANDIN_DRIVER("cuEventElapsedTime", cuEventElapsedTime, event_elapsed),
      STANDIN_DRIVER("cuEventElapsedTime_v2", cuEventElapsedTime, event_elapsed),
      STANDIN_DRIVER("cuEventDestroy_v2", cuEventDestroy, event_destroy),
      STANDIN_DRIVER("cuMemAllocAsync", cuMemAllocAsync, allocate),
      STANDIN_DRIVER("cuMemFreeAsync", cuMemFreeAsync, release),
      STANDIN_DRIVER("cuMemcpyDtoHAsync_v2", cuMemcpyDtoHAsync, copy_to_host),
      STANDIN_DRIVER("cuMemcpyHtoDAsync_v2", cuMemcpyHtoDAsync, copy_to_device),
      STANDIN_DRIVER("cuMemcpyDtoDAsync_v2", cuMemcpyDtoDAsync, copy_on_device),
      STANDIN_DRIVER("cuMemsetD8Async", cuMemsetD8Async, set_bytes),
      STANDIN_DRIVER("cuMemGetInfo_v2", cuMemGetInfo, memory_info),
      STANDIN_DRIVER("cuStreamIsCapturing", cuStreamIsCapturing, is_capturing),
      STANDIN_DRIVER("cuStreamSynchronize", cuStreamSynchronize, synchronize),
      STANDIN_DRIVER("cuStreamCreate", cuStreamCreate, stream_create),
      STANDIN_DRIVER("cuStreamDestroy_v2", cuStreamDestroy, stream_destroy),
      STANDIN_DRIVER("cuStreamBeginCapture_v2", cuStreamBeginCapture, begin_capture),
      STANDIN_DRIVER("cuStreamEndCapture", cuStreamEndCapture, end_capture),
      STANDIN_DRIVER("cuGraphGetNodes", cuGraphGetNodes, graph_nodes),
      STANDIN_DRIVER("cuGraphNodeGetType", cuGraphNodeGetType, node_type),
      STANDIN_DRIVER("cuThreadExchangeStreamCaptureMode", cuThreadExchangeStreamCaptureMode,
                     exchange_capture_mode),
      STANDIN_DRIVER("cuCtxGetDevice", cuCtxGetDevice, current_device),
      STANDIN_DRIVER("cuCtxGetCurrent", cuCtxGetCurrent, current_context),
      STANDIN_DRIVER("cuDeviceGetName", cuDeviceGetName, device_name),
      STANDIN_DRIVER("cuDeviceGetAttribute", cuDeviceGetAttribute, device_attribute),
      STANDIN_DRIVER("cuDeviceGetUuid_v2", cuDeviceGetUuid, device_uuid),
      STANDIN_DRIVER("cuDriverGetVersion", cuDriverGetVersion, driver_version),
      STANDIN_DRIVER("cuDeviceTotalMem_v2", cuDeviceTotalMem, device_memory),
      STANDIN_DRIVER("cuDeviceGetPCIBusId", cuDeviceGetPCIBusId, device_bus_id),
      STANDIN_DRIVER("cuGraphCreate", cuGraphCreate, graph_create),
      STANDIN_DRIVER("cuGraphDestroy", cuGraphDestroy, graph_destroy),
      STANDIN_DRIVER("cuGraphInstantiateWithFlags", cuGraphInstantiate, graph_instantiate),
      STANDIN_DRIVER("cuGraphExecDestroy", cuGraphExecDestroy, graph_exec_destroy),
      STANDIN_DRIVER("cuGraphLaunch", cuGraphLaunch, graph_launch),
  };
  const auto* found =
      std::find_if(std::begin(entries), std::end(entries), [&](const Entry& e) { return e.name == name; });
  return found != std::end(entries) ? found : nullptr;
}

}  // namespace
}  // namespace standin

STANDIN_EXPORT const void* cudnnStandinDriver(const char* name) {
  const standin::Entry* entry = name != nullptr ? standin::driver_entry(name) : nullptr;
  return entry != nullptr ? entry->function : nullptr;
}

STANDIN_EXPORT unsigned long long cudnnStandinAllocations() {
  const std::lock_guard lock(standin::memory_mutex);
  return standin::allocations().size();
}
