// Operation graphs without a convolution, by the calls that a convolution's graph takes: max pooling, a
// matrix product, a sum. They are none of a preloaded library's business.
//
//   run: LD_LIBRARY_PATH=<libcudnn's folder> other_graphs
//
// One line a graph: the engine, the checksum of what it wrote and whether that is right, or why it can't run.
// Without a device cuDNN has a plan for the max pooling only.
#include <cudnn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include "tools/convclient/data.hpp"
#include "tools/convclient/memory.hpp"
#include "tools/convclient/plan.hpp"
#include "tools/convclient/status.hpp"

namespace {

using convclient::Descriptor;
using convpin::Tensor;

Tensor make(std::initializer_list<std::int64_t> dims) {
  Tensor t;
  for (const std::int64_t dim : dims) t.dims[static_cast<std::size_t>(t.rank++)] = dim;
  convpin::set_packed_strides(t, convpin::Layout::ChannelsFirst);
  return t;
}

Descriptor describe(const Tensor& t, std::int64_t id) {
  const auto rank = static_cast<std::size_t>(t.rank);
  Descriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
  d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span(t.dims.data(), rank))
      .set(CUDNN_ATTR_TENSOR_STRIDES, std::span(t.strides.data(), rank))
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16})
      .finalize();
  return d;
}

using Values = std::vector<double>;

// The tensors in the order of their ids 0, 1, ...; the last is written. parts: what the graph is made of.
struct Graph {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Descriptor> parts;
  Descriptor operation;
  Values (*expected)(const std::vector<Values>&);  // of the tensors before
};

Graph begin(const char* name, std::vector<Tensor> tensors) {
  Graph g{name, std::move(tensors), {}, {}, nullptr};
  for (std::size_t i = 0; i < g.tensors.size(); ++i)
    g.parts.push_back(describe(g.tensors[i], static_cast<std::int64_t>(i)));
  return g;
}

Graph max_pool() {
  Graph g = begin("max_pool", {make({2, 4, 14, 14}), make({2, 4, 7, 7})});
  const cudnnResampleMode_t mode = CUDNN_RESAMPLE_MAXPOOL;
  const cudnnPaddingMode_t padding = CUDNN_NEG_INF_PAD;
  const std::array<cudnnFraction_t, 2> two{{{2, 1}, {2, 1}}}, none{{{0, 1}, {0, 1}}};
  const double one = 1, zero = 0;
  Descriptor pooling(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR, "pooling");
  pooling.set(CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, 1, &mode)
      .set(CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, 1, &padding)
      .set(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, std::int64_t{2})
      .set(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, CUDNN_TYPE_FRACTION, 2, two.data())
      .set(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, CUDNN_TYPE_FRACTION, 2, none.data())
      .set(CUDNN_ATTR_RESAMPLE_POST_PADDINGS, CUDNN_TYPE_FRACTION, 2, none.data())
      .set(CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_TYPE_FRACTION, 2, two.data())
      .finalize();
  g.operation = Descriptor(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, "pooling operation");
  g.operation.set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, pooling)
      .set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, g.parts[0])
      .set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, g.parts[1])
      .set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_ALPHA, CUDNN_TYPE_DOUBLE, 1, &one)
      .set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_BETA, CUDNN_TYPE_DOUBLE, 1, &zero)
      .finalize();
  g.parts.push_back(std::move(pooling));
  g.expected = [](const std::vector<Values>& in) {
    Values out;
    for (std::size_t i = 0; i < 2 * 4 * 7 * 7; ++i) {
      const double* corner = in[0].data() + i / 49 * 196 + i / 7 % 7 * 28 + i % 7 * 2;
      out.push_back(std::max({corner[0], corner[1], corner[14], corner[15]}));
    }
    return out;
  };
  return g;
}

Graph matmul() {
  Graph g = begin("matmul", {make({1, 32, 16}), make({1, 16, 64}), make({1, 32, 64})});
  Descriptor product(CUDNN_BACKEND_MATMUL_DESCRIPTOR, "matrix product");
  product.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalize();
  g.operation = Descriptor(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "matrix product operation");
  g.operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, g.parts[0])
      .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, g.parts[1])
      .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, g.parts[2])
      .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, product)
      .finalize();
  g.parts.push_back(std::move(product));
  g.expected = [](const std::vector<Values>& in) {
    Values out(32 * 64);
    for (std::size_t i = 0; i < out.size(); ++i)
      for (std::size_t k = 0; k < 16; ++k) out[i] += in[0][i / 64 * 16 + k] * in[1][k * 64 + i % 64];
    return out;
  };
  return g;
}

Graph sum() {
  Graph g = begin("add", {make({2, 4, 8, 8}), make({2, 4, 8, 8}), make({2, 4, 8, 8})});
  const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
  Descriptor add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise");
  add.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT)
      .finalize();
  g.operation = Descriptor(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise operation");
  g.operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, add)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, g.parts[0])
      .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, g.parts[1])
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, g.parts[2])
      .finalize();
  g.parts.push_back(std::move(add));
  g.expected = [](const std::vector<Values>& in) {
    Values out;
    for (std::size_t i = 0; i < in[0].size(); ++i) out.push_back(in[0][i] + in[1][i]);
    return out;
  };
  return g;
}

Values values_of(const Tensor& t, const convclient::Bytes& bytes) {
  Values values;
  for (std::int64_t i = 0; i < convclient::elements_of(t); ++i)
    values.push_back(convclient::read(t.type, bytes, i));
  return values;
}

std::string execute(const Graph& g, convclient::Plan& plan, const convclient::Device& device,
                    cudnnHandle_t handle) {
  std::vector<convclient::Buffer> buffers;
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  std::vector<Values> values;
  for (const Tensor& t : g.tensors) {
    const auto bytes = convclient::random_bytes(t, ids.size());
    auto buffer = device.allocate(bytes.size());
    if (!buffer) return buffer.error;
    if (std::string error = device.upload(*buffer, bytes.data(), bytes.size()); !error.empty()) return error;
    ids.push_back(static_cast<std::int64_t>(ids.size()));
    pointers.push_back(buffer->data());
    values.push_back(values_of(t, bytes));
    buffers.push_back(std::move(*buffer.value));
  }
  const auto workspace = device.allocate(static_cast<std::size_t>(plan.workspace));
  if (!workspace) return workspace.error;
  void* room = workspace->data();
  const auto count = static_cast<std::int64_t>(ids.size());
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack");
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data())
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data())
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &room)
      .finalize();
  if (!pack.ok()) return pack.error();
  const cudnnStatus_t status = cudnnBackendExecute(handle, plan.descriptor.raw(), pack.raw());
  if (status != CUDNN_STATUS_SUCCESS) return convclient::failure("cudnnBackendExecute", status);
  convclient::Bytes out(buffers.back().size());
  if (std::string error = device.download(out.data(), buffers.back(), out.size()); !error.empty())
    return error;
  const Values expected = g.expected(values), actual = values_of(g.tensors.back(), out);
  const bool right = std::ranges::equal(
      expected, actual, [](double a, double b) { return std::fabs(a - b) <= 1e-2; });  // TF32 may be in use
  char text[32];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(convclient::fnv1a(out)));
  return convpin::to_tag(convclient::read_configuration_of_plan(plan.descriptor).engine) +
         " checksum=" + text + (right ? " right" : " wrong");
}

std::string run(const Graph& g, const convclient::Device& device, cudnnHandle_t handle) {
  const Descriptor* operations[] = {&g.operation};
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph");
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle)
      .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations)
      .finalize();
  if (!graph.ok()) return graph.error();
  std::string error = "the heuristics offer nothing";
  for (const auto mode : {CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Descriptor& config : convclient::ask_heuristics(graph, mode, {handle}, error)) {
      convclient::Plan plan = convclient::make_plan(config, {handle});
      if (plan.descriptor.ok()) return execute(g, plan, device, handle);
      error = plan.descriptor.error();
    }
  }
  return "can't run: " + error;
}

}  // namespace

int main() {
  const auto device = convclient::Device::open();
  if (!device) return std::fprintf(stderr, "other_graphs: %s\n", device.error.c_str()), 1;
  cudnnHandle_t handle = nullptr;
  if (const cudnnStatus_t status = cudnnCreate(&handle); status != CUDNN_STATUS_SUCCESS)
    return std::fprintf(stderr, "other_graphs: %s\n", convclient::failure("cudnnCreate", status).c_str()), 1;
  cudnnSetStream(handle, device->stream());
  for (const auto& make_graph : {max_pool, matmul, sum}) {
    const Graph g = make_graph();
    std::printf("%s: %s\n", g.name.c_str(), run(g, *device, handle).c_str());
    std::fflush(stdout);
  }
  cudnnDestroy(handle);
  return 0;
}
