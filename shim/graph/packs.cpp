#include "shim/graph/packs.hpp"

#include <atomic>
#include <cstring>

#include "shim/process/runtime.hpp"

namespace convpin::graph {
namespace {

constexpr std::int64_t kMostTensors = 16;

struct Pack {
  cudnnBackendDescriptor_t descriptor = nullptr;
  int watch = 0;             // Runtime::watches when it was noted: what came between two watches was not seen
  std::uint32_t life = 0;    // as below, when it was noted
  bool plain = true;         // nothing overrides the graph's shapes
  std::int64_t ids_count = 0, pointers_count = 0;
  std::int64_t ids[kMostTensors];
  void* pointers[kMostTensors];
};
constexpr int kPacks = 64;   // programs that build their packs once hold one a layer
thread_local Pack packs[kPacks];
thread_local int oldest = 0;

// How many descriptors with an address like this one are gone. Another thread may destroy a pack, and a third one build
// another at the same address: what this thread knows of the address is then nothing.
std::atomic<std::uint32_t> ended[1 << 14];
std::atomic<std::uint32_t>& ended_like(cudnnBackendDescriptor_t descriptor) {
  return ended[(reinterpret_cast<std::uintptr_t>(descriptor) * 0x9E3779B97F4A7C15ull >> 40) % std::size(ended)];
}

Pack* find_pack(cudnnBackendDescriptor_t descriptor) {
  for (Pack& pack : packs)
    if (pack.descriptor == descriptor && pack.watch == runtime().watches.load(std::memory_order_relaxed) &&
        pack.life == ended_like(descriptor).load(std::memory_order_relaxed))
      return &pack;
  return nullptr;
}

}  // namespace

void note_variant_pack(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name, std::int64_t count,
                       const void* values) noexcept {
  if (!values || count < 1) return;
  Pack* pack = find_pack(descriptor);
  if (!pack) {
    pack = &packs[oldest];
    oldest = (oldest + 1) % kPacks;
    *pack = Pack{};
    pack->descriptor = descriptor;
    pack->watch = runtime().watches.load(std::memory_order_relaxed);
    pack->life = ended_like(descriptor).load(std::memory_order_relaxed);
  }
  if (count > kMostTensors) {
    pack->plain = false;  // more tensors than that: it stays unseen
    return;
  }
  const auto n = static_cast<std::size_t>(count);
  if (name == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) {
    std::memcpy(pack->ids, values, n * sizeof(std::int64_t));
    pack->ids_count = count;
  } else if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) {
    std::memcpy(pack->pointers, values, n * sizeof(void*));
    pack->pointers_count = count;
  } else if (name != CUDNN_ATTR_VARIANT_PACK_WORKSPACE) {
    pack->plain = false;
  }
}

void forget_variant_pack(cudnnBackendDescriptor_t descriptor) noexcept {
  if (Pack* pack = find_pack(descriptor)) *pack = Pack{};
  ended_like(descriptor).fetch_add(1, std::memory_order_relaxed);
}

bool read_variant_pack(cudnnBackendDescriptor_t descriptor, std::vector<std::int64_t>& ids, std::vector<void*>& pointers) {
  const Pack* pack = find_pack(descriptor);
  if (!pack || !pack->plain || pack->ids_count <= 0 || pack->ids_count != pack->pointers_count) return false;
  ids.assign(pack->ids, pack->ids + pack->ids_count);
  pointers.assign(pack->pointers, pack->pointers + pack->pointers_count);
  return true;
}

}  // namespace convpin::graph
