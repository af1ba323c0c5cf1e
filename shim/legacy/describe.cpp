#include "shim/legacy/describe.hpp"

namespace convpin::legacy {
namespace {

bool read(const Library& library, cudnnTensorDescriptor_t from, Tensor& to) {
  cudnnDataType_t type{};
  int rank = 0, dims[kMaxDims] = {}, strides[kMaxDims] = {};
  if (library.cudnnGetTensorNdDescriptor(from, kMaxDims, &type, &rank, dims, strides) || rank < 3 || rank > kMaxDims)
    return false;
  to.type = static_cast<DataType>(type);
  to.rank = rank;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rank); ++i) to.dims[i] = dims[i], to.strides[i] = strides[i];
  return true;
}

bool read(const Library& library, cudnnFilterDescriptor_t from, Tensor& to) {
  cudnnDataType_t type{};
  cudnnTensorFormat_t format{};
  int rank = 0, dims[kMaxDims] = {};
  if (library.cudnnGetFilterNdDescriptor(from, kMaxDims, &type, &format, &rank, dims) || rank < 3 || rank > kMaxDims) return false;
  if (format == CUDNN_TENSOR_NCHW_VECT_C) return false;
  to.type = static_cast<DataType>(type);
  to.rank = rank;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rank); ++i) to.dims[i] = dims[i];
  set_packed_strides(to, format == CUDNN_TENSOR_NHWC ? Layout::ChannelsLast : Layout::ChannelsFirst);
  return true;
}

// Pointwise modes of the graph API for the legacy activations, in the order of cudnnActivationMode_t.
constexpr std::int32_t kActivations[] = {CUDNN_POINTWISE_SIGMOID_FWD, CUDNN_POINTWISE_RELU_FWD, CUDNN_POINTWISE_TANH_FWD,
                                         CUDNN_POINTWISE_RELU_FWD,    CUDNN_POINTWISE_ELU_FWD,  -1,
                                         CUDNN_POINTWISE_SWISH_FWD};

}  // namespace

bool describe(const Library& library, const Descriptors& d, Problem& p) noexcept {
  if (!library.cudnnGetTensorNdDescriptor || !library.cudnnGetFilterNdDescriptor || !library.cudnnGetConvolutionNdDescriptor ||
      !library.cudnnGetConvolutionGroupCount)
    return false;
  p.operation = d.operation;
  if (!read(library, d.x, p.x) || !read(library, d.w, p.w) || !read(library, d.y, p.y)) return false;
  int length = 0, pad[kMaxDims] = {}, stride[kMaxDims] = {}, dilation[kMaxDims] = {}, groups = 1;
  cudnnConvolutionMode_t mode{};
  cudnnDataType_t compute{};
  if (library.cudnnGetConvolutionNdDescriptor(d.convolution, kMaxDims - 2, &length, pad, stride, dilation, &mode, &compute) ||
      library.cudnnGetConvolutionGroupCount(d.convolution, &groups) || length != p.spatial_dims() || p.w.rank != p.x.rank ||
      p.y.rank != p.x.rank)
    return false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i) {
    p.pad[i] = p.post_pad[i] = pad[i];
    p.stride[i] = stride[i];
    p.dilation[i] = dilation[i];
  }
  p.compute = static_cast<DataType>(compute);
  p.flipped = mode == CUDNN_CONVOLUTION;
  p.groups = groups;
  return true;
}

bool adds_z(const Problem& p, const void* alpha2) noexcept {
  if (!alpha2) return false;
  return p.compute == DataType::Double ? *static_cast<const double*>(alpha2) != 0 : *static_cast<const float*>(alpha2) != 0;
}

bool describe_fused(const Library& library, bool adds_z, cudnnActivationDescriptor_t activation, Problem& p) noexcept {
  cudnnActivationMode_t mode{};
  cudnnNanPropagation_t nan{};
  double coefficient = 0;
  if (!library.cudnnGetActivationDescriptor || library.cudnnGetActivationDescriptor(activation, &mode, &nan, &coefficient))
    return false;
  const auto fuse = [&](std::int32_t pointwise) { p.fused[static_cast<std::size_t>(p.fused_count++)] = pointwise; };
  if (adds_z) fuse(CUDNN_POINTWISE_ADD);
  fuse(CUDNN_POINTWISE_ADD);  // bias
  const auto at = static_cast<std::size_t>(mode);
  if (at < std::size(kActivations) && kActivations[at] >= 0) fuse(kActivations[at]);
  return true;
}

}  // namespace convpin::legacy
