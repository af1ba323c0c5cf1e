// Operation graphs with other things around a convolution than the client convclient builds: something before it, statistics
// or a reduction of its result, a result that is written twice, another type between the two, a second convolution. Nothing is executed.
//
//   run: LD_LIBRARY_PATH=<libcudnn's folder> fused_graphs
//
// One line a graph: how many configurations the heuristics have for it (in both modes), and the engine of the first that
// has a plan, or why none has.
#include <cudnn.h>

#include <array>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "shim/model/problem.hpp"
#include "tools/convclient/plan.hpp"
#include "tools/convclient/status.hpp"

namespace {

using convclient::Descriptor;
using convpin::DataType;
using convpin::Layout;
using convpin::Tensor;

// Half, NHWC, 3x3 with padding 1, 32 channels: what cuDNN fuses most to.
constexpr std::int64_t kBatch = 4, kChannels = 32, kSize = 16;

class Graph {
 public:
  const Descriptor& tensor(std::initializer_list<std::int64_t> dims, DataType type = DataType::Half, bool is_virtual = false) {
    Tensor t;
    t.type = type;
    for (const std::int64_t dim : dims) t.dims[static_cast<std::size_t>(t.rank++)] = dim;
    convpin::set_packed_strides(t, Layout::ChannelsLast);
    const auto rank = static_cast<std::size_t>(t.rank);
    return keep(Descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor")
                    .set(CUDNN_ATTR_TENSOR_DATA_TYPE, static_cast<cudnnDataType_t>(type))
                    .set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span(t.dims.data(), rank))
                    .set(CUDNN_ATTR_TENSOR_STRIDES, std::span(t.strides.data(), rank))
                    .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, ++last_id_)
                    .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16})
                    .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual));
  }
  const Descriptor& image(DataType type = DataType::Half, bool is_virtual = false) {
    return tensor({kBatch, kChannels, kSize, kSize}, type, is_virtual);
  }
  const Descriptor& filter() { return tensor({kChannels, kChannels, 3, 3}); }

  void convolution(const Descriptor& x, const Descriptor& w, const Descriptor& y) {
    const std::array<std::int64_t, 2> one{1, 1};
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const Descriptor& how = keep(Descriptor(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution")
                                     .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
                                     .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode)
                                     .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2})
                                     .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::span(one))
                                     .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::span(one))
                                     .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::span(one))
                                     .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::span(one)));
    const float alpha = 1, beta = 0;
    operation(Descriptor(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, "convolution operation")
                  .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x)
                  .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w)
                  .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y)
                  .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, how)
                  .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &alpha)
                  .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &beta));
  }
  void relu(const Descriptor& x, const Descriptor& y) {
    const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_RELU_FWD;
    const Descriptor& how = keep(Descriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise")
                                     .set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode)
                                     .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT));
    operation(Descriptor(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise operation")
                  .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how)
                  .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
                  .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y));
  }
  void statistics(const Descriptor& x) {
    const cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
    operation(Descriptor(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR, "statistics")
                  .set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, 1, &mode)
                  .set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_DATA_FLOAT)
                  .set(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, x)
                  .set(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, tensor({1, kChannels, 1, 1}, DataType::Float))
                  .set(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, tensor({1, kChannels, 1, 1}, DataType::Float)));
  }
  void reduction(const Descriptor& x) {
    const cudnnReduceTensorOp_t what = CUDNN_REDUCE_TENSOR_ADD;
    const Descriptor& how = keep(Descriptor(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "reduction")
                                     .set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &what)
                                     .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT));
    operation(Descriptor(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "reduction operation")
                  .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how)
                  .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x)
                  .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensor({1, kChannels, 1, 1}, DataType::Float)));
  }

  // "12 configurations, eng4_k2=1"
  std::string plan(cudnnHandle_t handle) {
    Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph");
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle)
        .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_)
        .finalize();
    if (!graph.ok()) return graph.error();
    std::size_t count = 0;
    std::string ran, error = "the heuristics have nothing";
    for (const auto mode : {CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_FALLBACK}) {
      const auto configs = convclient::ask_heuristics(graph, mode, {handle}, error);
      count += configs.size();
      for (const Descriptor& config : configs) {
        if (!ran.empty()) break;
        convclient::Plan made = convclient::make_plan(config, {handle});
        if (made.descriptor.ok()) ran = convpin::to_tag(convclient::read_configuration_of_plan(made.descriptor).engine);
        else error = made.descriptor.error();
      }
    }
    return std::to_string(count) + " configurations, " + (ran.empty() ? "no plan: " + error : ran);
  }

 private:
  const Descriptor& keep(Descriptor& d) { return parts_.emplace_back(std::move(d.finalize())); }
  void operation(Descriptor& d) { operations_.push_back(&keep(d)); }

  std::deque<Descriptor> parts_;   // their addresses stay
  std::vector<const Descriptor*> operations_;
  std::int64_t last_id_ = 0;
};

void relu_before(Graph& g) {
  const Descriptor& between = g.image(DataType::Half, true);
  g.relu(g.image(), between);
  g.convolution(between, g.filter(), g.image());
}

void statistics_behind(Graph& g) {
  const Descriptor& y = g.image();
  g.convolution(g.image(), g.filter(), y);
  g.statistics(y);
}

void reduction_behind(Graph& g) {
  const Descriptor& between = g.image(DataType::Float, true);
  g.convolution(g.image(), g.filter(), between);
  g.reduction(between);
}

void two_results(Graph& g) {
  const Descriptor& y = g.image();
  g.convolution(g.image(), g.filter(), y);
  g.relu(y, g.image());
}

void float_between(Graph& g) {
  const Descriptor& between = g.image(DataType::Float, true);
  g.convolution(g.image(), g.filter(), between);
  g.relu(between, g.image());
}

void two_convolutions(Graph& g) {
  const Descriptor& between = g.image(DataType::Half, true);
  g.convolution(g.image(), g.filter(), between);
  g.convolution(between, g.filter(), g.image());
}

}  // namespace

int main() {
  cudnnHandle_t handle = nullptr;
  if (const cudnnStatus_t status = cudnnCreate(&handle); status != CUDNN_STATUS_SUCCESS)
    return std::fprintf(stderr, "fused_graphs: %s\n", convclient::failure("cudnnCreate", status).c_str()), 1;
  constexpr std::pair<const char*, void (*)(Graph&)> graphs[] = {
      {"relu before", relu_before}, {"statistics behind", statistics_behind}, {"reduction behind", reduction_behind},
      {"two results", two_results}, {"float between", float_between},         {"two convolutions", two_convolutions}};
  for (const auto& [name, build] : graphs) {
    Graph g;
    build(g);
    std::printf("%s: %s\n", name, g.plan(handle).c_str());
    std::fflush(stdout);
  }
  cudnnDestroy(handle);
  return 0;
}
