#include "tools/convclient/conv_graph.hpp"

#include "shim/graph/operation_names.hpp"

namespace convclient {

using convpin::DataType;
using convpin::Problem;
using convpin::Tensor;

namespace {

cudnnDataType_t cudnn_type(DataType type) { return static_cast<cudnnDataType_t>(type); }

// Layout. The dims are always in the order N, C, [D,] H, W for x and y, and K, C, [D,] R, S for w. There is
// no layout attribute: the strides, in elements, say where things lie. For x=[32,64,56,56]
//   NCHW:  strides [200704, 3136, 56, 1]
//   NHWC:  strides [200704, 1, 3584, 64]   dims still N, C, H, W
// and for NHWC w lies as K, R, S, C: strides [C*R*S, 1, S*C, C].
//
// Alignment, in bytes, is a promise about the pointers in the variant pack. Engines with vector loads
// need 16.
//
// A virtual tensor stands between two operations and never lies in memory: no pointer, no alignment needed.
Descriptor make_tensor(const Tensor& t, TensorId id, bool is_virtual = false) {
  const auto rank = static_cast<std::size_t>(t.rank);
  Descriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
  d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, cudnn_type(t.type))
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span(t.dims.data(), rank))
      .set(CUDNN_ATTR_TENSOR_STRIDES, std::span(t.strides.data(), rank))
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<std::int64_t>(id))
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16})
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual)
      .finalize();
  return d;
}

// Groups have no attribute here either. cuDNN divides: x has C channels and w is [K, C/groups, R, S], so
// groups = x.dims[1] / w.dims[1]. A depthwise convolution has w.dims[1] == 1.
//
// Frameworks compute a cross-correlation; CUDNN_CONVOLUTION flips the filter. The compute type is that of
// the sums: float for half and bfloat16 data.
Descriptor make_convolution(const Problem& p) {
  const auto dims = static_cast<std::size_t>(p.spatial_dims());
  const cudnnConvolutionMode_t mode = p.flipped ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION;
  Descriptor d(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution");
  d.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, cudnn_type(p.compute))
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(dims))
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::span(p.pad.data(), dims))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::span(p.post_pad.data(), dims))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::span(p.stride.data(), dims))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::span(p.dilation.data(), dims))
      .finalize();
  return d;
}

// output = alpha * conv(the other two) + beta * output. alpha and beta are doubles where the compute type is
// double and floats everywhere else, also for half data.
Descriptor make_conv_operation(const Problem& p, double beta, const Descriptor& convolution,
                               const Descriptor& x, const Descriptor& w, const Descriptor& y) {
  const convpin::graph::OperationNames& names = convpin::graph::names_of_operation(p.operation);
  const bool in_double = p.compute == DataType::Double;
  const cudnnBackendAttributeType_t scale_type = in_double ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
  const double alpha_double = 1;
  const float alpha_float = 1, beta_float = static_cast<float>(beta);
  Descriptor d(names.type, "convolution operation");
  d.set(names.x, x)
      .set(names.w, w)
      .set(names.y, y)
      .set(names.convolution, convolution)
      .set(names.alpha, scale_type, 1, in_double ? static_cast<const void*>(&alpha_double) : &alpha_float)
      .set(names.beta, scale_type, 1, in_double ? static_cast<const void*>(&beta) : &beta_float)
      .finalize();
  return d;
}

Descriptor make_pointwise(cudnnPointwiseMode_t mode, DataType compute) {
  Descriptor d(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise");
  d.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, cudnn_type(compute))
      .finalize();
  return d;
}

// `second` is null for an operation of one argument.
Descriptor make_pointwise_operation(const Descriptor& pointwise, const Descriptor& first,
                                    const Descriptor* second, const Descriptor& out) {
  Descriptor d(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise operation");
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, first);
  if (second) d.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *second);
  d.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, out).finalize();
  return d;
}

Tensor bias_of(const Problem& p) {  // [1, K, 1, 1], in the result's type
  Tensor bias = p.y;
  bias.type = convpin::result_type(p);
  for (int d = 0; d < bias.rank; ++d) bias.dims[d] = d == 1 ? p.y.dims[1] : 1;
  convpin::set_packed_strides(bias, convpin::layout_of(p.y) == convpin::Layout::ChannelsLast
                                        ? convpin::Layout::ChannelsLast
                                        : convpin::Layout::ChannelsFirst);
  return bias;
}

}  // namespace

ConvGraph build_conv_graph(const Problem& p, double beta, cudnnHandle_t handle) {
  ConvGraph g;
  g.parts.reserve(20);  // so that the references below stay where they are
  const auto keep = [&](Descriptor d) -> const Descriptor& { return g.parts.emplace_back(std::move(d)); };

  const Problem in = convpin::in_memory(p);
  const Descriptor& x = keep(make_tensor(in.x, kX));
  const Descriptor& w = keep(make_tensor(in.w, kW));
  const Descriptor& y = keep(make_tensor(in.y, kY));
  const Descriptor& convolution = keep(make_convolution(p));

  std::vector<const Descriptor*> operations;
  if (p.fused_count == 0) {
    operations = {&keep(make_conv_operation(p, beta, convolution, x, w, y))};
  } else {
    // Everything up to the last is virtual, in the type of the convolution's own output.
    const Descriptor* result = &keep(make_tensor(p.y, kConvOut, true));
    operations = {&keep(make_conv_operation(p, 0, convolution, x, w, *result))};
    const auto add = [&](const Tensor& what, TensorId id, TensorId sum_id) {
      const Descriptor& second = keep(make_tensor(what, id));
      const Descriptor& sum = keep(make_tensor(p.y, sum_id, true));
      const Descriptor& pointwise = keep(make_pointwise(CUDNN_POINTWISE_ADD, p.compute));
      operations.push_back(&keep(make_pointwise_operation(pointwise, *result, &second, sum)));
      result = &sum;
    };
    if (p.fused_count > 2) add(in.y, kZ, kSumWithZ);
    add(bias_of(p), kBias, kSum);
    const Descriptor& relu = keep(make_pointwise(CUDNN_POINTWISE_RELU_FWD, p.compute));
    operations.push_back(&keep(make_pointwise_operation(relu, *result, nullptr, y)));
  }

  g.graph = Descriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph");
  if (handle) g.graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  g.graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations).finalize();
  return g;
}

}  // namespace convclient
