// The exported functions: find the real library behind the caller, then the adapter. Too thin to be wrong.
//
// A call passes on untouched where nothing is asked for, where cuDNN calls itself, and where we are already inside.
#include <cudnn.h>

#include <functional>

#include "shim/graph/adapter.hpp"
#include "shim/graph/mirror.hpp"
#include "shim/hooks/real.hpp"
#include "shim/hooks/reason.hpp"
#include "shim/legacy/adapter.hpp"
#include "shim/process/runtime.hpp"
#include "shim/profile/measure.hpp"

#define CONVPIN_EXPORT extern "C" __attribute__((visibility("default")))

namespace convpin {

const AtEnd at_end_hooks[3] = {
    {graph::flush_live_plans, nullptr, graph::renew_in_child},
    {legacy::flush_counts, nullptr, nullptr},
    {nullptr, measuring_summary, renew_lock_in_child},
};

namespace {

// initial-exec: a preloaded library's thread-locals are in the static block, so that this is one instruction.
thread_local int depth __attribute__((tls_model("initial-exec"))) = 0;

struct Inside {
  Inside() { ++depth; }
  ~Inside() { --depth; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

bool passes(const Caller& caller) { return depth > 0 || caller.inside_cudnn || runtime().idle; }

// For a function that this cuDNN lacks, and for a caller behind which there is none.
cudnnStatus_t missing(const Caller& caller) {
  return caller.library ? caller.library->not_supported() : CUDNN_STATUS_NOT_INITIALIZED;
}

}  // namespace
}  // namespace convpin

#define CONVPIN_FORWARD(name, ...)                                                                  \
  const convpin::Caller caller = convpin::caller_at(__builtin_return_address(0));                  \
  if (!caller.library || !caller.library->name) return convpin::missing(caller);                   \
  const convpin::Library& real = *caller.library;                                                  \
  if (convpin::passes(caller)) return real.name(__VA_ARGS__);                                      \
  const convpin::Inside inside

CONVPIN_EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* out) {
  CONVPIN_FORWARD(cudnnBackendCreateDescriptor, type, out);
  return convpin::graph::create(real, type, out);
}

CONVPIN_EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  CONVPIN_FORWARD(cudnnBackendDestroyDescriptor, descriptor);
  return convpin::graph::destroy(real, descriptor);
}

CONVPIN_EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                                      cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  CONVPIN_FORWARD(cudnnBackendSetAttribute, descriptor, name, type, count, values);
  return convpin::graph::set_attribute(real, descriptor, name, type, count, values);
}

CONVPIN_EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                                      cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                                      int64_t requested, int64_t* count, void* values) {
  CONVPIN_FORWARD(cudnnBackendGetAttribute, descriptor, name, type, requested, count, values);
  return convpin::graph::get_attribute(real, descriptor, name, type, requested, count, values);
}

CONVPIN_EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  CONVPIN_FORWARD(cudnnBackendFinalize, descriptor);
  return convpin::graph::finalize(real, descriptor);
}

CONVPIN_EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                                 cudnnBackendDescriptor_t pack) {
  CONVPIN_FORWARD(cudnnBackendExecute, handle, plan, pack);
  return convpin::graph::execute(real, handle, plan, pack);
}

CONVPIN_EXPORT cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t x,
                                                     const void* x_data, const cudnnFilterDescriptor_t w, const void* w_data,
                                                     const cudnnConvolutionDescriptor_t convolution,
                                                     cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                                     size_t workspace_bytes, const void* beta, const cudnnTensorDescriptor_t y,
                                                     void* y_data) {
  CONVPIN_FORWARD(cudnnConvolutionForward, handle, alpha, x, x_data, w, w_data, convolution, algorithm, workspace,
                  workspace_bytes, beta, y, y_data);
  return convpin::legacy::forward(real, {handle, x, w, convolution, y}, alpha, x_data, w_data, algorithm, workspace,
                                  workspace_bytes, beta, y_data);
}

CONVPIN_EXPORT cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha1, const cudnnTensorDescriptor_t x, const void* x_data,
    const cudnnFilterDescriptor_t w, const void* w_data, const cudnnConvolutionDescriptor_t convolution,
    cudnnConvolutionFwdAlgo_t algorithm, void* workspace, size_t workspace_bytes, const void* alpha2,
    const cudnnTensorDescriptor_t z, const void* z_data, const cudnnTensorDescriptor_t bias, const void* bias_data,
    const cudnnActivationDescriptor_t activation, const cudnnTensorDescriptor_t y, void* y_data) {
  CONVPIN_FORWARD(cudnnConvolutionBiasActivationForward, handle, alpha1, x, x_data, w, w_data, convolution, algorithm,
                  workspace, workspace_bytes, alpha2, z, z_data, bias, bias_data, activation, y, y_data);
  return convpin::legacy::bias_activation_forward(real, {handle, x, w, convolution, y}, alpha1, x_data, w_data, algorithm,
                                                  workspace, workspace_bytes, alpha2, z, z_data, bias, bias_data, activation,
                                                  y_data);
}

CONVPIN_EXPORT cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y, const int requested, int* returned,
    cudnnConvolutionFwdAlgoPerf_t* results) {
  CONVPIN_FORWARD(cudnnGetConvolutionForwardAlgorithm_v7, handle, x, w, convolution, y, requested, returned, results);
  const auto call = [&](int count, int* got, cudnnConvolutionFwdAlgoPerf_t* into) {
    return real.cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, convolution, y, count, got, into);
  };
  return convpin::legacy::query(real, {handle, x, w, convolution, y}, "cudnnGetConvolutionForwardAlgorithm_v7", requested, returned,
                                results, std::ref(call));  // a reference takes no heap
}

CONVPIN_EXPORT cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y, const int requested, int* returned,
    cudnnConvolutionFwdAlgoPerf_t* results) {
  CONVPIN_FORWARD(cudnnFindConvolutionForwardAlgorithm, handle, x, w, convolution, y, requested, returned, results);
  const auto call = [&](int count, int* got, cudnnConvolutionFwdAlgoPerf_t* into) {
    return real.cudnnFindConvolutionForwardAlgorithm(handle, x, w, convolution, y, count, got, into);
  };
  return convpin::legacy::query(real, {handle, x, w, convolution, y}, "cudnnFindConvolutionForwardAlgorithm", requested, returned,
                                results, std::ref(call));  // a reference takes no heap
}

CONVPIN_EXPORT cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const void* x_data, const cudnnFilterDescriptor_t w,
    const void* w_data, const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y, void* y_data,
    const int requested, int* returned, cudnnConvolutionFwdAlgoPerf_t* results, void* workspace, size_t workspace_bytes) {
  CONVPIN_FORWARD(cudnnFindConvolutionForwardAlgorithmEx, handle, x, x_data, w, w_data, convolution, y, y_data, requested,
                  returned, results, workspace, workspace_bytes);
  const auto call = [&](int count, int* got, cudnnConvolutionFwdAlgoPerf_t* into) {
    return real.cudnnFindConvolutionForwardAlgorithmEx(handle, x, x_data, w, w_data, convolution, y, y_data, count, got,
                                                       into, workspace, workspace_bytes);
  };
  return convpin::legacy::query(real, {handle, x, w, convolution, y}, "cudnnFindConvolutionForwardAlgorithmEx", requested, returned,
                                results, std::ref(call));  // a reference takes no heap
}

CONVPIN_EXPORT cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algorithm,
    size_t* bytes) {
  CONVPIN_FORWARD(cudnnGetConvolutionForwardWorkspaceSize, handle, x, w, convolution, y, algorithm, bytes);
  return convpin::legacy::workspace_size(real, {handle, x, w, convolution, y}, algorithm, bytes);
}

CONVPIN_EXPORT void cudnnGetLastErrorString(char* message, size_t size) {
  const convpin::Caller caller = convpin::caller_at(__builtin_return_address(0));
  if (!caller.library || !caller.library->cudnnGetLastErrorString) return;
  if (convpin::passes(caller)) return caller.library->cudnnGetLastErrorString(message, size);
  convpin::get_last_error(*caller.library, message, size);
}

CONVPIN_EXPORT cudnnStatus_t cudnnSetCallback(unsigned mask, void* data, cudnnCallback_t function) {
  CONVPIN_FORWARD(cudnnSetCallback, mask, data, function);
  return convpin::set_callback(real, mask, data, function);
}

CONVPIN_EXPORT cudnnStatus_t cudnnGetCallback(unsigned* mask, void** data, cudnnCallback_t* function) {
  CONVPIN_FORWARD(cudnnGetCallback, mask, data, function);
  return convpin::get_callback(real, mask, data, function);
}
