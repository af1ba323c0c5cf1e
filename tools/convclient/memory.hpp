// Where x, w, y and the workspace live: on the GPU through the CUDA driver API, or in host memory where
// cuDNN is the stand-in for machines without one. The driver is opened at run time, so that a program with
// this file links to neither libcuda nor cudart and starts anywhere.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "shim/model/parsed.hpp"

namespace convclient {

struct Driver;  // the driver's functions, memory.cpp

// True where the libcudnn that this program uses is tests/standin's, which takes host pointers.
bool on_standin();

// A piece of memory that is given back at the end of its life.
class Buffer {
 public:
  Buffer() = default;
  enum class Where : bool { Device, PinnedHost };
  Buffer(const Driver* driver, void* data, std::size_t size, Where where = Where::Device)
      : driver_(driver), data_(data), size_(size), where_(where) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(where_, other.where_);
    return *this;
  }
  ~Buffer();
  void* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  const Driver* driver_ = nullptr;  // null: host memory
  void* data_ = nullptr;
  std::size_t size_ = 0;
  Where where_ = Where::Device;
};

// The first GPU and a stream of its own, or the host. Use it only on the thread that opened it.
class Device {
 public:
  static convpin::Parsed<Device> open();
  Device(Device&& other) noexcept
      : driver_(std::exchange(other.driver_, nullptr)), stream_(std::exchange(other.stream_, nullptr)) {}
  ~Device();

  bool is_host() const { return driver_ == nullptr; }
  CUstream stream() const { return stream_; }  // a cudaStream_t too; null on the host

  // Aligned to 256 bytes, as cuMemAlloc does. A size of 0 gives an empty buffer with a null pointer.
  convpin::Parsed<Buffer> allocate(std::size_t bytes) const;
  // Host memory that the GPU copies to at the bus' full speed.
  convpin::Parsed<Buffer> allocate_pinned(std::size_t bytes) const;
  // Each waits until the copy is done and gives back what went wrong, empty for nothing.
  std::string upload(const Buffer& to, const void* from, std::size_t bytes) const;
  std::string download(void* to, const Buffer& from, std::size_t bytes) const;
  std::string synchronize() const;

  // How long the work that `launch` puts on the stream takes. Nothing where launch returned false.
  std::optional<double> time_ms(const std::function<bool()>& launch) const;

 private:
  Device(const Driver* driver, CUstream stream) : driver_(driver), stream_(stream) {}
  const Driver* driver_;
  CUstream stream_;
};

}  // namespace convclient
