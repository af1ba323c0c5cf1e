// What is known of a call of the graph API that failed, for its record. Each function takes what the call took.
#pragma once

#include "shim/process/failures.hpp"

namespace convpin::graph {

// Create: no descriptor came of it.
void describe_failed(const Library&, FailedCall&, cudnnBackendDescriptorType_t, cudnnBackendDescriptor_t*);
// Finalize, Destroy
void describe_failed(const Library&, FailedCall&, cudnnBackendDescriptor_t);
// SetAttribute, GetAttribute
void describe_failed(const Library&, FailedCall&, cudnnBackendDescriptor_t, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t,
                     std::int64_t, const void*);
void describe_failed(const Library&, FailedCall&, cudnnBackendDescriptor_t, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t,
                     std::int64_t, const std::int64_t*, const void*);
// Execute, PopulateCudaGraph, UpdateCudaGraph
void describe_failed(const Library&, FailedCall&, cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t);
void describe_failed(const Library&, FailedCall&, cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t, cudaGraph_t);

}  // namespace convpin::graph
