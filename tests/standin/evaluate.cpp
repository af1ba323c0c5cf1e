#include <algorithm>
#include <limits>

#include "tests/standin/faults.hpp"
#include "tests/standin/graph.hpp"

namespace standin {
namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);

template <typename T>
class Evaluation {
 public:
  Evaluation(const Graph& graph, Algorithm algorithm, const std::function<void*(std::int64_t)>& memory,
             std::span<std::byte> workspace)
      : graph_(graph),
        algorithm_(algorithm),
        memory_(memory),
        workspace_(workspace),
        values_(graph.tensors.size()),
        maker_(graph.tensors.size(), none) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) maker_[graph.nodes[i].y] = i;
  }

  void run() {
    for (const Node& node : graph_.nodes) value(node.y);
    // Stored last: an output may share its memory with an input.
    for (const Node& node : graph_.nodes) {
      const Tensor& y = graph_.tensors[node.y];
      if (!y.is_virtual) store(y, values_[node.y].data(), memory_(y.uid));
    }
  }

 private:
  const std::vector<T>& value(std::size_t tensor) {
    if (values_[tensor].empty()) {
      if (maker_[tensor] == none)
        values_[tensor] = loaded(tensor);
      else
        values_[tensor] = made(graph_.nodes[maker_[tensor]]);
    }
    return values_[tensor];
  }

  std::vector<T> loaded(std::size_t tensor) const {
    const Tensor& t = graph_.tensors[tensor];
    std::vector<T> packed(static_cast<std::size_t>(t.count()));
    load(t, memory_(t.uid), packed.data());
    return packed;
  }

  std::vector<T> made(const Node& node) {
    const Tensor& y = graph_.tensors[node.y];
    std::vector<T> result(static_cast<std::size_t>(y.count()));
    const std::vector<T>& x = value(node.x);
    if (node.kind == Node::Kind::Convolution) {
      Scratch scratch(workspace_);
      convolve(node.operation, algorithm_, node.conv, x.data(), value(node.b).data(), result.data(), scratch);
      const std::vector<T> before = node.beta != 0 ? loaded(node.y) : std::vector<T>();
      for (std::size_t i = 0; i < result.size(); ++i) {
        result[i] *= static_cast<T>(node.alpha);
        if (!before.empty()) result[i] += static_cast<T>(node.beta) * before[i];
      }
    } else if (node.kind == Node::Kind::MaxPool) {
      max_pool(node, x, result);
    } else {
      pointwise(node, x, node.has_second() ? value(node.b) : x, result);
    }
    if (y.is_virtual) round_to(y.type, result.data(), y.count());
    return result;
  }

  static void max_pool(const Node& node, const std::vector<T>& x, std::vector<T>& result) {
    const Convolution& c = node.conv;
    for (std::int64_t i = 0; i < c.n * c.c * c.p * c.q; ++i) {
      const std::int64_t plane = i / (c.p * c.q), p = i / c.q % c.p, q = i % c.q;
      T largest = -std::numeric_limits<T>::infinity();
      for (std::int64_t rs = 0; rs < c.r * c.s; ++rs) {
        const std::int64_t row = p * c.stride_h - c.pad_h + rs / c.s;
        const std::int64_t column = q * c.stride_w - c.pad_w + rs % c.s;
        if (row < 0 || row >= c.h || column < 0 || column >= c.w) continue;
        largest = std::max(largest, x[static_cast<std::size_t>((plane * c.h + row) * c.w + column)]);
      }
      result[static_cast<std::size_t>(i)] = static_cast<T>(node.alpha) * largest;
    }
  }

  void pointwise(const Node& node, const std::vector<T>& x, const std::vector<T>& b,
                 std::vector<T>& result) const {
    const Tensor& y_tensor = graph_.tensors[node.y];
    const Tensor& x_tensor = graph_.tensors[node.x];
    const Tensor& b_tensor = graph_.tensors[node.has_second() ? node.b : node.x];
    std::array<std::int64_t, max_rank> at{};
    for (T& element : result) {
      element = apply(node, x[broadcast(x_tensor, at)], b[broadcast(b_tensor, at)]);
      for (std::size_t i = y_tensor.rank; i-- > 0 && ++at[i] == y_tensor.dim[i];) at[i] = 0;
    }
  }

  // A dimension of 1 is repeated.
  static std::size_t broadcast(const Tensor& tensor, const std::array<std::int64_t, max_rank>& at) {
    std::int64_t index = 0;
    for (std::size_t d = 0; d < tensor.rank; ++d)
      index = index * tensor.dim[d] + (tensor.dim[d] == 1 ? 0 : at[d]);
    return static_cast<std::size_t>(index);
  }

  static T apply(const Node& node, T x, T b) {
    switch (node.kind) {
      case Node::Kind::Add:
        return static_cast<T>(node.alpha) * x + static_cast<T>(node.beta) * b;
      case Node::Kind::Multiply:
        return static_cast<T>(node.alpha) * x * (static_cast<T>(node.beta) * b);
      case Node::Kind::Relu:
        if (x < node.lower) return static_cast<T>(node.lower + node.slope * (x - node.lower));
        return x > node.upper ? static_cast<T>(node.upper) : x;
      default:
        return x;
    }
  }

  const Graph& graph_;
  Algorithm algorithm_;
  const std::function<void*(std::int64_t)>& memory_;
  std::span<std::byte> workspace_;
  std::vector<std::vector<T>> values_;
  std::vector<std::size_t> maker_;  // the node whose output a tensor is
};

}  // namespace

cudnnStatus_t evaluate(const Graph& graph, Algorithm algorithm,
                       const std::function<void*(std::int64_t)>& memory, std::span<std::byte> workspace) {
  for (const Tensor& tensor : graph.tensors) {
    if (size_of(tensor.type) == 0) {
      return refuse(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
                    "computes with float, half, bfloat16 and double only");
    }
    if (!tensor.is_virtual && memory(tensor.uid) == nullptr) {
      return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                    "no data pointer for tensor " + std::to_string(tensor.uid));
    }
  }
  for (const Node& node : graph.nodes) {
    if (node.kind == Node::Kind::Convolution &&
        !documented_as_supported(node.operation, algorithm, node.conv)) {
      return refuse(CUDNN_STATUS_NOT_SUPPORTED,
                    std::string(name_of(algorithm)) + " does not support this shape");
    }
  }
  // The whole workspace is lost, as on a GPU: a caller that offers less than it says, or memory that is
  // still needed, is found out.
  std::fill(workspace.begin(), workspace.end(), std::byte{0xcd});
  if (graph.in_double)
    Evaluation<double>(graph, algorithm, memory, workspace).run();
  else
    Evaluation<float>(graph, algorithm, memory, workspace).run();
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace standin
