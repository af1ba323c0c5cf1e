// The legacy API's functions as programs call them, handed to the adapter. Those of the three operations have one shape and
// differ in the order of tensors and filter: descriptors_of tells them apart by their types.
//
// `real` is the real function, which has a name and is called with the program's arguments (Real in real.hpp).
#pragma once

#include <cudnn.h>

#include <bit>
#include <cstddef>
#include <functional>
#include <vector>

#include "shim/legacy/adapter.hpp"

namespace convpin::legacy {

inline Descriptors descriptors_of(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                  cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y) {
  return {Operation::Forward, handle, x, w, convolution, y};
}

inline Descriptors descriptors_of(cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
                                  cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t dx) {
  return {Operation::BackwardData, handle, dx, w, convolution, dy};
}

inline Descriptors descriptors_of(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
                                  cudnnConvolutionDescriptor_t convolution, cudnnFilterDescriptor_t dw) {
  return {Operation::BackwardFilter, handle, x, dw, convolution, dy};
}

// cudnnConvolutionForward, cudnnConvolutionBackwardData, cudnnConvolutionBackwardFilter
template <typename Real, typename A, typename B, typename C, typename Algorithm>
cudnnStatus_t on_convolution(const Real& real, cudnnHandle_t handle, const void* alpha, A a, const void* a_data, B b,
                             const void* b_data, cudnnConvolutionDescriptor_t convolution_, Algorithm algorithm, void* workspace,
                             std::size_t workspace_bytes, const void* beta, C c, void* c_data) noexcept {
  const auto call = [&](int algo, void* space, std::size_t bytes, const void* beta_, void* out) {
    return real(handle, alpha, a, a_data, b, b_data, convolution_, static_cast<Algorithm>(algo), space, bytes, beta_, c, out);
  };
  const Run run = std::ref(call);  // a reference takes no heap
  return convolution({real.library, descriptors_of(handle, a, b, convolution_, c), static_cast<int>(algorithm), workspace,
                      workspace_bytes, beta, c_data, run});
}

template <typename Real>
cudnnStatus_t on_fused_convolution(const Real& real, cudnnHandle_t handle, const void* alpha1, cudnnTensorDescriptor_t x,
                                   const void* x_data, cudnnFilterDescriptor_t w, const void* w_data,
                                   cudnnConvolutionDescriptor_t convolution_, cudnnConvolutionFwdAlgo_t algorithm,
                                   void* workspace, std::size_t workspace_bytes, const void* alpha2, cudnnTensorDescriptor_t z,
                                   const void* z_data, cudnnTensorDescriptor_t bias, const void* bias_data,
                                   cudnnActivationDescriptor_t activation, cudnnTensorDescriptor_t y, void* y_data) noexcept {
  const auto call = [&](int algo, void* space, std::size_t bytes, const void*, void* out) {
    return real(handle, alpha1, x, x_data, w, w_data, convolution_, static_cast<cudnnConvolutionFwdAlgo_t>(algo), space, bytes,
                alpha2, z, z_data, bias, bias_data, activation, y, out);
  };
  const Run run = std::ref(call);
  return fused_convolution({real.library, descriptors_of(handle, x, w, convolution_, y), static_cast<int>(algorithm), workspace,
                            workspace_bytes, nullptr, y_data, run},
                           {alpha2, activation});
}

template <typename Real, typename Result, typename Call>
cudnnStatus_t answer(const Real& real, const Descriptors& d, int requested, int* returned, Result* results, Call&& call) noexcept {
  const auto real_query = [&](int count, int* got, Perf* into) {
    std::vector<Result> room(static_cast<std::size_t>(count));
    const cudnnStatus_t status = call(count, got, room.data());
    for (int i = 0; status == CUDNN_STATUS_SUCCESS && i < *got; ++i) into[i] = std::bit_cast<Perf>(room[static_cast<std::size_t>(i)]);
    return status;
  };
  const auto give = [&](int i, const Perf& result) { results[i] = std::bit_cast<Result>(result); };
  if (!results || !returned || requested < 1) return call(requested, returned, results);  // cuDNN's own error
  const auto status = query(real.library, d, requested, returned, {real.name, std::ref(real_query), std::ref(give)});
  return status ? *status : call(requested, returned, results);
}

// cudnnGetConvolution*Algorithm_v7, cudnnFindConvolution*Algorithm
template <typename Real, typename A, typename B, typename C, typename Result>
cudnnStatus_t on_query(const Real& real, cudnnHandle_t handle, A a, B b, cudnnConvolutionDescriptor_t convolution_, C c,
                       int requested, int* returned, Result* results) noexcept {
  return answer(real, descriptors_of(handle, a, b, convolution_, c), requested, returned, results,
                [&](int count, int* got, Result* into) { return real(handle, a, b, convolution_, c, count, got, into); });
}

// cudnnFindConvolution*AlgorithmEx
template <typename Real, typename A, typename B, typename C, typename Data, typename Result>
cudnnStatus_t on_query_with_data(const Real& real, cudnnHandle_t handle, A a, const void* a_data, B b, const void* b_data,
                                 cudnnConvolutionDescriptor_t convolution_, C c, Data c_data, int requested, int* returned,
                                 Result* results, void* workspace, std::size_t workspace_bytes) noexcept {
  return answer(real, descriptors_of(handle, a, b, convolution_, c), requested, returned, results,
                [&](int count, int* got, Result* into) {
                  return real(handle, a, a_data, b, b_data, convolution_, c, c_data, count, got, into, workspace, workspace_bytes);
                });
}

// cudnnGetConvolution*WorkspaceSize
template <typename Real, typename A, typename B, typename C, typename Algorithm>
cudnnStatus_t on_workspace_query(const Real& real, cudnnHandle_t handle, A a, B b, cudnnConvolutionDescriptor_t convolution_,
                                 C c, Algorithm algorithm, std::size_t* bytes) noexcept {
  return workspace_size(real.library, descriptors_of(handle, a, b, convolution_, c), static_cast<int>(algorithm), bytes);
}

}  // namespace convpin::legacy
