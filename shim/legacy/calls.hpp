// The legacy API's functions as programs call them, handed to the adapter. Those of the three operations have one shape and
// differ in the order of tensors and filter: descriptors_of tells them apart by their types.
//
// `real` is the real function, which has a name and is called with the program's arguments (Real in real.hpp).
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <functional>

#include "shim/legacy/adapter.hpp"

namespace convpin::legacy {

inline Descriptors descriptors_of(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                  cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y) {
  return {handle, x, w, convolution, y};
}

// cudnnConvolutionForward
template <typename Real, typename A, typename B, typename C, typename Algorithm>
cudnnStatus_t on_convolution(const Real& real, cudnnHandle_t handle, const void* alpha, A a, const void* a_data, B b,
                             const void* b_data, cudnnConvolutionDescriptor_t convolution, Algorithm algorithm, void* workspace,
                             std::size_t workspace_bytes, const void* beta, C c, void* c_data) noexcept {
  return forward(real.library, descriptors_of(handle, a, b, convolution, c), alpha, a_data, b_data, algorithm, workspace,
                 workspace_bytes, beta, c_data);
}

inline cudnnStatus_t on_fused_convolution(const Library& library, cudnnHandle_t handle, const void* alpha1,
                                          cudnnTensorDescriptor_t x, const void* x_data, cudnnFilterDescriptor_t w,
                                          const void* w_data, cudnnConvolutionDescriptor_t convolution,
                                          cudnnConvolutionFwdAlgo_t algorithm, void* workspace, std::size_t workspace_bytes,
                                          const void* alpha2, cudnnTensorDescriptor_t z, const void* z_data,
                                          cudnnTensorDescriptor_t bias, const void* bias_data,
                                          cudnnActivationDescriptor_t activation, cudnnTensorDescriptor_t y,
                                          void* y_data) noexcept {
  return bias_activation_forward(library, {handle, x, w, convolution, y}, alpha1, x_data, w_data, algorithm, workspace,
                                 workspace_bytes, alpha2, z, z_data, bias, bias_data, activation, y_data);
}

// cudnnGetConvolutionForwardAlgorithm_v7, cudnnFindConvolutionForwardAlgorithm
template <typename Real, typename A, typename B, typename C, typename Result>
cudnnStatus_t on_query(const Real& real, cudnnHandle_t handle, A a, B b, cudnnConvolutionDescriptor_t convolution, C c,
                       int requested, int* returned, Result* results) noexcept {
  const auto call = [&](int count, int* got, Result* into) { return real(handle, a, b, convolution, c, count, got, into); };
  return query(real.library, descriptors_of(handle, a, b, convolution, c), real.name, requested, returned, results,
               std::ref(call));  // a reference takes no heap
}

// cudnnFindConvolutionForwardAlgorithmEx
template <typename Real, typename A, typename B, typename C, typename Result>
cudnnStatus_t on_query_with_data(const Real& real, cudnnHandle_t handle, A a, const void* a_data, B b, const void* b_data,
                                 cudnnConvolutionDescriptor_t convolution, C c, void* c_data, int requested, int* returned,
                                 Result* results, void* workspace, std::size_t workspace_bytes) noexcept {
  const auto call = [&](int count, int* got, Result* into) {
    return real(handle, a, a_data, b, b_data, convolution, c, c_data, count, got, into, workspace, workspace_bytes);
  };
  return query(real.library, descriptors_of(handle, a, b, convolution, c), real.name, requested, returned, results,
               std::ref(call));
}

// cudnnGetConvolutionForwardWorkspaceSize
template <typename Real, typename A, typename B, typename C, typename Algorithm>
cudnnStatus_t on_workspace_query(const Real& real, cudnnHandle_t handle, A a, B b, cudnnConvolutionDescriptor_t convolution,
                                 C c, Algorithm algorithm, std::size_t* bytes) noexcept {
  return workspace_size(real.library, descriptors_of(handle, a, b, convolution, c), algorithm, bytes);
}

}  // namespace convpin::legacy
