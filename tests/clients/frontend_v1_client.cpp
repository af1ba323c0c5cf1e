// cudnn-frontend's 1.x graph API, called as its own samples and ONNX Runtime call it.
//
//   LD_LIBRARY_PATH=<libcudnn's folder> frontend_v1_client [--benchmark] [--deterministic] [--no-tf32]
//       [--max-workspace BYTES] "x=[2,8,14,14] w=[8,8,3,3] half nhwc pad=1,1"
//
// Prints the name of the plan that ran.

#include <cudnn_frontend.h>

#include <memory>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "tests/clients/frontend_main.hpp"

namespace {

namespace fe = cudnn_frontend;
using clients::Request;
using convclient::Outcome;
using convclient::Workload;
using convpin::DataType;
using convpin::Problem;
using Attributes = std::shared_ptr<fe::graph::Tensor_attributes>;

fe::DataType_t frontend_type(DataType type) {
  switch (type) {
    case DataType::Double: return fe::DataType_t::DOUBLE;
    case DataType::Half: return fe::DataType_t::HALF;
    case DataType::BFloat16: return fe::DataType_t::BFLOAT16;
    default: return fe::DataType_t::FLOAT;
  }
}

std::vector<std::int64_t> list(const std::array<std::int64_t, convpin::kMaxDims>& values, int count) {
  return {values.begin(), values.begin() + count};
}

void check(fe::error_t error) {
  if (error.is_bad()) throw std::runtime_error(error.get_message());
}

Attributes add_tensor(fe::graph::Graph& graph, const char* name, const convpin::Tensor& t) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_name(name)
                          .set_dim(list(t.dims, t.rank))
                          .set_stride(list(t.strides, t.rank))
                          .set_data_type(frontend_type(t.type)));
}

Outcome run(const Workload& load, const Request& request, cudnnHandle_t handle) {
  const Problem& p = load.problem();
  if (p.flipped) throw std::runtime_error("the 1.x API has no true convolution in older versions");
  const int dims = p.spatial_dims();

  fe::graph::Graph graph;
  graph.set_io_data_type(frontend_type(p.x.type)).set_compute_data_type(frontend_type(p.compute));
  Attributes x = add_tensor(graph, "x", p.x);
  Attributes w = add_tensor(graph, "w", p.w);
  Attributes y = graph.conv_fprop(x, w,
                                  fe::graph::Conv_fprop_attributes()
                                      .set_pre_padding(list(p.pad, dims))
                                      .set_post_padding(list(p.post_pad, dims))
                                      .set_stride(list(p.stride, dims))
                                      .set_dilation(list(p.dilation, dims)));
  y->set_output(true)
      .set_dim(list(p.y.dims, p.y.rank))
      .set_stride(list(p.y.strides, p.y.rank))
      .set_data_type(frontend_type(p.y.type));

  check(graph.validate());
  check(graph.build_operation_graph(handle));
  check(graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}));
  std::vector<fe::NumericalNote_t> unwanted{fe::NumericalNote_t::DOWN_CONVERT_INPUTS};
  if (request.deterministic) unwanted.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
  if (!request.allow_tf32) unwanted.push_back(fe::NumericalNote_t::TENSOR_CORE);
  graph.deselect_numeric_notes(unwanted);
  if (request.max_workspace != INT64_MAX) graph.deselect_workspace_greater_than(request.max_workspace);
  check(graph.check_support());
  check(graph.build_plans(request.benchmark ? fe::BuildPlanPolicy_t::ALL : fe::BuildPlanPolicy_t::HEURISTICS_CHOICE));

  std::unordered_map<Attributes, void*> pointers{{x, load.x()}, {w, load.w()}, {y, load.y()}};
  if (request.benchmark) {
    const auto workspace = load.device().allocate(static_cast<std::size_t>(graph.get_autotune_workspace_size()));
    if (!workspace) throw std::runtime_error(workspace.error);
    check(graph.autotune(handle, pointers, workspace->data()));
  }

  Outcome outcome;
  outcome.workspace = graph.get_workspace_size();
  const auto workspace = load.device().allocate(static_cast<std::size_t>(outcome.workspace));
  if (!workspace) throw std::runtime_error(workspace.error);
  std::string why;
  const auto launch = [&] {
    fe::error_t error = graph.execute(handle, pointers, workspace->data());
    why = error.is_bad() ? error.get_message() : "";
    return error.is_bad() ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
  };
  const std::string error = load.run("execute", launch, request.options, outcome);
  if (!error.empty()) throw std::runtime_error(error + " " + why);
  check(graph.get_plan_name(outcome.ran));
  return outcome;
}

}  // namespace

int main(int argc, char** argv) { return clients::frontend_main(argc, argv, "frontend_v1_client", run); }
