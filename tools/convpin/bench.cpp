#include "tools/convpin/bench.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "shim/hooks/reason.hpp"
#include "tools/convclient/data.hpp"
#include "tools/convpin/command.hpp"
#include "tools/convpin/counted.hpp"

namespace convpin::cli {
namespace {

using graph::Descriptor;

convclient::Device open_memory() {
  auto device = convclient::Device::open();
  if (!device) throw BadUse(device.error);
  return std::move(*device.value);
}

// What the reference can compute in a twentieth of a second, and never so few that a wrong tile could hide.
std::size_t elements_for(const Problem& p) {
  constexpr double kProducts = 3e6;
  return static_cast<std::size_t>(std::clamp(kProducts / convclient::products_of(p), 64.0, 4096.0));
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

Gpu::Gpu(const Cudnn& opened) : cudnn(opened), cuda(cuda_for(opened)), memory(open_memory()), device(Device::present(opened)) {
  if (!cuda.cuMemsetD8Async || !cuda.cuDeviceGetName) throw BadUse("libcuda.so.1 has no cuMemsetD8Async");
  using SetStream = cudnnStatus_t (*)(cudnnHandle_t, cudaStream_t);
  const auto set_stream = reinterpret_cast<SetStream>(dlsym(cudnn.library.handle, "cudnnSetStream"));
  if (!set_stream || set_stream(device.target().handle, memory.stream())) throw BadUse("cudnnSetStream failed");
  char text[256] = "";
  cuda.cuDeviceGetName(text, sizeof text - 1, 0);
  name = text;
  if (cuda.cuDeviceGetPCIBusId && cuda.cuDeviceGetPCIBusId(text, sizeof text - 1, 0) == CUDA_SUCCESS) nvml = Nvml::open(text);
}

Parsed<std::unique_ptr<Bench>> Bench::make(const Gpu& gpu, const Problem& problem, std::uint64_t seed) {
  using Result = Parsed<std::unique_ptr<Bench>>;
  if (!convclient::has_reference(problem))
    return Result::fail(
        "its result can't be checked: float, half, bfloat16 and double can be, bare or with fused=add,relu or fused=add,add,relu behind "
        "forward");
  std::unique_ptr<Bench> bench(new Bench(gpu, problem));
  bench->graph_ = build_graph(gpu.cudnn.library, problem, gpu.device.target());
  if (bench->graph_.status) return Result::fail(bench->graph_.reason);
  for (Listed& listed : heuristics_of(gpu.cudnn.library, bench->graph_, gpu.device.target()))
    if (listed.config.engine >= 0 && !std::ranges::count(bench->listed_, listed.config, &Listed::config))
      bench->listed_.push_back(std::move(listed));
  if (std::string wrong = bench->fill(seed); !wrong.empty()) return Result::fail(wrong);
  return Result::ok(std::move(bench));
}

std::string Bench::fill(std::uint64_t seed) {
  std::string wrong;
  const Problem in = in_memory(problem_);
  const auto place = [&](const Tensor& t, convclient::Bytes& host, convclient::Buffer& buffer) {
    if (!wrong.empty()) return;
    auto memory = gpu_.memory.allocate(bytes_of(t));
    if (!memory) {
      wrong = memory.error;
      return;
    }
    buffer = std::move(*memory.value);
    ++seed;
    if (&t == &written(in)) return;
    host = convclient::repeated_random_bytes(t, seed - 1);
    wrong = gpu_.memory.upload(buffer, host.data(), host.size());
  };
  place(in.x, host_.x, x_);
  place(in.w, host_.w, w_);
  place(in.y, host_.y, y_);
  operands_.resize(graph_.operands.size());
  for (std::size_t i = 0; i < operands_.size(); ++i)
    place(graph_.operands[i], i + 1 < operands_.size() ? host_.z : host_.bias, operands_[i]);
  if (!wrong.empty()) return wrong;
  elements_ = convclient::elements_to_check(convclient::elements_of(written(problem_)), elements_for(problem_), seed);
  for (const std::int64_t flat : elements_) reference_.push_back(convclient::reference_at(problem_, host_, flat));
  return {};
}

const convclient::Buffer& Bench::output() const {
  return problem_.operation == Operation::Forward ? y_ : problem_.operation == Operation::BackwardData ? x_ : w_;
}

std::vector<EngineConfig> Bench::configurations(std::size_t listed) const {
  std::vector<EngineConfig> all;
  for (std::size_t i = 0; i < std::min(listed, listed_.size()); ++i) all.push_back(listed_[i].config);
  const auto is_there = [&](int engine) { return std::ranges::find(all, engine, &EngineConfig::engine) != all.end(); };
  for (const Listed& l : listed_)
    if (!is_there(l.config.engine)) all.push_back(l.config);
  for (int engine = 0; engine < graph::engine_count(gpu_.cudnn.library, graph_.graph.get()); ++engine)
    if (!is_there(engine)) all.push_back({engine, {}});
  return all;
}

Runnable Bench::configure(const EngineConfig& config) const {
  const Library& library = gpu_.cudnn.library;
  Runnable r;
  Candidate& c = r.candidate;
  c.engine = config;
  c.operation = problem_.operation;
  if (const auto l = std::ranges::find(listed_, config, &Listed::config); l != listed_.end()) c.heuristics_rank = l->rank;
  c.algorithm = problem_.fused_count > 0 ? -1 : algorithm_of_engine(problem_.operation, library.version, config.engine);
  const ReasonScope words(library, Listen::Yes);
  Descriptor descriptor(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  if (const auto status = graph::fill_config(library, descriptor.get(), graph_.graph.get(), config, gpu_.device.target())) {
    c.status = CandidateStatus::Unsupported;
    c.reason = words.text(status);
    return r;
  }
  const graph::Notes notes = graph::read_notes(library, descriptor.get());
  c.numerical_notes = notes.numerical;
  c.behavior_notes = notes.behavior;
  c.deterministic = !notes.has_numerical(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  r.config = std::move(descriptor);
  return r;
}

void Bench::build(Runnable& r, std::optional<std::int64_t> workspace_limit) {
  const Library& library = gpu_.cudnn.library;
  Candidate& c = r.candidate;
  const auto refuse = [&](CandidateStatus status, std::string why) {
    c.status = status;
    c.reason = std::move(why);
  };
  const ReasonScope words(library, Listen::Yes);
  const Descriptor config = std::move(r.config);
  const auto begin = std::chrono::steady_clock::now();
  r.plan = graph::build_plan(library, config.get(), gpu_.device.target());
  c.build_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  if (r.plan.status) return refuse(CandidateStatus::Unsupported, r.plan.reason);
  c.workspace_bytes = r.plan.workspace_bytes;
  if (workspace_limit && *c.workspace_bytes > *workspace_limit)
    return refuse(CandidateStatus::Skipped, "its workspace is over the limit of " + counted(*workspace_limit, "byte"));
  if (std::string wrong = grow_workspace(static_cast<std::size_t>(*c.workspace_bytes)); !wrong.empty())
    return refuse(CandidateStatus::NoMemory, wrong);

  // All bits set is a NaN: an element that nobody writes is seen.
  if (gpu_.cuda.cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(output().data()), 0xff, output().size(), gpu_.memory.stream()))
    return refuse(CandidateStatus::Unsupported, "cuMemsetD8Async failed");
  if (const auto status = launch(r)) return refuse(CandidateStatus::Unsupported, words.text(status));
  if (std::string wrong = gpu_.memory.synchronize(); !wrong.empty()) return refuse(CandidateStatus::Unsupported, wrong);
  c.error = error_of_output();
  c.status = CandidateStatus::Ok;
  // Tensor cores round float data to TF32, and what turns inputs into half rounds them no finer.
  const double bound = convclient::error_bound(problem_, uses_tensor_cores(c));
  if (!(*c.error <= bound))
    return refuse(CandidateStatus::Skipped, "its error of " + std::to_string(*c.error) + " is over the bound of " + std::to_string(bound));
}

// Where so much can't be had it is what it was before: plans that are ready need that.
std::string Bench::grow_workspace(std::size_t needed) {
  const std::size_t before = workspace_.size();
  if (needed <= before) return {};
  workspace_ = {};  // before the new one, or both would have to fit
  auto workspace = gpu_.memory.allocate(needed);
  std::string wrong = workspace.error;
  if (!workspace) workspace = gpu_.memory.allocate(before);
  if (workspace) workspace_ = std::move(*workspace.value);
  return wrong;
}

double Bench::error_of_output() {
  if (gpu_.downloads.size() < output().size()) {
    gpu_.downloads = {};
    auto memory = gpu_.memory.allocate_pinned(output().size());
    if (!memory) return HUGE_VAL;
    gpu_.downloads = std::move(*memory.value);
  }
  const auto* result = static_cast<const std::byte*>(gpu_.downloads.data());
  if (!gpu_.memory.download(gpu_.downloads.data(), output(), output().size()).empty()) return HUGE_VAL;
  const Tensor& t = written(problem_);
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < elements_.size(); ++i) {
    const double out = convclient::read(result_type(problem_), result, place_of_element(t, elements_[i]));
    if (std::isnan(out)) return HUGE_VAL;
    worst = std::max(worst, std::fabs(out - reference_[i]));
    largest = std::max(largest, std::fabs(reference_[i]));
  }
  return largest > 0 ? worst / largest : worst;
}

cudnnStatus_t Bench::launch(Runnable& r) {
  const Library& library = gpu_.cudnn.library;
  if (static_cast<std::size_t>(r.plan.workspace_bytes) > workspace_.size()) return CUDNN_STATUS_BAD_PARAM;  // it would write elsewhere
  if (!r.pack || r.workspace != workspace_.data()) {
    std::vector<std::int64_t> ids{kX, kW, kY};
    std::vector<void*> pointers{x_.data(), w_.data(), y_.data()};
    for (const convclient::Buffer& operand : operands_) {
      ids.push_back(kFirstOperand + static_cast<std::int64_t>(ids.size()) - 3);
      pointers.push_back(operand.data());
    }
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    r.pack = graph::make_pack(library, ids, std::move(pointers), workspace_.data(), status);
    r.workspace = workspace_.data();
    r.launches = {};
    if (status) return r.pack = {}, status;
  }
  return library.cudnnBackendExecute(gpu_.device.target().handle, r.plan.descriptor.get(), r.pack.get());
}

// A graph with half or twice as many launches serves as well: capturing is not free.
const LaunchGraph* Bench::launches_of(Runnable& r, int count) {
  if (r.refuses_capture) return nullptr;
  const bool serves = r.launches && r.workspace == workspace_.data() && r.launches.count() <= 2 * count && count <= 2 * r.launches.count();
  if (!serves) {
    r.launches = {};
    const auto once = [&] { return launch(r) == CUDNN_STATUS_SUCCESS; };
    LaunchGraph made = LaunchGraph::capture(gpu_.cuda, gpu_.memory.stream(), count, once);
    // The first launch puts it on the GPU, and is in no time.
    r.refuses_capture = r.candidate.host_timed = !made || !made.launch(gpu_.memory.stream());
    if (r.refuses_capture) return nullptr;
    r.launches = std::move(made);
  }
  return &r.launches;
}

std::optional<double> Bench::time_ms(Runnable& r, int launches) {
  if (cold_) return time_cold_ms(r, std::max(launches, 1));
  if (launches == 0) {
    const auto ms = gpu_.memory.time_ms([&] { return launch(r) == CUDNN_STATUS_SUCCESS; });
    r.alone_ms = ms.value_or(0);
    return ms;
  }
  if (const LaunchGraph* graph = launches_of(r, launches)) {
    constexpr double kShort = 1.0;  // ms; of what takes longer, the host's few us are little
    const CUstream stream = gpu_.memory.stream();
    // Once before: while the GPU is at it, the host puts the start and the launch behind it.
    if (!gpu_.memory.is_host() && r.alone_ms * graph->count() < kShort && !graph->launch(stream)) return std::nullopt;
    const auto ms = gpu_.memory.time_ms([&] { return graph->launch(stream); });
    return ms ? std::optional(*ms / graph->count()) : std::nullopt;
  }
  const auto ms = gpu_.memory.time_ms([&] {
    for (int i = 0; i < launches; ++i)
      if (launch(r)) return false;
    return true;
  });
  return ms ? std::optional(*ms / launches) : std::nullopt;
}

int Bench::keep_busy(Runnable& r) {
  constexpr double kBusy = 5, kGraph = 0.5;  // ms: in the end the GPU waits some us for the host
  const double ms = std::max(r.candidate.time_ms.value_or(r.alone_ms), 1e-4);
  const int wanted = std::max(static_cast<int>(kBusy / ms), 1);
  const LaunchGraph* graph = launches_of(r, std::clamp(static_cast<int>(kGraph / ms), 1, 200));
  int done = 0;
  while (done < wanted) {
    if (graph ? !graph->launch(gpu_.memory.stream()) : launch(r) != CUDNN_STATUS_SUCCESS) return 0;
    done += graph ? graph->count() : 1;
  }
  return gpu_.memory.synchronize().empty() ? done : 0;
}

std::optional<double> Bench::time_cold_ms(Runnable& r, int launches) {
  constexpr std::size_t kFlush = std::size_t{256} << 20;  // more than any GPU's caches
  if (!flush_.data()) {
    auto memory = gpu_.memory.allocate(kFlush);
    if (!memory) return std::nullopt;
    flush_ = std::move(*memory.value);
  }
  double sum = 0;
  for (int i = 0; i < launches; ++i) {
    // It takes longer than the host needs to put the launch behind it.
    gpu_.cuda.cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(flush_.data()), static_cast<unsigned char>(i), flush_.size(),
                              gpu_.memory.stream());
    const auto ms = gpu_.memory.time_ms([&] { return launch(r) == CUDNN_STATUS_SUCCESS; });
    if (!ms) return std::nullopt;
    sum += *ms;
  }
  return sum / launches;
}

}  // namespace convpin::cli
