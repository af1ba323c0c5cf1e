// An NVML of one GPU, the stand-in driver's: its counter goes up with time at a given power. It stands in a
// folder of its own, so that only who asks for it finds it. STANDIN_NVML_WATTS (100), STANDIN_NVML_TICK_MS
// (100), STANDIN_NVML_REASONS (0), STANDIN_NVML_CLOCKS ("1980": one after the other at each question, the
// last for ever).
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace {

double number_in(const char* variable, double otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtod(text, nullptr) : otherwise;
}

int gpu;

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int nvmlInit_v2() { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* pci, void** device) {
  *device = &gpu;
  return std::strcmp(pci, "0000:00:00.0") == 0 ? 0 : 6;  // NVML_ERROR_NOT_FOUND
}

int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* mj) {
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
  const double tick = number_in("STANDIN_NVML_TICK_MS", 100);
  *mj = static_cast<unsigned long long>(std::floor(ms / tick) * tick * number_in("STANDIN_NVML_WATTS", 100));
  return 0;
}

int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* reasons) {
  *reasons = static_cast<unsigned long long>(number_in("STANDIN_NVML_REASONS", 0));
  return 0;
}

int nvmlDeviceGetClockInfo(void*, int, unsigned* mhz) {
  static int asked = 0;
  const char* text = std::getenv("STANDIN_NVML_CLOCKS");
  if (text == nullptr) text = "1980";
  for (int i = 0; i < asked && std::strchr(text, ',') != nullptr; ++i) text = std::strchr(text, ',') + 1;
  ++asked;
  *mhz = static_cast<unsigned>(std::strtoul(text, nullptr, 10));
  return 0;
}

int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = 50;
  return 0;
}
}
