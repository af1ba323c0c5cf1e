// The stand-in's handle, and the device that it pretends to have.
#pragma once

#include <cudnn.h>

#include <optional>
#include <string>

#include "tests/standin/graph.hpp"

struct cudnnContext {  // cudnn.h declares it
  unsigned mark = standin_mark;
  cudaStream_t stream = nullptr;

  static constexpr unsigned standin_mark = 0x57a4d14;
};

namespace standin {

inline bool is_handle(cudnnHandle_t handle) {
  return handle != nullptr && handle->mark == cudnnContext::standin_mark;
}

// The properties that STANDIN_DEVICE_JSON or the file beside the library describes: as text, and as the
// real library's finalized descriptor (null where it refuses them).
const std::string& device_json();
cudnnBackendDescriptor_t device_properties();

// Of a finalized engine configuration; of a finalized plan.
std::int64_t engine_of(cudnnBackendDescriptor_t engine_config);
std::optional<Plan> read_plan(cudnnBackendDescriptor_t, std::string& reason);

}  // namespace standin
