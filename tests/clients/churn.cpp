// A program that does everything at once: threads that build plans, run them and let them go, threads that run one plan
// which they share, descriptors whose addresses come again as another kind, and forks in the middle of it.
//
//   run: LD_LIBRARY_PATH=<libcudnn's folder> churn [ROUNDS]
//
// Two lines: whether all outputs were right and all children ended well, and how many convolutions ran.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/clients/one_conv.hpp"
#include "tools/convclient/conv_graph.hpp"
#include "tools/convclient/plan.hpp"

namespace {

using convclient::Descriptor;

std::atomic<int> wrong{0}, executed{0};

// One thread's way to the shared plan: its own handle, tensors and workspace.
class Runner {
 public:
  explicit Runner(const convpin::Problem& problem) : device_(convclient::Device::open()) {
    cudnnCreate(&handle_);
    cudnnSetStream(handle_, device_->stream());
    load_ = convclient::Workload::make(problem, options_, *device_);
    workspace_ = device_->allocate(1 << 24);
  }
  ~Runner() { cudnnDestroy(handle_); }
  cudnnHandle_t handle() const { return handle_; }

  // The output's checksum, 0 for a failure.
  std::uint64_t run(Descriptor& plan) {
    convclient::Outcome outcome;
    const auto launch = [&] {
      const std::array<std::int64_t, 3> ids{convclient::kX, convclient::kW, convclient::kY};
      const std::array<void*, 3> pointers{load_->x(), load_->w(), load_->y()};
      void* room = workspace_->data();
      Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack");
      pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, ids.data())
          .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, pointers.data())
          .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &room)
          .finalize();
      return cudnnBackendExecute(handle_, plan.raw(), pack.raw());
    };
    const std::string error = load_->run("cudnnBackendExecute", launch, options_, outcome);
    return error.empty() ? ++executed, *outcome.checksum : 0;
  }

 private:
  convclient::Options options_;
  convpin::Parsed<convclient::Device> device_;
  convpin::Parsed<convclient::Workload> load_;
  convpin::Parsed<convclient::Buffer> workspace_;
  cudnnHandle_t handle_ = nullptr;
};

convclient::Plan first_plan(const convpin::Problem& problem, cudnnHandle_t handle) {
  const convclient::ConvGraph g = convclient::build_conv_graph(problem, 0, handle);
  std::string error;
  for (const Descriptor& config : convclient::ask_heuristics(g.graph, CUDNN_HEUR_MODE_INSTANT, {handle}, error))
    if (convclient::Plan plan = convclient::make_plan(config, {handle}); plan.descriptor.ok()) return plan;
  return {};
}

// Kinds of descriptors, half made and let go: the next has the address of the one before.
void make_and_drop() {
  constexpr cudnnBackendDescriptorType_t types[] = {
      CUDNN_BACKEND_TENSOR_DESCRIPTOR,   CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
      CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR};
  for (const auto type : types) {
    cudnnBackendDescriptor_t d = nullptr;
    if (cudnnBackendCreateDescriptor(type, &d) != CUDNN_STATUS_SUCCESS) continue;
    const std::int64_t id = 'x';
    if (type == CUDNN_BACKEND_TENSOR_DESCRIPTOR) cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    if (type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) cudnnBackendFinalize(d);  // it lacks everything
    cudnnBackendDestroyDescriptor(d);
  }
}

void build(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    const auto api = i % 3 == 2 ? convclient::Api::Legacy : convclient::Api::Graph;
    if (!clients::one_conv(api).good) ++wrong;
    ++executed;
    make_and_drop();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  const auto problem = *convpin::parse_problem(clients::kProblem);
  Runner main_runner(problem);
  convclient::Plan shared = first_plan(problem, main_runner.handle());
  const std::uint64_t expected = main_runner.run(shared.descriptor);

  std::atomic<bool> building{true};
  std::vector<std::thread> builders, runners;
  for (int i = 0; i < 3; ++i) builders.emplace_back(build, rounds);
  for (int i = 0; i < 2; ++i)
    runners.emplace_back([&] {
      Runner mine(problem);
      while (building)
        if (mine.run(shared.descriptor) != expected) ++wrong;
    });
  int lost = 0;
  for (int i = 0; i < rounds; ++i) {
    const pid_t child = fork();
    if (child == 0) i % 2 ? _exit(0) : std::exit(0);
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0) ++lost;
    if (main_runner.run(shared.descriptor) != expected) ++wrong;
  }
  for (std::thread& thread : builders) thread.join();
  building = false;
  for (std::thread& thread : runners) thread.join();
  std::printf("outputs: %s, children: %s\n", wrong == 0 && expected != 0 ? "right" : "wrong", lost == 0 ? "well" : "lost");
  std::printf("executed: %d\n", executed.load());
  return wrong == 0 && lost == 0 ? 0 : 1;
}
