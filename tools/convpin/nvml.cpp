#include "tools/convpin/nvml.hpp"

#include <dlfcn.h>

#include <cmath>
#include <utility>

namespace convpin::cli {
namespace {

constexpr std::uint64_t kSwPowerCap = 0x4;
constexpr std::pair<std::uint64_t, const char*> kThrottling[] = {
    {0x8, "HW slowdown"}, {0x20, "SW thermal slowdown"}, {0x40, "HW thermal slowdown"}, {0x80, "HW power brake"}};
constexpr double kClockChange = 0.03;

}  // namespace

std::string disturbance(const GpuState& before, const GpuState& after) {
  std::string why;
  for (const auto& [reason, name] : kThrottling)
    if ((before.event_reasons | after.event_reasons) & reason) why += (why.empty() ? "" : ", ") + std::string(name);
  if (!why.empty()) return after.temperature_c ? why + " (at " + std::to_string(*after.temperature_c) + " C)" : why;
  if (!before.sm_clock_mhz || !after.sm_clock_mhz) return {};
  const double change = std::abs(*after.sm_clock_mhz - *before.sm_clock_mhz);
  if (change <= kClockChange * *before.sm_clock_mhz) return {};
  return "the SM clock went from " + std::to_string(*before.sm_clock_mhz) + " to " + std::to_string(*after.sm_clock_mhz) + " MHz";
}

bool at_power_limit(const GpuState& state) { return state.event_reasons & kSwPowerCap; }

Parsed<Nvml> Nvml::open(const std::string& pci) {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return Parsed<Nvml>::fail("there is no NVML: " + std::string(dlerror()));
  Nvml nvml;
  const auto find = [&](auto& function, const char* name) {
    if (!function) function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
  };
  Functions& f = nvml.functions_;
  find(f.init, "nvmlInit_v2");
  find(f.by_pci, "nvmlDeviceGetHandleByPciBusId_v2");
  find(f.energy, "nvmlDeviceGetTotalEnergyConsumption");
  find(f.event_reasons, "nvmlDeviceGetCurrentClocksEventReasons");
  find(f.event_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");  // its name before driver 535
  find(f.clock, "nvmlDeviceGetClockInfo");
  find(f.temperature, "nvmlDeviceGetTemperature");
  if (!f.init || !f.by_pci) return Parsed<Nvml>::fail("libnvidia-ml.so.1 has no nvmlInit_v2");
  if (const int status = f.init()) return Parsed<Nvml>::fail("nvmlInit_v2 fails (" + std::to_string(status) + ")");
  if (const int status = f.by_pci(pci.c_str(), &nvml.gpu_))
    return Parsed<Nvml>::fail("NVML doesn't know the GPU at " + pci + " (" + std::to_string(status) + ")");
  return Parsed<Nvml>::ok(nvml);
}

std::optional<double> Nvml::energy_mj() const {
  unsigned long long mj = 0;
  if (!functions_.energy || functions_.energy(gpu_, &mj)) return std::nullopt;
  return static_cast<double>(mj);
}

GpuState Nvml::state() const {
  constexpr int kSmClock = 1, kOfTheGpu = 0;  // NVML_CLOCK_SM, NVML_TEMPERATURE_GPU
  GpuState state;
  unsigned value = 0;
  unsigned long long reasons = 0;
  if (functions_.clock && !functions_.clock(gpu_, kSmClock, &value)) state.sm_clock_mhz = static_cast<int>(value);
  if (functions_.temperature && !functions_.temperature(gpu_, kOfTheGpu, &value)) state.temperature_c = static_cast<int>(value);
  if (functions_.event_reasons && !functions_.event_reasons(gpu_, &reasons)) state.event_reasons = reasons;
  return state;
}

}  // namespace convpin::cli
