// Reads a plan's own JSON text, which holds the whole graph, the engine and its knobs.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

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
  const std::vector<std::int64_t> dim = text.at("dim"), stride = text.at("stride");
  if (dim.empty() || dim.size() > max_rank || stride.size() != dim.size())
    throw Unsupported{"computes with tensors of up to five dimensions only"};
  tensor.rank = dim.size();
  std::copy(dim.begin(), dim.end(), tensor.dim.begin());
  std::copy(stride.begin(), stride.end(), tensor.stride.begin());
  if (text.value("vectCount", 1) != 1) throw Unsupported{"computes with unvectorized tensors only"};
  return tensor;
}

using Index = std::map<std::string, std::size_t>;  // from a tensor's name

struct ConvolutionKind {
  const char* operation;
  const char* tensors[3];  // x, w, y
};
constexpr ConvolutionKind convolutions[operation_count] = {
    {"CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR", {"X", "W", "Y"}},
    {"CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR", {"dX", "W", "dY"}},
    {"CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR", {"X", "dW", "dY"}},
};

bool read_convolution(const json& text, const std::vector<Tensor>& tensors, const Index& index, Node& node) {
  const auto* kind =
      std::find_if(std::begin(convolutions), std::end(convolutions),
                   [&](const ConvolutionKind& k) { return text.at("operation") == k.operation; });
  if (kind == std::end(convolutions)) return false;
  node.kind = Node::Kind::Convolution;
  node.operation = static_cast<Operation>(kind - std::begin(convolutions));
  std::array<std::size_t, 3> at{};
  for (std::size_t i = 0; i < 3; ++i) at[i] = index.at(text.at(kind->tensors[i]));
  node.x = at[first_of(node.operation)];
  node.b = at[second_of(node.operation)];
  node.y = at[result_of(node.operation)];
  node.conv = shape_of(tensors[at[0]], tensors[at[1]], tensors[at[2]]);
  // Unequal padding has other names: pad_lower before, pad_upper after (which y's dimensions say too).
  set_spatial(node.conv,
              {text.at(text.contains("pad") ? "pad" : "pad_lower"), text.at("stride"), text.at("dilation")});
  node.conv.flipped = text.at("mode") == "CUDNN_CONVOLUTION";
  node.alpha = text.at("alpha");
  node.beta = text.at("beta");
  return true;
}

void read_pointwise(const json& text, const Index& index, Node& node) {
  static const std::map<std::string, Node::Kind> kinds{{"CUDNN_POINTWISE_ADD", Node::Kind::Add},
                                                       {"CUDNN_POINTWISE_MUL", Node::Kind::Multiply},
                                                       {"CUDNN_POINTWISE_RELU_FWD", Node::Kind::Relu},
                                                       {"CUDNN_POINTWISE_IDENTITY", Node::Kind::Identity}};
  const std::string mode = text.at("pointwiseMode");
  const auto kind = kinds.find(mode);
  if (kind == kinds.end()) throw Unsupported{"does not compute " + mode};
  node.kind = kind->second;
  node.x = index.at(text.at("X"));
  node.y = index.at(text.at("Y"));
  if (node.has_second()) node.b = index.at(text.at("B"));
  node.alpha = text.value("alpha1", 1.0);
  node.beta = text.value("alpha2", 1.0);
  if (node.kind == Node::Kind::Relu) {
    node.lower = text.at("lowerClip");
    node.upper = text.at("upperClip");
    node.slope = text.at("lowerClipSlope");
  }
}

// Of the single operations that aren't convolutions, the one that has a plan without a device.
void read_pooling(const json& text, const std::vector<Tensor>& tensors, const Index& index, Node& node) {
  if (text.at("mode") != "CUDNN_RESAMPLE_MAXPOOL" || text.at("nbSpatialDims") != 2 || text.at("beta") != 0.0)
    throw Unsupported{"computes no resampling but two-dimensional max pooling"};
  node.kind = Node::Kind::MaxPool;
  node.x = index.at(text.at("X"));
  node.y = index.at(text.at("Y"));
  node.conv = shape_of(tensors[node.x], tensors[node.x], tensors[node.y]);
  const auto whole = [&](const char* name) {  // fractions: [[2, 1], [2, 1]]
    std::vector<std::int64_t> values;
    for (const json& fraction : text.at(name)) {
      if (fraction.at(1) != 1) throw Unsupported{"computes with whole windows and strides only"};
      values.push_back(fraction.at(0));
    }
    return values;
  };
  const auto window = whole("windowDim");
  node.conv.r = window.at(0), node.conv.s = window.at(1);
  set_spatial(node.conv, {whole("prePad"), whole("stride"), {}});
  node.alpha = text.at("alpha");
}

}  // namespace

std::optional<Plan> parse_plan(const std::string& text, std::string& reason) try {
  const json root = json::parse(text);
  const json& operations = root.at("operationGraph");
  Plan plan;
  plan.pattern = operations.value("finalizeMode", "");
  plan.engine = root.at("engine").at("engineId");
  Index index;
  for (const json& tensor : operations.at("tensors")) {
    index[tensor.at("name")] = plan.graph.tensors.size();
    plan.graph.tensors.push_back(read_tensor(tensor));
  }
  for (const json& operation : operations.at("nodes")) {
    Node node;
    const std::string kind = operation.at("operation");
    if (kind == "CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR")
      read_pointwise(operation, index, node);
    else if (kind == "CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR")
      read_pooling(operation, plan.graph.tensors, index, node);
    else if (!read_convolution(operation, plan.graph.tensors, index, node))
      throw Unsupported{"does not compute " + kind};
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

namespace {
bool is_convolution(const Node& node) { return node.kind == Node::Kind::Convolution; }
}  // namespace

bool Graph::has_convolution() const { return std::any_of(nodes.begin(), nodes.end(), is_convolution); }

Operation Graph::operation() const {
  const auto found = std::find_if(nodes.begin(), nodes.end(), is_convolution);
  return found != nodes.end() ? found->operation : Operation::Forward;
}

const char* pattern_of(Operation operation) {
  constexpr const char* patterns[operation_count] = {"CONV_FORWARD", "CONV_BWD_DATA", "CONV_BWD_FILTER"};
  return patterns[static_cast<std::size_t>(operation)];
}

// Read off the kernels that the engines launch on a GPU and off their notes; for im2col off the workspace,
// which is the operand's size.
Algorithm algorithm_of_engine(const std::string& pattern, int engine) {
  static const std::map<std::pair<std::string, int>, Algorithm> known{
      {{"CONV_FORWARD", 2}, Algorithm::Im2colGemm},
      {{"CONV_FORWARD", 3}, Algorithm::Fft},
      {{"CONV_FORWARD", 4}, Algorithm::FftTiling},
      {{"CONV_FORWARD", 6}, Algorithm::WinogradNonfused},
      {{"CONV_FORWARD", 12}, Algorithm::Winograd},
      {{"CONV_ADD_BIAS_ACT", 36}, Algorithm::Im2colGemm},
      {{"CONV_BWD_DATA", 4}, Algorithm::Fft},
      {{"CONV_BWD_DATA", 5}, Algorithm::FftTiling},
      {{"CONV_BWD_DATA", 7}, Algorithm::WinogradNonfused},
      {{"CONV_BWD_DATA", 19}, Algorithm::Winograd},
      {{"CONV_BWD_DATA", 25}, Algorithm::Scatter},
      {{"CONV_BWD_DATA", 50}, Algorithm::FftTiling},
      {{"CONV_BWD_FILTER", 17}, Algorithm::WinogradNonfused},
      {{"CONV_BWD_FILTER", 18}, Algorithm::Fft},
      {{"CONV_BWD_FILTER", 20}, Algorithm::Scatter},
  };
  if (engine == 0) return Algorithm::Direct;
  const auto found = known.find({pattern, engine});
  return found != known.end() ? found->second : Algorithm::ImplicitGemm;
}

}  // namespace standin
