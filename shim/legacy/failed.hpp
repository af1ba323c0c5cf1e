// What is known of a call of the legacy API that failed, for its record. Each function takes what calls of one shape take
// (calls.hpp).
#pragma once

#include "shim/legacy/calls.hpp"
#include "shim/legacy/describe.hpp"
#include "shim/process/failures.hpp"

namespace convpin::legacy {

inline void add(const Library& library, FailedCall& call, const Descriptors& d, int algorithm) {
  Problem problem;
  if (describe(library, d, problem)) call.problem = problem;
  call.api = Api::Legacy;
  call.candidate.operation = d.operation;
  call.candidate.algorithm = algorithm;
  call.candidate.math_type = CUDNN_DEFAULT_MATH;  // of the legacy API, by whichever it was
}

template <typename A, typename B, typename C, typename Algorithm>
void describe_failed(const Library& library, FailedCall& call, cudnnHandle_t handle, const void*, A a, const void*, B b, const void*,
                     cudnnConvolutionDescriptor_t convolution, Algorithm algorithm, void*, std::size_t, const void*, C c, void*) {
  add(library, call, descriptors_of(handle, a, b, convolution, c), static_cast<int>(algorithm));
}

inline void describe_failed(const Library& library, FailedCall& call, cudnnHandle_t handle, const void*, cudnnTensorDescriptor_t x,
                            const void*, cudnnFilterDescriptor_t w, const void*, cudnnConvolutionDescriptor_t convolution,
                            cudnnConvolutionFwdAlgo_t algorithm, void*, std::size_t, const void* alpha2, cudnnTensorDescriptor_t,
                            const void*, cudnnTensorDescriptor_t, const void*, cudnnActivationDescriptor_t activation,
                            cudnnTensorDescriptor_t y, void*) {
  add(library, call, descriptors_of(handle, x, w, convolution, y), static_cast<int>(algorithm));
  if (call.problem && !describe_fused(library, adds_z(*call.problem, alpha2), activation, *call.problem)) call.problem.reset();
}

template <typename A, typename B, typename C, typename Result>
void describe_failed(const Library& library, FailedCall& call, cudnnHandle_t handle, A a, B b, cudnnConvolutionDescriptor_t convolution,
                     C c, int, int*, Result*) {
  add(library, call, descriptors_of(handle, a, b, convolution, c), -1);
}

template <typename A, typename B, typename C, typename Data, typename Result>
void describe_failed(const Library& library, FailedCall& call, cudnnHandle_t handle, A a, const void*, B b, const void*,
                     cudnnConvolutionDescriptor_t convolution, C c, Data, int, int*, Result*, void*, std::size_t) {
  add(library, call, descriptors_of(handle, a, b, convolution, c), -1);
}

template <typename A, typename B, typename C, typename Algorithm>
void describe_failed(const Library& library, FailedCall& call, cudnnHandle_t handle, A a, B b, cudnnConvolutionDescriptor_t convolution,
                     C c, Algorithm algorithm, std::size_t*) {
  add(library, call, descriptors_of(handle, a, b, convolution, c), static_cast<int>(algorithm));
}

}  // namespace convpin::legacy
