// The CUDA driver as found in the process: one table of pointers. Never loads libcuda; never links it.
#pragma once

#include <cuda.h>

#include "shim/hooks/real.hpp"

namespace convpin {

struct Driver {
#define CONVPIN_DRIVER(member, name) decltype(&::name) member = nullptr;
#include "shim/profile/driver.def"
#undef CONVPIN_DRIVER
};

// Complete, or null: libcuda.so.1 if the process has it; else the table of the stand-in that `library` is
// (tests/standin exports cudnnStandinDriver). Not finding it is not remembered.
const Driver* driver(const Library& library) noexcept;

// While it lives, our CUDA calls can't break a capture that another thread has under way, and the CUDA runtime's
// last error is as it was.
class CudaScope {
 public:
  explicit CudaScope(const Driver&);
  ~CudaScope();
  CudaScope(const CudaScope&) = delete;
  CudaScope& operator=(const CudaScope&) = delete;

 private:
  const Driver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool exchanged_ = false;
  bool had_error_ = false;
};

}  // namespace convpin
