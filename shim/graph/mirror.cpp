#include "shim/graph/mirror.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

namespace convpin::graph {
namespace {

PointerMap<Node> nodes;
std::mutex nodes_lock;

static_assert(static_cast<int>(DataType::Double) == CUDNN_DATA_DOUBLE && static_cast<int>(DataType::Half) == CUDNN_DATA_HALF &&
              static_cast<int>(DataType::BFloat16) == CUDNN_DATA_BFLOAT16 && static_cast<int>(DataType::Int8) == CUDNN_DATA_INT8);

template <typename T>
void copy(T& to, std::int64_t count, const void* values) {
  if (count >= 1 && values) std::memcpy(&to, values, sizeof to);
}

template <typename T>
void copy_array(std::array<std::int64_t, kMaxDims>& to, std::int64_t count, const void* values, T* rank) {
  if (count < 1 || count > kMaxDims || !values) return;
  std::memcpy(to.data(), values, static_cast<std::size_t>(count) * sizeof(std::int64_t));
  if (rank) *rank = static_cast<T>(count);
}

cudnnBackendDescriptor_t descriptor_in(std::int64_t count, const void* values) {
  cudnnBackendDescriptor_t d = nullptr;
  copy(d, count, values);
  return d;
}

template <typename T>
void copy_from_node(T& to, std::int64_t count, const void* values) {
  if (const T* from = find_as<T>(descriptor_in(count, values))) to = *from;
}

void note(TensorNode& t, cudnnBackendAttributeName_t name, std::int64_t count, const void* values) {
  switch (name) {
    case CUDNN_ATTR_TENSOR_DATA_TYPE: return copy(t.tensor.type, count, values);
    case CUDNN_ATTR_TENSOR_DIMENSIONS: return copy_array(t.tensor.dims, count, values, &t.tensor.rank);
    case CUDNN_ATTR_TENSOR_STRIDES: return copy_array<int>(t.tensor.strides, count, values, nullptr);
    case CUDNN_ATTR_TENSOR_UNIQUE_ID: return copy(t.id, count, values);
    case CUDNN_ATTR_TENSOR_IS_VIRTUAL: return copy(t.is_virtual, count, values);
    case CUDNN_ATTR_TENSOR_IS_BY_VALUE: return copy(t.by_value, count, values);
    case CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT: return copy(t.alignment, count, values);
    case CUDNN_ATTR_TENSOR_VECTOR_COUNT: return copy(t.vector_count, count, values);
    default: return;
  }
}

void note(ConvolutionNode& c, cudnnBackendAttributeName_t name, std::int64_t count, const void* values) {
  switch (name) {
    case CUDNN_ATTR_CONVOLUTION_COMP_TYPE: return copy(c.compute, count, values);
    case CUDNN_ATTR_CONVOLUTION_CONV_MODE: {
      cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
      copy(mode, count, values);
      c.flipped = mode == CUDNN_CONVOLUTION;
      return;
    }
    case CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS: return copy_array(c.pad, count, values, &c.spatial_dims);
    case CUDNN_ATTR_CONVOLUTION_POST_PADDINGS: return copy_array<int>(c.post_pad, count, values, nullptr);
    case CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES: return copy_array<int>(c.stride, count, values, nullptr);
    case CUDNN_ATTR_CONVOLUTION_DILATIONS: return copy_array<int>(c.dilation, count, values, nullptr);
    default: return;
  }
}

std::size_t size_of_attribute(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR: return 8;
    case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
    default: return 4;  // floats, and cuDNN's enums
  }
}

void keep(std::vector<RawAttribute>& list, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
          const void* values) {
  if (runtime().settings.profile_level != ProfileLevel::Engines || count < 1 || count > kMaxDims || !values) return;
  const auto* bytes = static_cast<const char*>(values);
  list.push_back({name, type, count, {bytes, bytes + size_of_attribute(type) * static_cast<std::size_t>(count)}});
}

void note(PointwiseNode& p, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  if (name == CUDNN_ATTR_POINTWISE_MODE) copy(p.mode, count, values);
  keep(p.raw, name, type, count, values);
}

// beta is a float or a double.
void copy_scalar(double& to, cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  if (type == CUDNN_TYPE_DOUBLE) return copy(to, count, values);
  if (float value = 0; type == CUDNN_TYPE_FLOAT) copy(value, count, values), to = static_cast<double>(value);
}

void note(OperationNode& o, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
          const void* values) {
  if (type == CUDNN_TYPE_FLOAT || type == CUDNN_TYPE_DOUBLE) keep(o.scalars, name, type, count, values);
  switch (name) {
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X:
    case CUDNN_ATTR_OPERATION_POINTWISE_XDESC: return copy_from_node(o.x, count, values);
    case CUDNN_ATTR_OPERATION_POINTWISE_BDESC: o.has_second_input = true; [[fallthrough]];
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW: return copy_from_node(o.w, count, values);
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY:
    case CUDNN_ATTR_OPERATION_POINTWISE_YDESC: return copy_from_node(o.y, count, values);
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC: return copy_from_node(o.convolution, count, values);
    case CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR: return copy_from_node(o.pointwise, count, values);
    case CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA:
    case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA: return copy_scalar(o.beta, type, count, values);
    // A backward activation (dx = f'(x) dy), a selection: inputs and outputs that are not looked at. Its name is.
    case CUDNN_ATTR_OPERATION_POINTWISE_DXDESC:
    case CUDNN_ATTR_OPERATION_POINTWISE_DYDESC:
    case CUDNN_ATTR_OPERATION_POINTWISE_TDESC: o.plain = false; return;
    default: return;
  }
}

void note(GraphNode& g, cudnnBackendAttributeName_t name, std::int64_t count, const void* values) {
  if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE) return copy(g.handle, count, values);
  if (name != CUDNN_ATTR_OPERATIONGRAPH_OPS || count < 1 || !values) return;
  const auto* raw = static_cast<const cudnnBackendDescriptor_t*>(values);
  g.operations.clear();
  for (std::int64_t i = 0; i < count; ++i) {
    const OperationNode* operation = find_as<OperationNode>(raw[i]);
    g.operations.push_back(operation ? *operation : OperationNode{});
  }
}

void note(HeuristicsNode& h, cudnnBackendAttributeName_t name, std::int64_t count, const void* values) {
  if (name == CUDNN_ATTR_ENGINEHEUR_MODE) return copy(h.mode, count, values);
  if (name != CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH) return;
  if (const GraphNode* graph = find_as<GraphNode>(descriptor_in(count, values))) h.graph = graph->graph;
}

void note(PlanNode& p, cudnnBackendAttributeName_t name, std::int64_t count, const void* values) {
  if (name == CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION && count > 0 && values) p.json.assign(static_cast<const char*>(values), static_cast<std::size_t>(count));
  if (name != CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) return;
  if (const ConfigNode* config = find_as<ConfigNode>(descriptor_in(count, values))) {
    p.graph = config->graph;
    p.config = descriptor_in(count, values);
    p.answer = config->answer;
    p.slot = config->slot;
  }
}

}  // namespace

bool Answer::pin_ran() const {
  return std::any_of(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(pins),
                     [](const Slot& s) { return !s.failed && s.ran; });
}

Node* find(cudnnBackendDescriptor_t d) noexcept { return nodes.find(d); }

namespace {

// Convolutions, and what may stand beside one in a graph. Of most only the type is known.
constexpr cudnnBackendDescriptorType_t kOperationTypes[] = {
    CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_SIGNAL_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR,
};

bool is_operation(cudnnBackendDescriptorType_t type) {
  return std::find(std::begin(kOperationTypes), std::end(kOperationTypes), type) != std::end(kOperationTypes);
}

OperationNode operation_node(cudnnBackendDescriptorType_t type) {
  OperationNode node;
  node.type = type;
  switch (type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR: node.operation = Operation::BackwardData; break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR: node.operation = Operation::BackwardFilter; break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR: break;
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: node.kind = OperationNode::Kind::Pointwise; return node;
    default: return node;
  }
  node.kind = OperationNode::Kind::Convolution;
  return node;
}

}  // namespace

bool mirrored(cudnnBackendDescriptorType_t type) noexcept {
  switch (type) {
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR: return false;  // one for each execution
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: return true;
    default: return is_operation(type);
  }
}

void add(cudnnBackendDescriptor_t d, cudnnBackendDescriptorType_t type) {
  auto node = std::make_unique<Node>();
  node->type = type;
  switch (type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR: node->what = TensorNode{}; break;
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR: node->what = ConvolutionNode{}; break;
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR: node->what = PointwiseNode{}; break;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: node->what = GraphNode{}; break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: node->what = HeuristicsNode{}; break;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR: node->what = EngineNode{}; break;
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR: node->what = ConfigNode{}; break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: node->plan = std::make_unique<PlanNode>(); break;
    default:
      if (!is_operation(type)) return;
      node->what = operation_node(type);
  }
  std::lock_guard hold(nodes_lock);
  delete nodes.insert(d, node.release());
}

std::unique_ptr<Node> remove(cudnnBackendDescriptor_t d) noexcept {
  std::lock_guard hold(nodes_lock);
  return std::unique_ptr<Node>(nodes.erase(d));
}

void each_plan(const std::function<void(PlanNode&)>& visit) {
  std::lock_guard hold(nodes_lock);
  nodes.each([&](Node& node) {
    if (node.plan) visit(*node.plan);
  });
}

void renew_in_child() noexcept {
  new (&nodes_lock) std::mutex;
  nodes.each([](Node& node) {
    const auto* config = std::get_if<ConfigNode>(&node.what);
    if (const AnswerPointer& answer = node.plan ? node.plan->answer : config ? config->answer : nullptr) new (&answer->lock) std::mutex;
    if (!node.plan) return;
    new (&node.plan->changing) std::mutex;
    const auto renew = [&](Way& way) {
      way.flushed = way.calls;  // the parent's
      way.look = node.plan->state != nullptr;
    };
    if (node.plan->itself) renew(*node.plan->itself);
    for (const auto& way : node.plan->ways) renew(*way);
  });
}

void note_attribute(Node& node, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                    const void* values) {
  if (node.plan) return note(*node.plan, name, count, values);
  std::visit(
      [&](auto& what) {
        using What = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<What, OperationNode> || std::is_same_v<What, PointwiseNode>) {
          note(what, name, type, count, values);
        } else if constexpr (std::is_same_v<What, EngineNode>) {
          if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX) copy(what.index, count, values);
          if (name == CUDNN_ATTR_ENGINE_OPERATION_GRAPH)
            if (const GraphNode* graph = find_as<GraphNode>(descriptor_in(count, values))) what.graph = graph->graph;
        } else if constexpr (std::is_same_v<What, ConfigNode>) {
          if (name == CUDNN_ATTR_ENGINECFG_ENGINE)
            if (const EngineNode* engine = find_as<EngineNode>(descriptor_in(count, values)))
              what.graph = engine->graph, what.device_prop = engine->device_prop, what.engine = engine->index;
        } else if constexpr (!std::is_same_v<What, std::monostate>) {
          note(what, name, count, values);
        }
      },
      node.what);
}

}  // namespace convpin::graph
