#include "shim/graph/parts.hpp"

#include <algorithm>

#include "shim/graph/operation_names.hpp"
#include "shim/graph/pins.hpp"
#include "shim/hooks/reason.hpp"

namespace convpin::graph {
namespace {

// Where an operation's descriptor takes its tensors: in the forward's roles, as OperationNode has them.
struct Roles {
  cudnnBackendAttributeName_t x, w, y, body;
};

Roles roles_of(const OperationNode& o) {
  if (o.kind == OperationNode::Kind::Pointwise)
    return {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
            CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR};
  const OperationNames& names = names_of_operation(o.operation);
  return {names.x, names.w, names.y, names.convolution};
}

// One operation's descriptors while they are put together: the first failure stays.
class Maker {
 public:
  explicit Maker(const Library& library) : library_(library) {}

  void set(const Descriptor& d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
    if (!status) status = library_.cudnnBackendSetAttribute(d.get(), name, type, count, values);
  }
  void set(const Descriptor& d, cudnnBackendAttributeName_t name, const Descriptor& value) {
    const cudnnBackendDescriptor_t raw = value.get();
    set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  }
  void set(const Descriptor& d, const std::vector<RawAttribute>& list) {
    for (const RawAttribute& a : list) set(d, a.name, a.type, a.count, a.bytes.data());
  }
  void finalize(const Descriptor& d) {
    if (!status) status = library_.cudnnBackendFinalize(d.get());
  }

  Descriptor tensor(const TensorNode& t) {
    Descriptor d(library_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    const auto type = static_cast<cudnnDataType_t>(t.tensor.type);
    set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, t.tensor.rank, t.tensor.dims.data());
    set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, t.tensor.rank, t.tensor.strides.data());
    set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &t.id);
    set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &t.alignment);
    if (t.by_value) set(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &t.by_value);
    finalize(d);
    return d;
  }

  Descriptor convolution(const ConvolutionNode& c) {
    Descriptor d(library_, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    const auto compute = static_cast<cudnnDataType_t>(c.compute);
    const cudnnConvolutionMode_t mode = c.flipped ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION;
    const std::int64_t dims = c.spatial_dims;
    set(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    set(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims);
    set(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, dims, c.pad.data());
    set(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, dims, c.post_pad.data());
    set(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, dims, c.stride.data());
    set(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, dims, c.dilation.data());
    finalize(d);
    return d;
  }

  Descriptor pointwise(const PointwiseNode& p) {
    Descriptor d(library_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(d, p.raw);
    finalize(d);
    return d;
  }

  // A graph of this operation alone.
  Descriptor graph(const OperationNode& o, cudnnHandle_t handle) {
    const Roles roles = roles_of(o);
    const bool pointwise_one = o.kind == OperationNode::Kind::Pointwise;
    const Descriptor body = pointwise_one ? pointwise(o.pointwise) : convolution(o.convolution);
    const Descriptor x = tensor(o.x), y = tensor(o.y);
    const bool has_w = !pointwise_one || o.has_second_input;
    const Descriptor w = has_w ? tensor(o.w) : Descriptor();
    const Descriptor operation(library_, o.type);
    set(operation, roles.body, body);
    set(operation, roles.x, x);
    set(operation, roles.y, y);
    if (has_w) set(operation, roles.w, w);
    set(operation, o.scalars);
    finalize(operation);
    Descriptor out(library_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(out, CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    if (handle) set(out, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    finalize(out);
    return out;
  }

  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

 private:
  const Library& library_;
};

std::string name_of_part(const OperationNode& o) {
  return o.kind == OperationNode::Kind::Pointwise ? fused_name(o.pointwise.mode) : "convolution";
}

// What one operation's result needs comes before it.
std::vector<OperationNode> in_order(std::vector<OperationNode> waiting) {
  std::vector<OperationNode> out;
  while (!waiting.empty()) {
    const auto ready = std::find_if(waiting.begin(), waiting.end(), [&](const OperationNode& o) {
      const auto inputs = o.inputs();
      return std::none_of(inputs.begin(), inputs.end(), [&](const TensorNode* t) {
        return std::any_of(waiting.begin(), waiting.end(), [&](const OperationNode& other) { return &other != &o && other.output().id == t->id; });
      });
    });
    if (ready == waiting.end()) return {};  // a circle: not a graph
    out.push_back(std::move(*ready));
    waiting.erase(ready);
  }
  return out;
}

Part build_part(const Library& library, const OperationNode& o, const Target& target, std::string& reason) {
  Part part;
  part.what = name_of_part(o);
  const ReasonScope words(library);
  Maker maker(library);
  const Descriptor graph = maker.graph(o, target.handle);
  if (maker.status) {
    reason = part.what + " alone: " + words.text(maker.status);
    return part;
  }
  reason = part.what + " alone: no engine";
  const auto builds = [&](const Descriptor& config) {
    if (read_notes(library, config.get()).has_numerical(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return false;
    part.plan = build_plan(library, config.get(), target);
    if (part.plan.status != CUDNN_STATUS_SUCCESS) {
      reason = part.what + " alone: " + part.plan.reason;
      return false;
    }
    part.what += " eng" + std::to_string(read_config(library, config.get()).engine);
    reason.clear();
    return true;
  };
  for (const auto mode : {CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_FALLBACK}) {
    if (!reason.empty())
      for (const auto& config : query_heuristics(library, graph.get(), mode, target))
        if (builds(config)) break;
  }
  // Heuristics need not have a list for a graph without a convolution: its engines by their numbers.
  for (int engine = 0; !reason.empty() && engine < engine_count(library, graph.get()); ++engine) {
    const Descriptor config(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (const cudnnStatus_t status = fill_config(library, config.get(), graph.get(), {engine, {}}, target)) {
      reason = part.what + " alone: eng" + std::to_string(engine) + ": " + words.text(status);
      continue;
    }
    if (builds(config)) break;
  }
  for (const TensorNode* t : o.inputs()) part.ids.push_back(t->id);
  part.ids.push_back(o.output().id);
  return part;
}

// An addition of nothing (alpha2 is 0: PyTorch's fused convolution + relu has one), which no engine runs alone.
bool adds_nothing(const OperationNode& o) {
  if (o.kind != OperationNode::Kind::Pointwise || o.pointwise.mode != CUDNN_POINTWISE_ADD) return false;
  return std::any_of(o.scalars.begin(), o.scalars.end(), [](const RawAttribute& a) {
    return a.name == CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2 && std::all_of(a.bytes.begin(), a.bytes.end(), [](char c) { return c == 0; });
  });
}

// The operations without those: who reads their result reads what they pass on.
std::vector<OperationNode> that_count(const std::vector<OperationNode>& operations) {
  std::vector<OperationNode> out = operations;
  for (const OperationNode& nothing : operations) {
    if (!adds_nothing(nothing) || !nothing.y.is_virtual) continue;
    std::erase_if(out, [&](const OperationNode& o) { return o.output().id == nothing.y.id; });
    for (OperationNode& reader : out)
      for (TensorNode* t : {&reader.x, &reader.w})
        if (t->id == nothing.y.id) *t = nothing.x;
  }
  return out;
}

}  // namespace

Parts take_apart(const Library& library, const ConvolutionGraph& graph, const Target& target) {
  Parts out;
  const DataType type = graph.outputs.back().type;
  const auto settle = [&](TensorNode& t) {
    if (!t.is_virtual) return;
    t.tensor.type = type;
    if (std::none_of(out.between.begin(), out.between.end(), [&](const auto& known) { return known.id == t.id; }))
      out.between.push_back({t.id, bytes_of(t.tensor)});
    t.is_virtual = false;
  };
  for (OperationNode& operation : in_order(that_count(graph.operations))) {
    settle(operation.x);
    settle(operation.w);
    settle(operation.y);
    out.parts.push_back(build_part(library, operation, target, out.reason));
    if (!out.reason.empty()) return out;
    out.workspace_bytes = std::max(out.workspace_bytes, out.parts.back().plan.workspace_bytes);
  }
  return out;
}

}  // namespace convpin::graph
