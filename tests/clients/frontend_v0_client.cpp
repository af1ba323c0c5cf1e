// cudnn-frontend's v0.x builders, called as PyTorch's aten/src/ATen/native/cudnn/Conv_v8.cpp calls them for a
// forward convolution. The functions have the names that they have there.
//
//   LD_LIBRARY_PATH=<libcudnn's folder> frontend_v0_client [--benchmark] [--deterministic] [--no-tf32]
//       [--max-workspace BYTES] "x=[2,8,14,14] w=[8,8,3,3] float nchw pad=1,1"
//
// Prints the tag of the plan that ran, as PyTorch would log it.

#include <cudnn_frontend.h>
#include <cudnn_frontend_find_plan.h>
#include <cudnn_frontend_get_plan.h>

#include <array>
#include <stdexcept>
#include <vector>

#include "tests/clients/frontend_main.hpp"
#include "tools/convclient/status.hpp"

namespace {

using clients::Request;
using convclient::Outcome;
using convclient::Workload;
using convpin::Problem;

cudnnBackendDescriptorType_t operation_of(const Problem& p) {
  switch (p.operation) {
    case convpin::Operation::BackwardData:
      return CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
    case convpin::Operation::BackwardFilter:
      return CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
    default:
      return CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
  }
}
constexpr std::uint64_t kBenchmarkLimit = 10;  // torch.backends.cudnn.benchmark_limit

// The largest power of two, up to 32, that the address is a multiple of.
std::uint8_t get_alignment(const void* data) {
  std::uint8_t alignment = 1;
  for (; alignment < 32; alignment *= 2)
    if (reinterpret_cast<std::uintptr_t>(data) % (alignment * 2)) return alignment;
  return alignment;
}

cudnn_frontend::Tensor get_tensor_descriptor(const convpin::Tensor& t, std::int64_t id, const void* data) {
  return cudnn_frontend::TensorBuilder()
      .setDim(t.rank, t.dims.data())
      .setStrides(t.rank, t.strides.data())
      .setId(id)
      .setAlignment(get_alignment(data))
      .setDataType(static_cast<cudnnDataType_t>(t.type))
      .setVirtual(false)
      .build();
}

cudnn_frontend::ConvDesc_v8 get_conv_descriptor(const Problem& p) {
  const std::int64_t dims = p.spatial_dims();
  return cudnn_frontend::ConvDescBuilder()
      .setDataType(static_cast<cudnnDataType_t>(p.compute))
      .setMathMode(p.flipped ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION)
      .setNDims(dims)
      .setStrides(dims, p.stride.data())
      .setPrePadding(dims, p.pad.data())
      .setPostPadding(dims, p.post_pad.data())
      .setDilation(dims, p.dilation.data())
      .build();
}

cudnn_frontend::OperationGraph build_opgraph(cudnnHandle_t handle, const Workload& load) {
  const Problem& p = load.problem();
  auto op = cudnn_frontend::OperationBuilder(operation_of(p))
                .setxDesc(get_tensor_descriptor(p.x, 'x', load.x()))
                .setyDesc(get_tensor_descriptor(p.y, 'y', load.y()))
                .setwDesc(get_tensor_descriptor(p.w, 'w', load.w()))
                .setcDesc(get_conv_descriptor(p))
                .build();
  std::array<cudnn_frontend::Operation const*, 1> ops = {&op};
  return cudnn_frontend::OperationGraphBuilder()
      .setHandle(handle)
      .setOperationGraph(ops.size(), ops.data())
      .build();
}

void filter_engine_configs(cudnn_frontend::EngineConfigList& from, cudnn_frontend::EngineConfigList& to,
                           const Request& request, bool is_float) {
  cudnn_frontend::filter(from, to, [&](cudnnBackendDescriptor_t c) {
    using namespace cudnn_frontend;
    if (request.deterministic && hasNumericalNote<CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC>(c)) return true;
    if (hasNumericalNote<CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS>(c)) return true;
    return is_float && !request.allow_tf32 && hasNumericalNote<CUDNN_NUMERICAL_NOTE_TENSOR_CORE>(c);
  });
}

std::vector<cudnn_frontend::GeneratorSource> get_generator_sources(const Request& request, const Problem& p,
                                                                   bool heuristic, bool fallback) {
  const bool is_float = p.x.type == convpin::DataType::Float;
  const auto heurgen_method = [=, &request](cudnn_frontend::OperationGraph& graph) {
    auto heuristics = cudnn_frontend::EngineHeuristicsBuilder()
                          .setOperationGraph(graph)
                          .setHeurMode(CUDNN_HEUR_MODE_INSTANT)
                          .build();
    auto& configs = heuristics.getEngineConfig(heuristics.getEngineConfigCount());
    cudnn_frontend::EngineConfigList filtered;
    filter_engine_configs(configs, filtered, request, is_float);
    return filtered;
  };
  const auto fallback_method = [=, &request, &p](cudnn_frontend::OperationGraph& graph) {
    auto list = cudnn_frontend::EngineFallbackListBuilder()
                    .setOperationGraph(graph)
                    .setOperation(operation_of(p))
                    .build();
    cudnn_frontend::EngineConfigList filtered;
    filter_engine_configs(list.getFallbackList(), filtered, request, is_float);
    return filtered;
  };
  std::vector<cudnn_frontend::GeneratorSource> sources;
  if (heuristic) sources.push_back(heurgen_method);
  if (fallback) sources.push_back(fallback_method);
  return sources;
}

// Runs the plan as run_conv_plan does: a workspace and a variant pack for each execution. Throws where it
// fails.
Outcome run_conv_plan(cudnnHandle_t handle, const Workload& load, const Request& request,
                      const cudnn_frontend::ExecutionPlan& plan) {
  const std::int64_t size = plan.getWorkspaceSize();
  if (size > request.max_workspace)
    throw std::runtime_error("workspace of " + std::to_string(size) + " bytes");
  const auto workspace = load.device().allocate(static_cast<std::size_t>(size));
  if (!workspace) throw std::runtime_error(workspace.error);
  const auto launch = [&] {
    void* pointers[] = {load.x(), load.y(), load.w()};
    std::int64_t ids[] = {'x', 'y', 'w'};
    auto pack = cudnn_frontend::VariantPackBuilder()
                    .setWorkspacePointer(size ? workspace->data() : nullptr)
                    .setDataPointers(3, pointers)
                    .setUids(3, ids)
                    .build();
    return cudnnBackendExecute(handle, plan.get_raw_desc(), pack.get_raw_desc());
  };
  Outcome outcome;
  outcome.ran = plan.getTag();
  outcome.workspace = size;
  const std::string error = load.run("cudnnBackendExecute", launch, request.options, outcome);
  if (!error.empty()) throw std::runtime_error(error);
  return outcome;
}

bool plan_errata_exception(cudnnHandle_t handle, const std::string& tag) {
  static nlohmann::json errata;
  static const bool has_json = cudnn_frontend::load_from_config(errata, "");
  return has_json && cudnn_frontend::check_errata(errata, tag, handle, [] { return true; });
}

std::optional<Outcome> try_configs(cudnn_frontend::EngineConfigList& configs, const std::string& tag,
                                   cudnnHandle_t handle, const Workload& load, const Request& request) {
  for (auto& config : configs) {
    try {
      auto plan =
          cudnn_frontend::ExecutionPlanBuilder().setHandle(handle).setEngineConfig(config, tag).build();
      if (plan_errata_exception(handle, plan.getTag())) continue;
      return run_conv_plan(handle, load, request, plan);
    } catch (const std::exception&) {  // cudnnException, CuDNNError and OutOfMemoryError there
    }
  }
  return std::nullopt;
}

// benchmark=False: INSTANT's list, and on a graph made anew the FALLBACK list.
Outcome run_single_conv(const Workload& load, const Request& request, cudnnHandle_t handle) {
  for (const bool fallback : {false, true}) {
    auto graph = build_opgraph(handle, load);
    const std::string tag = graph.getTag();
    auto sources = get_generator_sources(request, load.problem(), !fallback, fallback);
    cudnn_frontend::EngineConfigGenerator generator(static_cast<int>(sources.size()), sources.data());
    auto configs = generator.generate_engine_config(graph);
    if (auto outcome = try_configs(configs, tag, handle, load, request)) return *outcome;
  }
  throw std::runtime_error("GET was unable to find an engine to execute this computation");
}

// benchmark=True: the plans of both lists, those with too large a workspace dropped, at most ten timed.
Outcome run_single_conv_benchmark(const Workload& load, const Request& request, cudnnHandle_t handle) {
  auto graph = build_opgraph(handle, load);
  auto sources = get_generator_sources(request, load.problem(), true, true);
  cudnn_frontend::EngineConfigGenerator generator(static_cast<int>(sources.size()), sources.data());
  auto plans = generator.cudnnGetPlan(handle, graph, [&](cudnn_frontend::ExecutionPlan const& plan) {
    return plan_errata_exception(handle, plan.getTag());
  });
  cudnn_frontend::executionPlans_t valid;
  std::int64_t largest = 0;
  for (auto& plan : plans) {
    if (plan.getWorkspaceSize() > request.max_workspace) continue;
    largest = std::max<std::int64_t>(largest, plan.getWorkspaceSize());
    valid.emplace_back(std::move(plan));
  }
  auto workspace = load.device().allocate(static_cast<std::size_t>(largest));
  if (!workspace) throw std::runtime_error(workspace.error);

  void* pointers[] = {load.x(), load.y(), load.w()};
  std::int64_t ids[] = {'x', 'y', 'w'};
  auto pack = cudnn_frontend::VariantPackBuilder()
                  .setDataPointers(3, pointers)
                  .setUids(3, ids)
                  .setWorkspacePointer(workspace->data())
                  .build();
  using cudnn_frontend::CudnnFindSamplingTechnique;
  auto sorted = cudnn_frontend::time_sorted_plan<CudnnFindSamplingTechnique::CUDNN_FIND_SAMPLE_ONCE>(
      handle, std::move(valid), pack, kBenchmarkLimit);
  for (auto& plan : sorted) {
    try {
      return run_conv_plan(handle, load, request, plan);
    } catch (const std::exception&) {
    }
  }
  throw std::runtime_error("FIND was unable to find an engine to execute this computation");
}

}  // namespace

int main(int argc, char** argv) {
  return clients::frontend_main(argc, argv, "frontend_v0_client",
                                [](const Workload& load, const Request& request, cudnnHandle_t handle) {
                                  return request.benchmark ? run_single_conv_benchmark(load, request, handle)
                                                           : run_single_conv(load, request, handle);
                                });
}
