// What the GPU says of itself through NVML, the driver's own library: the energy it took, its clock, what
// slows it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shim/model/parsed.hpp"

namespace convpin::cli {

struct GpuState {
  std::optional<int> sm_clock_mhz, temperature_c;
  std::uint64_t event_reasons = 0;  // nvmlClocksEventReason...: why the clock is no higher
};

// What makes times taken between the two incomparable: "the SM clock went from 1980 to 1500 MHz", "HW
// slowdown (at 91 C)". Empty for nothing.
std::string disturbance(const GpuState& before, const GpuState& after);
bool at_power_limit(const GpuState&);  // which is how a GPU works that is busy

class Nvml {
 public:
  // The GPU with this PCI address ("0000:19:00.0"): NVML's own numbers don't follow CUDA_VISIBLE_DEVICES.
  // Fails with a sentence where there is no NVML or it doesn't know that GPU.
  static Parsed<Nvml> open(const std::string& pci);
  // Since the driver was loaded, in mJ; it moves about every 100 ms. Nothing where the GPU has no such
  // counter.
  std::optional<double> energy_mj() const;
  GpuState state() const;

 private:
  // NVML API reference; nvml.h is not needed for that few.
  struct Functions {
    int (*init)() = nullptr;
    int (*by_pci)(const char*, void**) = nullptr;
    int (*energy)(void*, unsigned long long*) = nullptr;
    int (*event_reasons)(void*, unsigned long long*) = nullptr;
    int (*clock)(void*, int, unsigned*) = nullptr;
    int (*temperature)(void*, int, unsigned*) = nullptr;
  };
  Functions functions_;
  void* gpu_ = nullptr;
};

}  // namespace convpin::cli
