// How many kernels a cuDNN call launches: it is captured into a CUDA graph that never runs, and the graph's nodes are counted.
#pragma once

#include <functional>
#include <optional>

#include "shim/profile/driver.hpp"

namespace convpin {

using KernelCounter = std::function<std::optional<int>(const std::function<cudnnStatus_t()>&)>;
// Of calls on `handle`, whose stream is another one while they are captured. Empty where this can't be done.
KernelCounter kernel_counter(const Library&, const Driver&, cudnnHandle_t handle);

}  // namespace convpin
