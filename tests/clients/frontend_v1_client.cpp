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
using convpin::Operation;
using convpin::Problem;
using Attributes = std::shared_ptr<fe::graph::Tensor_attributes>;

fe::DataType_t frontend_type(DataType type) {
  switch (type) {
    case DataType::Double:
      return fe::DataType_t::DOUBLE;
    case DataType::Half:
      return fe::DataType_t::HALF;
    case DataType::BFloat16:
      return fe::DataType_t::BFLOAT16;
    default:
      return fe::DataType_t::FLOAT;
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

template <typename Kind>
Kind attributes_for(const Problem& p) {
  const int dims = p.spatial_dims();
  return Kind()
      .set_pre_padding(list(p.pad, dims))
      .set_post_padding(list(p.post_pad, dims))
      .set_stride(list(p.stride, dims))
      .set_dilation(list(p.dilation, dims));
}

using Pointers = std::unordered_map<Attributes, void*>;

// Runs one plan of the list and says how it went. Its workspace is allocated for it alone.
Outcome run_plan(fe::graph::Graph& graph, std::int64_t plan, Pointers& pointers, const Workload& load,
                 const Request& request, cudnnHandle_t handle) {
  Outcome outcome;
  outcome.workspace = graph.get_workspace_size_plan_at_index(plan);
  if (outcome.workspace > request.max_workspace) throw std::runtime_error("its workspace is over the limit");
  const auto workspace = load.device().allocate(static_cast<std::size_t>(outcome.workspace));
  if (!workspace) throw std::runtime_error(workspace.error);
  std::string why;
  const auto launch = [&] {
    fe::error_t error = graph.execute_plan_at_index(handle, pointers, workspace->data(), plan);
    why = error.is_bad() ? error.get_message() : "";
    return error.is_bad() ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
  };
  const std::string error = load.run("execute_plan_at_index", launch, request.options, outcome);
  if (!error.empty()) throw std::runtime_error(error + " " + why);
  check(graph.get_plan_name_at_index(plan, outcome.ran));
  return outcome;
}

// Every plan that can be built, each run three times, the median counts; the fastest runs again.
// (Graph::autotune does the same, but from then on some versions name another plan than the one that runs.)
Outcome run_fastest(fe::graph::Graph& graph, Pointers& pointers, const Workload& load, Request request,
                    cudnnHandle_t handle) {
  const convclient::Options asked = request.options;
  request.options = {};
  request.options.time = true;
  request.options.repeat = 3;
  std::int64_t fastest = -1;
  double fastest_ms = 0;
  for (std::int64_t plan = 0; plan < graph.get_execution_plan_count(); ++plan) {
    if (graph.build_plan_at_index(handle, plan).is_bad()) continue;
    try {
      const Outcome outcome = run_plan(graph, plan, pointers, load, request, handle);
      if (fastest >= 0 && *outcome.time_ms >= fastest_ms) continue;
      fastest = plan;
      fastest_ms = *outcome.time_ms;
    } catch (const std::exception&) {
    }
  }
  if (fastest < 0) throw std::runtime_error("no plan runs");
  request.options = asked;
  return run_plan(graph, fastest, pointers, load, request, handle);
}

Outcome run(const Workload& load, const Request& request, cudnnHandle_t handle) {
  const Problem& p = load.problem();
  if (p.flipped) throw std::runtime_error("the 1.x API has no true convolution in older versions");
  fe::graph::Graph graph;
  graph.set_io_data_type(frontend_type(p.x.type)).set_compute_data_type(frontend_type(p.compute));
  const std::array<const convpin::Tensor*, 3> tensors{&p.x, &p.w, &p.y};
  constexpr const char* names[] = {"x", "w", "y"};
  const std::size_t output = p.operation == Operation::Forward        ? 2
                             : p.operation == Operation::BackwardData ? 0
                                                                      : 1;
  std::array<Attributes, 3> xwy;
  for (std::size_t i = 0; i < 3; ++i)
    if (i != output) xwy[i] = add_tensor(graph, names[i], *tensors[i]);
  if (p.operation == Operation::Forward)
    xwy[2] = graph.conv_fprop(xwy[0], xwy[1], attributes_for<fe::graph::Conv_fprop_attributes>(p));
  else if (p.operation == Operation::BackwardData)
    xwy[0] = graph.conv_dgrad(xwy[2], xwy[1], attributes_for<fe::graph::Conv_dgrad_attributes>(p));
  else
    xwy[1] = graph.conv_wgrad(xwy[2], xwy[0], attributes_for<fe::graph::Conv_wgrad_attributes>(p));
  xwy[output]
      ->set_output(true)
      .set_dim(list(tensors[output]->dims, tensors[output]->rank))
      .set_stride(list(tensors[output]->strides, tensors[output]->rank))
      .set_data_type(frontend_type(tensors[output]->type));

  check(graph.validate());
  check(graph.build_operation_graph(handle));
  check(graph.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}));
  std::vector<fe::NumericalNote_t> unwanted{fe::NumericalNote_t::DOWN_CONVERT_INPUTS};
  if (request.deterministic) unwanted.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
  if (!request.allow_tf32 && p.x.type == DataType::Float)
    unwanted.push_back(fe::NumericalNote_t::TENSOR_CORE);
  graph.deselect_numeric_notes(unwanted);
  if (request.max_workspace != INT64_MAX) graph.deselect_workspace_greater_than(request.max_workspace);
  check(graph.check_support());
  Pointers pointers{{xwy[0], load.x()}, {xwy[1], load.w()}, {xwy[2], load.y()}};
  if (request.benchmark) return run_fastest(graph, pointers, load, request, handle);

  check(graph.build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE));
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
