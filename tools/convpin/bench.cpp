#include "tools/convpin/bench.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "shim/hooks/reason.hpp"
#include "tools/convclient/data.hpp"
#include "tools/convpin/command.hpp"

namespace convpin::cli {
namespace {

using graph::Descriptor;

// The driver's functions that only the command needs, of the stand-in where that is the cuDNN.
template <typename Function>
Function driver_function(const Cudnn& cudnn, const char* name) {
  using StandIn = const void* (*)(const char*);
  if (const auto stand_in = reinterpret_cast<StandIn>(dlsym(cudnn.library.handle, "cudnnStandinDriver")))
    return reinterpret_cast<Function>(const_cast<void*>(stand_in(name)));
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return cuda ? reinterpret_cast<Function>(dlsym(cuda, name)) : nullptr;
}

convclient::Device open_memory() {
  auto device = convclient::Device::open();
  if (!device) throw BadUse(device.error);
  return std::move(*device.value);
}

// What the reference can compute in about a second.
std::size_t elements_for(const Problem& p) {
  constexpr double kProducts = 2e7;
  return static_cast<std::size_t>(std::clamp(kProducts / convclient::products_of(p), 64.0, 4096.0));
}

bool has_reference(const Problem& p) {
  for (const Tensor* t : {&p.x, &p.w, &p.y})
    if (!convclient::can_hold(t->type)) return false;
  if (p.fused_count == 0) return true;
  return p.operation == Operation::Forward && p.fused_count == 2 && p.fused[0] == CUDNN_POINTWISE_ADD &&
         p.fused[1] == CUDNN_POINTWISE_RELU_FWD;
}

std::int64_t place_of_element(const Tensor& t, std::int64_t flat) {
  std::int64_t at = 0;
  for (int d = t.rank - 1; d >= 0; --d) {
    at += flat % t.dims[static_cast<std::size_t>(d)] * t.strides[static_cast<std::size_t>(d)];
    flat /= t.dims[static_cast<std::size_t>(d)];
  }
  return at;
}

bool uses_tensor_cores(const Candidate& c) { return std::ranges::count(c.numerical_notes, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) > 0; }

}  // namespace

Gpu::Gpu(const Cudnn& opened) : cudnn(opened), memory(open_memory()), device(Device::present(opened)) {
  using SetStream = cudnnStatus_t (*)(cudnnHandle_t, cudaStream_t);
  const auto set_stream = reinterpret_cast<SetStream>(dlsym(cudnn.library.handle, "cudnnSetStream"));
  if (!set_stream || set_stream(device.target().handle, memory.stream())) throw BadUse("cudnnSetStream failed");
  char text[256] = "";
  using DeviceGetName = CUresult (*)(char*, int, CUdevice);
  if (const auto get_name = driver_function<DeviceGetName>(cudnn, "cuDeviceGetName")) get_name(text, sizeof text - 1, 0);
  name = text;
}

Parsed<std::unique_ptr<Bench>> Bench::make(const Gpu& gpu, const Problem& problem, std::uint64_t seed) {
  using Result = Parsed<std::unique_ptr<Bench>>;
  if (!has_reference(problem))
    return Result::fail("its result can't be checked: float, half, bfloat16 and double can be, bare or with fused=add,relu behind forward");
  std::unique_ptr<Bench> bench(new Bench(gpu, problem));
  bench->graph_ = build_graph(gpu.cudnn.library, problem, gpu.device.target());
  if (bench->graph_.status) return Result::fail(bench->graph_.reason);
  if (std::string wrong = bench->fill(seed); !wrong.empty()) return Result::fail(wrong);
  return Result::ok(std::move(bench));
}

std::string Bench::fill(std::uint64_t seed) {
  std::string wrong;
  const auto place = [&](const Tensor& t, convclient::Bytes& host, convclient::Buffer& buffer) {
    if (!wrong.empty()) return;
    host = convclient::random_bytes(t, seed++);
    auto memory = gpu_.memory.allocate(host.size());
    wrong = memory ? gpu_.memory.upload(*memory, host.data(), host.size()) : memory.error;
    if (memory) buffer = std::move(*memory.value);
  };
  place(problem_.x, host_.x, x_);
  place(problem_.w, host_.w, w_);
  place(problem_.y, host_.y, y_);
  if (!graph_.operands.empty()) place(graph_.operands[0], host_.bias, bias_);
  if (!wrong.empty()) return wrong;
  elements_ = convclient::elements_to_check(convclient::elements_of(written(problem_)), elements_for(problem_), seed);
  for (const std::int64_t flat : elements_) reference_.push_back(convclient::reference_at(problem_, host_, flat));
  return {};
}

const convclient::Buffer& Bench::output() const {
  return problem_.operation == Operation::Forward ? y_ : problem_.operation == Operation::BackwardData ? x_ : w_;
}

std::vector<EngineConfig> Bench::configurations(bool all_of_the_heuristics) const {
  const Library& library = gpu_.cudnn.library;
  std::vector<EngineConfig> all;
  for (const auto mode : {CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_FALLBACK})
    for (const Descriptor& listed : graph::query_heuristics(library, graph_.graph.get(), mode, gpu_.device.target())) {
      EngineConfig config = graph::read_config(library, listed.get());
      const bool known =
          std::ranges::any_of(all, [&](const EngineConfig& c) { return all_of_the_heuristics ? c == config : c.engine == config.engine; });
      if (!known && config.engine >= 0) all.push_back(std::move(config));
    }
  for (int engine = 0; engine < graph::engine_count(library, graph_.graph.get()); ++engine)
    if (std::ranges::find(all, engine, &EngineConfig::engine) == all.end()) all.push_back({engine, {}});
  return all;
}

Runnable Bench::prepare(const EngineConfig& config, std::optional<std::int64_t> workspace_limit) {
  const Library& library = gpu_.cudnn.library;
  Runnable r;
  Candidate& c = r.candidate;
  c.engine = config;
  c.operation = problem_.operation;
  c.algorithm = problem_.fused_count > 0 ? -1 : algorithm_of_engine(problem_.operation, library.version, config.engine);
  const auto refuse = [&](CandidateStatus status, std::string why) {
    c.status = status;
    c.reason = std::move(why);
    return std::move(r);
  };
  const Descriptor descriptor(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  const ReasonScope words(library, Listen::Yes);
  const auto begin = std::chrono::steady_clock::now();
  if (const auto status = graph::fill_config(library, descriptor.get(), graph_.graph.get(), config, gpu_.device.target()))
    return refuse(CandidateStatus::Unsupported, words.text(status));
  const graph::Notes notes = graph::read_notes(library, descriptor.get());
  c.numerical_notes = notes.numerical;
  c.behavior_notes = notes.behavior;
  c.deterministic = !notes.has_numerical(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  r.plan = graph::build_plan(library, descriptor.get(), gpu_.device.target());
  c.build_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  if (r.plan.status) return refuse(CandidateStatus::Unsupported, r.plan.reason);
  c.workspace_bytes = r.plan.workspace_bytes;
  if (workspace_limit && *c.workspace_bytes > *workspace_limit)
    return refuse(CandidateStatus::Skipped, "its workspace is over the limit of " + std::to_string(*workspace_limit) + " bytes");
  if (const auto needed = static_cast<std::size_t>(*c.workspace_bytes); needed > workspace_.size()) {
    workspace_ = {};  // before the new one, or both would have to fit
    auto workspace = gpu_.memory.allocate(needed);
    if (!workspace) return refuse(CandidateStatus::NoMemory, workspace.error);
    workspace_ = std::move(*workspace.value);
  }

  // All bits set is a NaN: an element that nobody writes is seen.
  const std::vector<std::byte> nans(output().size(), std::byte{0xff});
  if (std::string wrong = gpu_.memory.upload(output(), nans.data(), nans.size()); !wrong.empty())
    return refuse(CandidateStatus::Unsupported, wrong);
  if (const auto status = launch(r)) return refuse(CandidateStatus::Unsupported, words.text(status));
  if (std::string wrong = gpu_.memory.synchronize(); !wrong.empty()) return refuse(CandidateStatus::Unsupported, wrong);
  c.error = error_of_output();
  c.status = CandidateStatus::Ok;
  // Tensor cores round float data to TF32, and what turns inputs into half rounds them no finer.
  const double bound = convclient::error_bound(problem_, uses_tensor_cores(c));
  if (!(*c.error <= bound))
    return refuse(CandidateStatus::Skipped, "its error of " + std::to_string(*c.error) + " is over the bound of " + std::to_string(bound));
  return r;
}

double Bench::error_of_output() {
  convclient::Bytes result(output().size());
  if (!gpu_.memory.download(result.data(), output(), result.size()).empty()) return HUGE_VAL;
  const Tensor& t = written(problem_);
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < elements_.size(); ++i) {
    const double out = convclient::read(t.type, result, place_of_element(t, elements_[i]));
    if (std::isnan(out)) return HUGE_VAL;
    worst = std::max(worst, std::fabs(out - reference_[i]));
    largest = std::max(largest, std::fabs(reference_[i]));
  }
  return largest > 0 ? worst / largest : worst;
}

cudnnStatus_t Bench::launch(const Runnable& r) {
  std::vector<std::int64_t> ids{kX, kW, kY};
  std::vector<void*> pointers{x_.data(), w_.data(), y_.data()};
  if (bias_.data()) {
    ids.push_back(kFirstOperand);
    pointers.push_back(bias_.data());
  }
  return graph::execute(gpu_.cudnn.library, gpu_.device.target().handle, r.plan.descriptor.get(), ids, std::move(pointers),
                        workspace_.data());
}

std::optional<double> Bench::time_ms(Runnable& r, int launches) {
  constexpr std::size_t kFlush = std::size_t{256} << 20;  // more than any GPU's caches
  using Fill = CUresult (*)(CUdeviceptr, unsigned char, std::size_t, CUstream);
  static const auto fill = driver_function<Fill>(gpu_.cudnn, "cuMemsetD8Async");
  if (!cold_) {
    const auto ms = gpu_.memory.time_ms([&] {
      for (int i = 0; i < launches; ++i)
        if (launch(r)) return false;
      return true;
    });
    return ms ? std::optional(*ms / launches) : std::nullopt;
  }
  if (!flush_.data()) {
    auto memory = gpu_.memory.allocate(kFlush);
    if (!memory) return std::nullopt;
    flush_ = std::move(*memory.value);
  }
  double sum = 0;
  for (int i = 0; i < launches; ++i) {
    if (gpu_.memory.is_host()) {
      std::memset(flush_.data(), i, flush_.size());
    } else if (fill) {
      fill(reinterpret_cast<CUdeviceptr>(flush_.data()), static_cast<unsigned char>(i), flush_.size(), gpu_.memory.stream());
    }
    const auto ms = gpu_.memory.time_ms([&] { return launch(r) == CUDNN_STATUS_SUCCESS; });
    if (!ms) return std::nullopt;
    sum += *ms;
  }
  return sum / launches;
}

}  // namespace convpin::cli
