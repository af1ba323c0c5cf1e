// From an operation graph, as the mirror holds it, to the problem of the one convolution in it.
#include <algorithm>

#include "shim/graph/mirror.hpp"

namespace convpin::graph {

const TensorNode& OperationNode::output() const {
  if (kind != Kind::Convolution || operation == Operation::Forward) return y;
  return operation == Operation::BackwardData ? x : w;
}

std::vector<const TensorNode*> OperationNode::inputs() const {
  if (kind == Kind::Pointwise && !has_second_input) return {&x};
  std::vector<const TensorNode*> all;
  for (const TensorNode* t : {&x, &w, &y})
    if (t != &output()) all.push_back(t);
  return all;
}

namespace {

// The problem of a convolution's operation; false where it can't be described.
bool describe_convolution(const OperationNode& operation, Problem& p) {
  const ConvolutionNode& c = operation.convolution;
  p.operation = operation.operation;
  p.x = operation.x.tensor;
  p.w = operation.w.tensor;
  p.y = operation.y.tensor;
  p.compute = c.compute;
  p.pad = c.pad;
  p.post_pad = c.post_pad;
  p.stride = c.stride;
  p.dilation = c.dilation;
  p.flipped = c.flipped;
  if (p.x.rank < 3 || p.w.rank != p.x.rank || p.y.rank != p.x.rank || p.w.dims[1] <= 0) return false;
  // Vectorised layouts have no text form.
  if (operation.x.vector_count > 1 || operation.w.vector_count > 1 || operation.y.vector_count > 1) return false;
  p.groups = static_cast<std::int32_t>(p.x.dims[1] / p.w.dims[1]);
  return true;
}

// Whether the operation's result goes into the convolution, by way of others or not.
bool comes_before(const GraphNode& node, const OperationNode& operation, const OperationNode& convolution) {
  std::vector<const OperationNode*> reached{&operation};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const std::int64_t id = reached[i]->output().id;
    for (const OperationNode& next : node.operations) {
      const auto inputs = next.inputs();
      const bool reads = std::any_of(inputs.begin(), inputs.end(), [&](const TensorNode* t) { return t->id == id; });
      if (!reads || std::find(reached.begin(), reached.end(), &next) != reached.end()) continue;
      if (&next == &convolution) return true;
      reached.push_back(&next);
    }
  }
  return false;
}

std::int32_t fused_of(const GraphNode& node, const OperationNode& operation, const OperationNode& convolution) {
  const bool pointwise = operation.kind == OperationNode::Kind::Pointwise;
  return (pointwise ? operation.pointwise.mode : kFusedOther + operation.type) +
         (pointwise && comes_before(node, operation, convolution) ? kFusedBefore : 0);
}

// Inputs that no operation of the graph writes, and outputs that are not virtual, each once.
void bind(const GraphNode& node, const OperationNode& operation, ConvolutionGraph& out) {
  const auto add_to = [](auto& list, const TensorNode& t, bool read) {
    if (t.is_virtual || std::any_of(list.begin(), list.end(), [&](const auto& known) { return known.id == t.id; })) return;
    list.push_back({t.id, bytes_of(t.tensor), t.tensor.type, read, t.by_value});
  };
  const auto written_inside = [&](const TensorNode& t) {
    return std::any_of(node.operations.begin(), node.operations.end(), [&](const auto& o) { return &o != &operation && o.output().id == t.id; });
  };
  for (const TensorNode* t : operation.inputs())
    if (!written_inside(*t)) add_to(out.inputs, *t, false);
  add_to(out.outputs, operation.output(), operation.beta != 0);
}

}  // namespace

GraphPointer describe(const Library& library, const GraphNode& node) {
  ConvolutionGraph out;
  out.library = &library;
  out.handle = node.handle;
  const auto is_convolution = [](const OperationNode& o) { return o.kind == OperationNode::Kind::Convolution; };
  if (std::count_if(node.operations.begin(), node.operations.end(), is_convolution) != 1) return nullptr;
  const auto convolution = std::find_if(node.operations.begin(), node.operations.end(), is_convolution);
  if (!describe_convolution(*convolution, out.problem)) return nullptr;
  bind(node, *convolution, out);
  for (const OperationNode& operation : node.operations) {
    if (&operation == &*convolution) continue;
    if (out.problem.fused_count == kMaxFused) return nullptr;
    const std::int32_t fused = fused_of(node, operation, *convolution);
    out.problem.fused[static_cast<std::size_t>(out.problem.fused_count++)] = fused;
    if (operation.kind == OperationNode::Kind::Pointwise && operation.plain) {
      bind(node, operation, out);
      if (fused < kFusedBefore && !operation.y.is_virtual) out.problem.otype = operation.y.tensor.type;
    } else {
      out.runnable = false;
    }
  }
  if (out.outputs.empty()) out.runnable = false;  // another operation's, which is not looked at, is all that it writes
  if (out.problem.fused_count > 0 && runtime().settings.profile_level == ProfileLevel::Engines) out.operations = node.operations;
  out.problem = canonical(out.problem);
  return std::make_shared<const ConvolutionGraph>(std::move(out));
}

}  // namespace convpin::graph
