// What the stand-in remembers of an application's plans and variant packs, from Create to Destroy.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "tests/standin/graph.hpp"

namespace standin {

using Descriptor = cudnnBackendDescriptor_t;

struct VariantPack {
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  void* workspace = nullptr;
};

struct Watched {
  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::shared_ptr<VariantPack> pack;
  Descriptor engine_config = nullptr;  // of a plan,
  std::string json;                    // or what it is restored from
  std::shared_ptr<const Plan> plan;    // once executed
};

inline std::mutex watched_mutex;
inline std::unordered_map<Descriptor, Watched>& watched() {
  static auto* const map = new std::unordered_map<Descriptor, Watched>;  // outlives every destructor
  return *map;
}

template <typename Use>
void with_watched(Descriptor descriptor, Use use) {
  const std::lock_guard lock(watched_mutex);
  const auto found = watched().find(descriptor);
  if (found != watched().end()) use(found->second);
}

inline void watch(Descriptor descriptor, cudnnBackendDescriptorType_t type) {
  const std::lock_guard lock(watched_mutex);
  watched()[descriptor] = Watched{type, false, std::make_shared<VariantPack>(), nullptr, {}, nullptr};
}

inline void forget(Descriptor descriptor) {
  const std::lock_guard lock(watched_mutex);
  watched().erase(descriptor);
}

}  // namespace standin
