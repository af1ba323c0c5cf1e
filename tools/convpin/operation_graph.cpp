#include "tools/convpin/operation_graph.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "shim/graph/operation_names.hpp"
#include "shim/hooks/reason.hpp"

namespace convpin::cli {
namespace {

using graph::Descriptor;

constexpr std::int64_t kAlignment = 16;  // bytes; what frameworks' allocators give at least

class Builder {
 public:
  Builder(const Library& library, const Problem& p) : library_(library), p_(p) {}

  OperationGraph build(const graph::Target& target) {
    const ReasonScope words(library_, Listen::Yes);
    for (std::int32_t i = 0; i < p_.fused_count; ++i)
      if (arguments_of(p_.fused[static_cast<std::size_t>(i)]) == 0) {
        out_.status = CUDNN_STATUS_NOT_SUPPORTED;
        out_.reason = "this command can't build a graph with " + fused_name(p_.fused[static_cast<std::size_t>(i)]) + " in it";
        return std::move(out_);
      }
    add_operations();
    out_.graph = Descriptor(library_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (target.handle) set(out_.graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
    set(out_.graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(operations_.size()),
        operations_.data());
    finalize(out_.graph);
    if (out_.status) out_.reason = words.text(out_.status);
    return std::move(out_);
  }

 private:
  using Raw = cudnnBackendDescriptor_t;

  // The first call that fails is remembered, and those behind it do nothing.
  void set(const Descriptor& d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values) {
    if (!out_.status) out_.status = d ? library_.cudnnBackendSetAttribute(d.get(), name, type, count, values) : CUDNN_STATUS_NOT_SUPPORTED;
  }
  void set(const Descriptor& d, cudnnBackendAttributeName_t name, Raw value) { set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value); }
  void set(const Descriptor& d, cudnnBackendAttributeName_t name, DataType value) {
    const auto type = static_cast<cudnnDataType_t>(value);
    set(d, name, CUDNN_TYPE_DATA_TYPE, 1, &type);
  }
  void set(const Descriptor& d, cudnnBackendAttributeName_t name, const std::array<std::int64_t, kMaxDims>& values, int count) {
    set(d, name, CUDNN_TYPE_INT64, count, values.data());
  }
  Raw finalize(const Descriptor& d) {
    if (!out_.status) out_.status = library_.cudnnBackendFinalize(d.get());
    return d.get();
  }
  Raw keep(Descriptor d) {
    finalize(d);
    return out_.parts.emplace_back(std::move(d)).get();
  }

  Raw tensor(const Tensor& t, std::int64_t id, bool is_virtual = false) {
    Descriptor d(library_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, t.type);
    set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, t.dims, t.rank);
    set(d, CUDNN_ATTR_TENSOR_STRIDES, t.strides, t.rank);
    set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &kAlignment);
    if (is_virtual) set(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    return keep(std::move(d));
  }

  Raw convolution() {
    const std::int64_t dims = p_.spatial_dims();
    const auto mode = p_.flipped ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION;
    Descriptor d(library_, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, p_.compute);
    set(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims);
    set(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, p_.pad, p_.spatial_dims());
    set(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, p_.post_pad, p_.spatial_dims());
    set(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, p_.stride, p_.spatial_dims());
    set(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, p_.dilation, p_.spatial_dims());
    return keep(std::move(d));
  }

  void convolve(Raw x, Raw w, Raw y) {
    const graph::OperationNames& names = graph::names_of_operation(p_.operation);
    const bool in_double = p_.compute == DataType::Double;
    const auto scale = in_double ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
    const double doubles[] = {1, 0};
    const float floats[] = {1, 0};
    const auto number = [&](int i) { return in_double ? static_cast<const void*>(&doubles[i]) : &floats[i]; };
    const Raw description = convolution();
    Descriptor d(library_, names.type);
    set(d, names.x, x);
    set(d, names.w, w);
    set(d, names.y, y);
    set(d, names.convolution, description);
    set(d, names.alpha, scale, 1, number(0));
    set(d, names.beta, scale, 1, number(1));
    operations_.push_back(keep(std::move(d)));
  }

  void fuse(std::size_t at, Raw in, Raw result) {
    const auto mode = static_cast<cudnnPointwiseMode_t>(p_.fused[at]);
    Descriptor pointwise(library_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, p_.compute);
    const Raw description = keep(std::move(pointwise));
    Raw second = nullptr;
    if (arguments_of(p_.fused[at]) == 2) {
      out_.operands.push_back(operand_of(p_, at));
      second = tensor(out_.operands.back(), kFirstOperand + static_cast<std::int64_t>(out_.operands.size()) - 1);
    }
    Descriptor d(library_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, description);
    set(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, in);
    if (second) set(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, second);
    set(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, result);
    operations_.push_back(keep(std::move(d)));
  }

  // The operation's own output is virtual where something is fused behind it.
  void add_operations() {
    const auto fused = static_cast<std::size_t>(p_.fused_count);
    const Tensor& between = written(p_);
    std::int64_t next = kFirstBetween;
    const Raw last = tensor(written(in_memory(p_)), p_.operation == Operation::BackwardData     ? kX
                                                    : p_.operation == Operation::BackwardFilter ? kW
                                                                                                : kY);
    Raw result = fused ? tensor(between, next++, true) : last;
    const auto input_or_result = [&](const Tensor& t, std::int64_t id) { return &t == &written(p_) ? result : tensor(t, id); };
    const Raw x = input_or_result(p_.x, kX), w = input_or_result(p_.w, kW), y = input_or_result(p_.y, kY);
    convolve(x, w, y);
    for (std::size_t i = 0; i < fused; ++i) {
      const Raw in = result;
      result = i + 1 == fused ? last : tensor(between, next++, true);
      fuse(i, in, result);
    }
  }

  const Library& library_;
  const Problem& p_;
  OperationGraph out_;
  std::vector<Raw> operations_;
};

}  // namespace

int arguments_of(std::int32_t mode) {
  static constexpr std::int32_t one[] = {CUDNN_POINTWISE_SQRT,         CUDNN_POINTWISE_RELU_FWD,  CUDNN_POINTWISE_TANH_FWD,
                                         CUDNN_POINTWISE_SIGMOID_FWD,  CUDNN_POINTWISE_ELU_FWD,   CUDNN_POINTWISE_GELU_FWD,
                                         CUDNN_POINTWISE_SOFTPLUS_FWD, CUDNN_POINTWISE_SWISH_FWD, CUDNN_POINTWISE_GELU_APPROX_TANH_FWD,
                                         CUDNN_POINTWISE_EXP,          CUDNN_POINTWISE_ABS,       CUDNN_POINTWISE_NEG,
                                         CUDNN_POINTWISE_IDENTITY,     CUDNN_POINTWISE_ERF};
  static constexpr std::int32_t two[] = {CUDNN_POINTWISE_ADD, CUDNN_POINTWISE_MUL, CUDNN_POINTWISE_MIN,       CUDNN_POINTWISE_MAX,
                                         CUDNN_POINTWISE_SUB, CUDNN_POINTWISE_DIV, CUDNN_POINTWISE_ADD_SQUARE};
  return std::ranges::count(one, mode) ? 1 : std::ranges::count(two, mode) ? 2 : 0;
}

Tensor operand_of(const Problem& problem, std::size_t at) {
  const auto behind = std::span(problem.fused).subspan(at + 1, static_cast<std::size_t>(problem.fused_count) - at - 1);
  Tensor t = written(in_memory(problem));
  if (problem.fused[at] == CUDNN_POINTWISE_ADD && std::ranges::count(behind, static_cast<std::int32_t>(CUDNN_POINTWISE_ADD)) == 0) {
    const Layout layout = layout_of(t) == Layout::ChannelsLast ? Layout::ChannelsLast : Layout::ChannelsFirst;
    for (int i = 0; i < t.rank; ++i)
      if (i != 1) t.dims[static_cast<std::size_t>(i)] = 1;
    set_packed_strides(t, layout);
  }
  return t;
}

OperationGraph build_graph(const Library& library, const Problem& problem, const graph::Target& target) {
  return Builder(library, problem).build(target);
}

}  // namespace convpin::cli
