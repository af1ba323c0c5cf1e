// Reads a plan's own JSON text, which holds the whole graph, the engine and its knobs.
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/standin/graph.hpp"

namespace standin {
namespace {

using nlohmann::json;

cudnnDataType_t data_type(const std::string& name) {
  static const std::map<std::string, cudnnDataType_t> types{{"CUDNN_DATA_FLOAT", CUDNN_DATA_FLOAT},
                                                            {"CUDNN_DATA_HALF", CUDNN_DATA_HALF},
                                                            {"CUDNN_DATA_BFLOAT16", CUDNN_DATA_BFLOAT16},
                                                            {"CUDNN_DATA_DOUBLE", CUDNN_DATA_DOUBLE}};
  const auto found = types.find(name);
  return found != types.end() ? found->second : CUDNN_DATA_INT8;  // any that is refused
}

struct Unsupported {
  std::string reason;
};

Tensor read_tensor(const json& text) {
  Tensor tensor;
  tensor.uid = std::stoll(text.at("name").get<std::string>());
  tensor.type = data_type(text.at("dataType"));
  tensor.is_virtual = text.at("isVirtual");
  if (text.at("dim").size() != 4) throw Unsupported{"computes with tensors of four dimensions only"};
  tensor.dim = text.at("dim");
  tensor.stride = text.at("stride");
  if (text.value("vectCount", 1) != 1) throw Unsupported{"computes with unvectorized tensors only"};
  return tensor;
}

void read_convolution(const json& text, const std::vector<Tensor>& tensors, Node& node) {
  node.kind = Node::Kind::Convolution;
  node.conv = shape_of(tensors[node.x], tensors[node.b], tensors[node.y]);
  node.alpha = text.at("alpha");
  node.beta = text.at("beta");
  if (text.at("pad").size() != 2) throw Unsupported{"computes convolutions of two spatial dimensions only"};
  node.conv.pad_h = text["pad"][0], node.conv.pad_w = text["pad"][1];
  node.conv.stride_h = text.at("stride")[0], node.conv.stride_w = text["stride"][1];
  node.conv.dilation_h = text.at("dilation")[0], node.conv.dilation_w = text["dilation"][1];
  node.conv.flipped = text.at("mode") == "CUDNN_CONVOLUTION";
}

void read_pointwise(const json& text, Node& node) {
  static const std::map<std::string, Node::Kind> kinds{{"CUDNN_POINTWISE_ADD", Node::Kind::Add},
                                                       {"CUDNN_POINTWISE_MUL", Node::Kind::Multiply},
                                                       {"CUDNN_POINTWISE_RELU_FWD", Node::Kind::Relu},
                                                       {"CUDNN_POINTWISE_IDENTITY", Node::Kind::Identity}};
  const std::string mode = text.at("pointwiseMode");
  const auto kind = kinds.find(mode);
  if (kind == kinds.end()) throw Unsupported{"does not compute " + mode};
  node.kind = kind->second;
  node.alpha = text.value("alpha1", 1.0);
  node.beta = text.value("alpha2", 1.0);
  if (node.kind == Node::Kind::Relu) {
    node.lower = text.at("lowerClip");
    node.upper = text.at("upperClip");
    node.slope = text.at("lowerClipSlope");
  }
}

}  // namespace

std::optional<Plan> parse_plan(const std::string& text, std::string& reason) try {
  const json root = json::parse(text);
  const json& operations = root.at("operationGraph");
  Plan plan;
  plan.pattern = operations.value("finalizeMode", "");
  plan.engine = root.at("engine").at("engineId");
  std::map<std::string, std::size_t> index;
  for (const json& tensor : operations.at("tensors")) {
    index[tensor.at("name")] = plan.graph.tensors.size();
    plan.graph.tensors.push_back(read_tensor(tensor));
  }
  for (const json& operation : operations.at("nodes")) {
    Node node;
    const std::string kind = operation.at("operation");
    node.x = index.at(operation.at("X"));
    node.y = index.at(operation.at("Y"));
    if (kind == "CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR") {
      node.b = index.at(operation.at("W"));
      read_convolution(operation, plan.graph.tensors, node);
    } else if (kind == "CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR") {
      read_pointwise(operation, node);
      if (node.has_second()) node.b = index.at(operation.at("B"));
    } else {
      throw Unsupported{"does not compute " + kind};
    }
    plan.graph.in_double |= operation.value("mathPrec", "") == "CUDNN_DATA_DOUBLE";
    plan.graph.nodes.push_back(node);
  }
  return plan;
} catch (const Unsupported& unsupported) {
  reason = unsupported.reason;
  return std::nullopt;
} catch (const std::exception& error) {
  reason = std::string("can't read the plan: ") + error.what();
  return std::nullopt;
}

// Read off the kernels that the engines launch on a GPU for a single convolution; for the others off the
// workspaces (that of im2col is the operand's size).
Algorithm algorithm_of_engine(const std::string& pattern, int engine) {
  if (engine == 0) return Algorithm::Direct;
  if (pattern != "CONV_FORWARD") {
    return pattern == "CONV_ADD_BIAS_ACT" && engine == 36 ? Algorithm::Im2colGemm : Algorithm::ImplicitGemm;
  }
  switch (engine) {
    case 2:
      return Algorithm::Im2colGemm;
    case 3:
      return Algorithm::Fft;
    case 4:
      return Algorithm::FftTiling;
    case 6:
      return Algorithm::WinogradNonfused;
    case 12:
      return Algorithm::Winograd;
    default:
      return Algorithm::ImplicitGemm;
  }
}

}  // namespace standin
