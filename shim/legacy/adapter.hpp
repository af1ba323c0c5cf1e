// The legacy API's forward calls, each with what we add to it.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <functional>

#include "shim/hooks/real.hpp"

namespace convpin::legacy {

// What names a convolution in every legacy call.
struct Descriptors {
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t x;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t convolution;
  cudnnTensorDescriptor_t y;
};

cudnnStatus_t forward(const Library&, const Descriptors&, const void* alpha, const void* x, const void* w,
                      cudnnConvolutionFwdAlgo_t, void* workspace, std::size_t workspace_bytes, const void* beta,
                      void* y) noexcept;

cudnnStatus_t bias_activation_forward(const Library&, const Descriptors&, const void* alpha1, const void* x, const void* w,
                                      cudnnConvolutionFwdAlgo_t, void* workspace, std::size_t workspace_bytes,
                                      const void* alpha2, cudnnTensorDescriptor_t z_descriptor, const void* z,
                                      cudnnTensorDescriptor_t bias_descriptor, const void* bias,
                                      cudnnActivationDescriptor_t, void* y) noexcept;

// Get_v7, Find and FindEx: `real` calls the real one with room for `count` results.
using RealQuery = std::function<cudnnStatus_t(int count, int* returned, cudnnConvolutionFwdAlgoPerf_t*)>;
cudnnStatus_t query(const Library&, const Descriptors&, const char* function, int requested, int* returned,
                    cudnnConvolutionFwdAlgoPerf_t* results, const RealQuery& real) noexcept;

cudnnStatus_t workspace_size(const Library&, const Descriptors&, cudnnConvolutionFwdAlgo_t, std::size_t* bytes) noexcept;

void flush_counts();   // before the end line

}  // namespace convpin::legacy
