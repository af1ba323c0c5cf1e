// Device memory of ours for a profile.
#pragma once

#include <cstddef>
#include <utility>

#include "shim/model/problem.hpp"
#include "shim/profile/driver.hpp"

namespace convpin {

// Stream-ordered: allocated and given back on the stream that uses it. No bytes: no memory, and no failure.
class Buffer {
 public:
  Buffer(const Driver& driver, CUstream stream, std::size_t bytes) : driver_(&driver), stream_(stream) {
    if (bytes > 0 && driver.allocate(&address_, bytes, stream) != CUDA_SUCCESS) address_ = 0, failed_ = true;
  }
  Buffer(Buffer&& other) noexcept
      : driver_(other.driver_), stream_(other.stream_), address_(std::exchange(other.address_, 0)), failed_(other.failed_) {}
  ~Buffer() {
    if (address_) driver_->release(address_, stream_);
  }
  Buffer& operator=(Buffer&&) = delete;
  bool failed() const { return failed_; }
  CUdeviceptr address() const { return address_; }
  void* pointer() const { return reinterpret_cast<void*>(address_); }

 private:
  const Driver* driver_;
  CUstream stream_;
  CUdeviceptr address_ = 0;
  bool failed_ = false;
};

// Finite numbers from -1 to 1 (integers: any), the same in every process. False where the copy failed.
bool fill_random(const Driver&, CUstream, CUdeviceptr, std::size_t bytes, DataType);

}  // namespace convpin
