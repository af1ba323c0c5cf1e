// A plan's JSON text (CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, schema 4 of cuDNN 9.19) holds its operation graph: read
// into the same nodes that a program's descriptors would have given. Samples: tests/unit/data/plans.
#include <map>
#include <nlohmann/json.hpp>

#include "shim/graph/mirror.hpp"
#include "shim/model/text.hpp"

namespace convpin::graph {
namespace {

using nlohmann::json;
using Tensors = std::map<std::string, TensorNode>;

// "CUDNN_DATA_BFLOAT16" -> "bfloat16"
std::string word(const std::string& name, std::string_view prefix, std::string_view suffix = {}) {
  std::string_view rest = name;
  if (rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
  if (!suffix.empty() && rest.ends_with(suffix)) rest.remove_suffix(suffix.size());
  return lower(rest);
}

DataType type_of(const json& name) { return data_type_from(word(name, "CUDNN_DATA_")).value_or(static_cast<DataType>(-1)); }

int numbers_into(const json& list, std::array<std::int64_t, kMaxDims>& to) {
  if (list.size() > to.size()) throw std::out_of_range("too many dimensions");
  std::size_t i = 0;
  for (const json& number : list) to[i++] = number;
  return static_cast<int>(i);
}

TensorNode tensor_from(const json& text) {
  TensorNode t;
  t.tensor.type = type_of(text.at("dataType"));
  t.tensor.rank = numbers_into(text.at("dim"), t.tensor.dims);
  numbers_into(text.at("stride"), t.tensor.strides);
  t.id = integer_from<std::int64_t>(text.at("name").get<std::string>()).value_or(0);
  t.is_virtual = text.value("isVirtual", false);
  t.by_value = text.value("isByValue", false);
  t.vector_count = text.value("vectCount", 1);
  return t;
}

struct Roles {
  const char* type;
  cudnnBackendDescriptorType_t value;
  Operation operation;
  const char *x, *w, *y;
};
constexpr Roles kConvolutions[] = {
    {"convolution_forward", CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, Operation::Forward, "X", "W", "Y"},
    {"convolution_backward_data", CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, Operation::BackwardData, "dX", "W", "dY"},
    {"convolution_backward_filter", CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, Operation::BackwardFilter, "X", "dW", "dY"},
};

void convolution_into(const json& text, const Tensors& tensors, const Roles& roles, OperationNode& o) {
  o.kind = OperationNode::Kind::Convolution;
  o.type = roles.value;
  o.operation = roles.operation;
  o.x = tensors.at(text.at(roles.x));
  o.w = tensors.at(text.at(roles.w));
  o.y = tensors.at(text.at(roles.y));
  ConvolutionNode& c = o.convolution;
  c.compute = type_of(text.at("mathPrec"));
  c.flipped = text.at("mode") == "CUDNN_CONVOLUTION";
  const bool equal = text.contains("pad");
  c.spatial_dims = numbers_into(text.at(equal ? "pad" : "pad_lower"), c.pad);
  numbers_into(text.at(equal ? "pad" : "pad_upper"), c.post_pad);
  numbers_into(text.at("stride"), c.stride);
  numbers_into(text.at("dilation"), c.dilation);
  o.beta = text.value("beta", 0.0);
}

void pointwise_into(const json& text, const Tensors& tensors, OperationNode& o) {
  o.kind = OperationNode::Kind::Pointwise;
  o.type = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
  o.pointwise.mode = fused_from(word(text.at("pointwiseMode"), "CUDNN_POINTWISE_", "_FWD")).value_or(-1);
  const auto tensor = [&](const char* key, TensorNode& to) {
    if (!text.contains(key) || !text.at(key).is_string()) return false;
    const auto found = tensors.find(text.at(key));
    if (found == tensors.end()) return false;
    to = found->second;
    return true;
  };
  const bool x = tensor("X", o.x), y = tensor("Y", o.y);
  o.has_second_input = tensor("B", o.w);
  o.plain = x && y && !text.contains("T") && !text.contains("dX") && !text.contains("dY");
}

OperationNode operation_from(const json& text, const Tensors& tensors) {
  OperationNode o;
  const std::string type = word(text.at("operation"), "CUDNN_BACKEND_OPERATION_", "_DESCRIPTOR");
  for (const Roles& roles : kConvolutions)
    if (type == roles.type) return convolution_into(text, tensors, roles, o), o;
  if (type == "pointwise") return pointwise_into(text, tensors, o), o;
  if (const auto known = fused_from(type); known && *known >= kFusedOther) o.type = static_cast<cudnnBackendDescriptorType_t>(*known - kFusedOther);
  return o;
}

}  // namespace

GraphPointer describe_json(const Library& library, const std::string& text) {
  try {
    const json root = json::parse(text.substr(0, text.find('\0')));
    Tensors tensors;
    GraphNode graph;
    for (const json& tensor : root.at("operationGraph").at("tensors")) tensors[tensor.at("name")] = tensor_from(tensor);
    for (const json& operation : root.at("operationGraph").at("nodes")) graph.operations.push_back(operation_from(operation, tensors));
    return describe(library, graph);
  } catch (const json::exception&) {  // another schema, or not a plan at all: cuDNN took it, we don't know it
    return nullptr;
  } catch (const std::out_of_range&) {
    return nullptr;
  }
}

}  // namespace convpin::graph
