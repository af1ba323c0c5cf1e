// The graph API's calls, each with what we add to it. All of them call the real function with the caller's own
// arguments where we have nothing to say, or run into trouble.
#pragma once

#include <cudnn.h>

#include <cstdint>

#include "shim/hooks/real.hpp"

namespace convpin::graph {

cudnnStatus_t create(const Library&, cudnnBackendDescriptorType_t, cudnnBackendDescriptor_t*) noexcept;
cudnnStatus_t destroy(const Library&, cudnnBackendDescriptor_t) noexcept;
cudnnStatus_t set_attribute(const Library&, cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                            cudnnBackendAttributeType_t, std::int64_t count, const void* values) noexcept;
cudnnStatus_t get_attribute(const Library&, cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                            cudnnBackendAttributeType_t, std::int64_t requested, std::int64_t* count,
                            void* values) noexcept;
cudnnStatus_t finalize(const Library&, cudnnBackendDescriptor_t) noexcept;
cudnnStatus_t execute(const Library&, cudnnHandle_t, cudnnBackendDescriptor_t plan,
                      cudnnBackendDescriptor_t variant_pack) noexcept;

cudnnStatus_t populate_cuda_graph(const Library&, cudnnHandle_t, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t variant_pack, cudaGraph_t) noexcept;
cudnnStatus_t update_cuda_graph(const Library&, cudnnHandle_t, cudnnBackendDescriptor_t plan,
                                cudnnBackendDescriptor_t variant_pack, cudaGraph_t) noexcept;

// Adds the calls of plans that are alive to their problems: before the end line.
void flush_live_plans();

}  // namespace convpin::graph
