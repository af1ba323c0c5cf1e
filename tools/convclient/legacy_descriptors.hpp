// A problem as the legacy API's descriptors.
#pragma once

#include <cudnn.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>

#include "shim/model/problem.hpp"
#include "tools/convclient/status.hpp"

namespace convclient {

template <auto destroy>
struct Destroy {
  template <typename T>
  void operator()(T* descriptor) const {
    destroy(descriptor);
  }
};
template <typename T, auto destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, Destroy<destroy>>;

inline std::array<int, convpin::kMaxDims> narrow(const std::array<std::int64_t, convpin::kMaxDims>& wide) {
  std::array<int, convpin::kMaxDims> out{};
  std::transform(wide.begin(), wide.end(), out.begin(), [](std::int64_t v) { return static_cast<int>(v); });
  return out;
}

// The problem as the legacy API's descriptors. The first call that fails is kept in `error`.
struct Descriptors {
  Owned<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor> x, y, bias;
  Owned<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor> w;
  Owned<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor> convolution;
  Owned<cudnnActivationDescriptor_t, cudnnDestroyActivationDescriptor> relu;
  std::string error;

  explicit Descriptors(const convpin::Problem& p, int math) {
    make_tensor(x, p.x);
    make_tensor(y, p.y);
    make_filter(p);
    make_convolution(p, math);
    if (p.fused_count > 0) make_bias_and_relu(p);
  }

  bool good(const std::string& call, cudnnStatus_t status) {
    if (status == CUDNN_STATUS_SUCCESS) return true;
    error = failure(call, status);
    return false;
  }

 private:
  template <typename T, auto destroy>
  void create(Owned<T, destroy>& into, const char* call, cudnnStatus_t (*make)(T*)) {
    T raw = nullptr;
    if (error.empty() && good(call, make(&raw))) into.reset(raw);
  }

  // Dims in the order N, C, [D,] H, W, whatever the layout: the strides say that.
  void make_tensor(Owned<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>& into,
                   const convpin::Tensor& t) {
    create(into, "cudnnCreateTensorDescriptor", cudnnCreateTensorDescriptor);
    if (into)
      good("cudnnSetTensorNdDescriptor",
           cudnnSetTensorNdDescriptor(into.get(), static_cast<cudnnDataType_t>(t.type), t.rank,
                                      narrow(t.dims).data(), narrow(t.strides).data()));
  }

  // A filter has no strides but a format. Its dims are K, C/groups, [D,] R, S in both formats. Where either would do (1x1,
  // depthwise) it is x's: cuDNN's backward calls take no mixture.
  void make_filter(const convpin::Problem& p) {
    const convpin::Tensor& t = p.w;
    create(w, "cudnnCreateFilterDescriptor", cudnnCreateFilterDescriptor);
    const auto format =
        convpin::layouts_of(p).w == convpin::Layout::ChannelsLast ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    if (w)
      good("cudnnSetFilterNdDescriptor",
           cudnnSetFilterNdDescriptor(w.get(), static_cast<cudnnDataType_t>(t.type), format, t.rank,
                                      narrow(t.dims).data()));
  }

  // Here, other than in the graph API, the number of groups is an attribute.
  void make_convolution(const convpin::Problem& p, int math) {
    create(convolution, "cudnnCreateConvolutionDescriptor", cudnnCreateConvolutionDescriptor);
    if (!convolution) return;
    good("cudnnSetConvolutionNdDescriptor",
         cudnnSetConvolutionNdDescriptor(convolution.get(), p.spatial_dims(), narrow(p.pad).data(),
                                         narrow(p.stride).data(), narrow(p.dilation).data(),
                                         p.flipped ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION,
                                         static_cast<cudnnDataType_t>(p.compute))) &&
        good("cudnnSetConvolutionGroupCount", cudnnSetConvolutionGroupCount(convolution.get(), p.groups)) &&
        good("cudnnSetConvolutionMathType",
             cudnnSetConvolutionMathType(convolution.get(), static_cast<cudnnMathType_t>(math)));
  }

  void make_bias_and_relu(const convpin::Problem& p) {
    convpin::Tensor one_per_channel = p.y;
    for (int d = 0; d < p.y.rank; ++d) one_per_channel.dims[d] = d == 1 ? p.y.dims[1] : 1;
    convpin::set_packed_strides(one_per_channel, convpin::Layout::ChannelsFirst);
    make_tensor(bias, one_per_channel);
    create(relu, "cudnnCreateActivationDescriptor", cudnnCreateActivationDescriptor);
    if (relu)
      good("cudnnSetActivationDescriptor",
           cudnnSetActivationDescriptor(relu.get(), CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
  }
};

}  // namespace convclient
