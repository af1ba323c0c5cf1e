// The legacy API's calls, each with what we add to it. One code for the three operations: what differs between them is in
// calls.hpp (the order of arguments) and here (which tensor is written).
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <functional>
#include <optional>

#include "shim/hooks/real.hpp"
#include "shim/model/problem.hpp"

namespace convpin::legacy {

// What names a convolution in every legacy call. x, w and y in the forward's roles.
struct Descriptors {
  Operation operation;
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t x;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t convolution;
  cudnnTensorDescriptor_t y;
};

// The program's call, with another algorithm, workspace and output.
using Run = std::function<cudnnStatus_t(int algorithm, void* workspace, std::size_t bytes, const void* beta, void* out)>;

// One execution as the program asked for it.
struct Execution {
  const Library& library;
  const Descriptors& descriptors;
  int algorithm;
  void* workspace;
  std::size_t workspace_bytes;
  const void* beta;            // null where the call has none
  void* out;
  const Run& run;
};
cudnnStatus_t convolution(const Execution&) noexcept;

// What cudnnConvolutionBiasActivationForward fuses behind the convolution.
struct Fused {
  const void* alpha2;
  cudnnActivationDescriptor_t activation;
};
cudnnStatus_t fused_convolution(const Execution&, const Fused&) noexcept;

// The three operations' results have one layout, and so one type here.
using Perf = cudnnConvolutionFwdAlgoPerf_t;
static_assert(sizeof(Perf) == sizeof(cudnnConvolutionBwdDataAlgoPerf_t) && sizeof(Perf) == sizeof(cudnnConvolutionBwdFilterAlgoPerf_t));

// Get_v7, Find and FindEx: `real` calls the real one with room for `count` results, `give` hands the program its i-th.
struct Query {
  const char* function;
  std::function<cudnnStatus_t(int count, int* returned, Perf*)> real;
  std::function<void(int i, const Perf&)> give;
};
// Nothing: it could not be done; the program's own query is to be made instead.
std::optional<cudnnStatus_t> query(const Library&, const Descriptors&, int requested, int* returned, const Query&) noexcept;

cudnnStatus_t workspace_size(const Library&, const Descriptors&, int algorithm, std::size_t* bytes) noexcept;

void flush_counts();   // before the end line

}  // namespace convpin::legacy
