// One convolution whose plan (or legacy algorithm) is found once and then executed again and again, as frameworks do.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "tools/convclient/conv_graph.hpp"
#include "tools/convclient/data.hpp"
#include "tools/convclient/legacy_descriptors.hpp"
#include "tools/convclient/plan.hpp"
#include "tools/convclient/run.hpp"

namespace clients {

class KeptConv {
 public:
  KeptConv(const convpin::Problem& problem, bool legacy) : problem_(problem), legacy_(legacy), device_(convclient::Device::open()) {
    if (!device_) {
      fail(device_.error);
    } else if (cudnnCreate(&handle_) != CUDNN_STATUS_SUCCESS) {
      fail("cudnnCreate failed");
    } else {
      cudnnSetStream(handle_, device_->stream());
      auto load = convclient::Workload::make(problem, {}, *device_);
      load ? void(load_.emplace(std::move(*load.value))) : fail(load.error);
    }
  }

  const std::string& error() const { return error_; }

  // Finds plan or algorithm, at first and once more: as a framework does for a new shape.
  void build() { legacy_ ? find_algorithm() : build_plan(); }
  // Executes another one's plan, on data of its own.
  void share(const KeptConv& other) {
    shared_ = &other.plan_.descriptor;
    take_workspace(static_cast<std::size_t>(other.plan_.workspace));
  }

  // The output's checksum, or "failed: <status>: <cuDNN's words>". `kept`: with a variant pack that was made at the first
  // call that said so.
  std::string run(bool kept = false) {
    load_->reset_output();
    convclient::Outcome outcome;
    cudnnStatus_t status = legacy_ ? run_legacy() : run_graph(kept);
    if (status != CUDNN_STATUS_SUCCESS) {
      char words[256] = {};
      cudnnGetLastErrorString(words, sizeof words);
      return "failed: " + std::to_string(status) + ": " + words;
    }
    const std::string wrong = load_->run("read", [] { return CUDNN_STATUS_SUCCESS; }, read_only(), outcome);
    char text[32];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(*outcome.checksum));
    return wrong.empty() ? text : wrong;
  }

  void keep_pack() { pack_ = make_pack(); }

 private:
  void fail(std::string why) { error_ = std::move(why); }
  // Workload::run resets the output before its first "execution": not with a beta.
  static convclient::Options read_only() {
    convclient::Options options;
    options.repeat = 0;
    return options;
  }

  void build_plan() {
    graph_ = convclient::build_conv_graph(problem_, 0, handle_);
    if (!graph_.graph.ok()) return fail(graph_.graph.error());
    std::string why;
    configs_ = convclient::ask_heuristics(graph_.graph, CUDNN_HEUR_MODE_INSTANT, {handle_}, why);
    for (auto& config : configs_) {
      plan_ = convclient::make_plan(config, {handle_});
      if (plan_.descriptor.ok()) return take_workspace(static_cast<std::size_t>(plan_.workspace));
    }
    fail("no plan: " + why);
  }

  convclient::Descriptor make_pack() const {
    const std::array<std::int64_t, 4> ids{convclient::kX, convclient::kW, convclient::kY, convclient::kBias};
    const std::array<void*, 4> pointers{load_->x(), load_->w(), load_->y(), load_->bias()};
    const std::int64_t count = load_->bias() ? 4 : 3;
    void* workspace = workspace_.data();
    convclient::Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack");
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data())
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data())
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace)
        .finalize();
    return pack;
  }

  cudnnStatus_t run_graph(bool kept) {
    const cudnnBackendDescriptor_t plan = (shared_ ? *shared_ : plan_.descriptor).raw();
    if (!kept) {
      const convclient::Descriptor pack = make_pack();
      return cudnnBackendExecute(handle_, plan, pack.raw());
    }
    if (!pack_.raw()) keep_pack();
    return cudnnBackendExecute(handle_, plan, pack_.raw());
  }

  // One code for the three operations: what `forward`, `data` or `filter` get is the order of their arguments.
  template <typename Forward, typename Data, typename Filter>
  cudnnStatus_t by_operation(Forward forward, Data data, Filter filter) const {
    switch (problem_.operation) {
      case convpin::Operation::BackwardData: return data();
      case convpin::Operation::BackwardFilter: return filter();
      default: return forward();
    }
  }

  void find_algorithm() {
    if (!descriptors_) descriptors_.emplace(problem_, 0);
    const convclient::Descriptors& d = *descriptors_;
    int count = 0;
    std::size_t bytes = 0;
    const auto take = [&](cudnnStatus_t status, const auto& result) {
      algorithm_ = result.algo;
      bytes = result.memory;
      return status;
    };
    const cudnnStatus_t status = by_operation(
        [&] {
          cudnnConvolutionFwdAlgoPerf_t r{};
          return take(cudnnGetConvolutionForwardAlgorithm_v7(handle_, d.x.get(), d.w.get(), d.convolution.get(), d.y.get(), 1, &count, &r), r);
        },
        [&] {
          cudnnConvolutionBwdDataAlgoPerf_t r{};
          return take(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle_, d.w.get(), d.y.get(), d.convolution.get(), d.x.get(), 1, &count, &r), r);
        },
        [&] {
          cudnnConvolutionBwdFilterAlgoPerf_t r{};
          return take(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle_, d.x.get(), d.y.get(), d.convolution.get(), d.w.get(), 1, &count, &r), r);
        });
    if (status != CUDNN_STATUS_SUCCESS || count < 1) return fail("no algorithm");
    take_workspace(bytes);
  }

  cudnnStatus_t run_legacy() const {
    const convclient::Descriptors& d = *descriptors_;
    const float one = 1, zero = 0;
    void* space = workspace_.data();
    const std::size_t bytes = workspace_.size();
    return by_operation(
        [&] {
          return cudnnConvolutionForward(handle_, &one, d.x.get(), load_->x(), d.w.get(), load_->w(), d.convolution.get(),
                                         static_cast<cudnnConvolutionFwdAlgo_t>(algorithm_), space, bytes, &zero, d.y.get(), load_->y());
        },
        [&] {
          return cudnnConvolutionBackwardData(handle_, &one, d.w.get(), load_->w(), d.y.get(), load_->y(), d.convolution.get(),
                                              static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm_), space, bytes, &zero, d.x.get(), load_->x());
        },
        [&] {
          return cudnnConvolutionBackwardFilter(handle_, &one, d.x.get(), load_->x(), d.y.get(), load_->y(), d.convolution.get(),
                                                static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm_), space, bytes, &zero, d.w.get(),
                                                load_->w());
        });
  }

  void take_workspace(std::size_t bytes) {
    auto buffer = device_->allocate(bytes);
    if (!buffer) return fail(buffer.error);
    workspace_ = std::move(*buffer.value);
  }

  convpin::Problem problem_;
  bool legacy_;
  convpin::Parsed<convclient::Device> device_;
  cudnnHandle_t handle_ = nullptr;
  std::optional<convclient::Workload> load_;
  convclient::Buffer workspace_;
  std::string error_;
  convclient::ConvGraph graph_;
  std::vector<convclient::Descriptor> configs_;
  convclient::Plan plan_;
  const convclient::Descriptor* shared_ = nullptr;
  convclient::Descriptor pack_;
  std::optional<convclient::Descriptors> descriptors_;
  int algorithm_ = -1;
};

}  // namespace clients
