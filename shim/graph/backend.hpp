// The backend API's calls that we make ourselves, on the real library: reading configurations back,
// filling them, building scratch plans. Every function leaves the application's descriptors as they are.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "shim/hooks/real.hpp"
#include "shim/model/algorithm.hpp"

namespace convpin::graph {

// Owns one backend descriptor of ours.
class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(const Library& library, cudnnBackendDescriptorType_t type);
  Descriptor(Descriptor&& other) noexcept : library_(other.library_), raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  cudnnBackendDescriptor_t get() const { return raw_; }
  explicit operator bool() const { return raw_ != nullptr; }

 private:
  const Library* library_ = nullptr;
  cudnnBackendDescriptor_t raw_ = nullptr;
};

// Where a graph is to run: the caller's handle, or the device description it gave instead (cuDNN 9.8 and later).
struct Target {
  cudnnHandle_t handle = nullptr;
  cudnnBackendDescriptor_t device_prop = nullptr;
};

struct Notes {
  std::vector<int> numerical;  // cudnnBackendNumericalNote_t
  std::vector<int> behavior;   // cudnnBackendBehaviorNote_t
  bool has_numerical(int note) const;
  bool compiled_at_run_time() const;
};

// Engine and knobs of a finalized engine configuration; engine -1 if it can't be read.
EngineConfig read_config(const Library&, cudnnBackendDescriptor_t config);
Notes read_notes(const Library&, cudnnBackendDescriptor_t config);
// The operation graph of a finalized configuration, as a handle that outlives the application's own
// descriptor (measured on 9.19: ENGINE_OPERATION_GRAPH).
Descriptor graph_of_config(const Library&, cudnnBackendDescriptor_t config);

// The heuristics' list, or its first `most`: fills configurations of ours from `heuristics` (a finalized ENGINEHEUR). cuDNN
// makes each as it is asked for: 0.03 ms a configuration, over 1 ms for a list of 40 (9.19).
std::vector<Descriptor> read_results(const Library&, cudnnBackendDescriptor_t heuristics, std::int64_t most = INT64_MAX);
// The list for `graph` in another mode than the application asked for; empty where cuDNN refuses.
std::vector<Descriptor> query_heuristics(const Library&, cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode,
                                         const Target&);

// Sets engine and knobs of a fresh ENGINECFG descriptor (ours or the application's) and finalizes it.
cudnnStatus_t fill_config(const Library&, cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t graph,
                          const EngineConfig&, const Target&);

struct Plan {
  cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
  Descriptor descriptor;            // set where status is success
  std::int64_t workspace_bytes = 0;
  std::string reason;               // where it failed: cuDNN's own words, or the status' name
};
Plan build_plan(const Library&, cudnnBackendDescriptor_t config, const Target&);
// The same from engine and knobs.
Plan build_plan(const Library&, cudnnBackendDescriptor_t graph, const EngineConfig&, const Target&);

// A DEVICEPROP descriptor of ours with the same content, by its JSON text; empty if it can't be read.
Descriptor copy_of_properties(const Library&, cudnnBackendDescriptor_t from);

int engine_count(const Library&, cudnnBackendDescriptor_t graph);  // OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, 0 if unknown

// The plan's own configuration: what will run. And its workspace.
Descriptor config_of_plan(const Library&, cudnnBackendDescriptor_t plan);
std::int64_t workspace_of_plan(const Library&, cudnnBackendDescriptor_t plan);

// A finalized variant pack; where `status` is not success, it can't be executed with.
Descriptor make_pack(const Library&, const std::vector<std::int64_t>& ids, std::vector<void*> pointers, void* workspace,
                     cudnnStatus_t& status);
cudnnStatus_t execute(const Library&, cudnnHandle_t, cudnnBackendDescriptor_t plan, const std::vector<std::int64_t>& ids,
                      std::vector<void*> pointers, void* workspace);

}  // namespace convpin::graph
