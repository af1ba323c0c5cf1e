// From a descriptor's address to what we know of it. Reading takes no lock: every call of a framework's steady state
// (variant packs, executions) asks it once. Writing is for whoever holds the owner's lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace convpin::graph {

template <typename T>
class PointerMap {
 public:
  T* find(const void* key) const noexcept {
    const Table* table = table_.load(std::memory_order_acquire);
    if (!table) return nullptr;
    for (std::size_t i = slot_of(key, table->mask);; i = (i + 1) & table->mask) {
      const void* at = table->slots[i].key.load(std::memory_order_acquire);
      if (!at) return nullptr;
      if (at == key) return table->slots[i].value.load(std::memory_order_acquire);
    }
  }

  // Replaces what was there: addresses are reused at once, and a Destroy may pass by another way.
  T* insert(const void* key, T* value) {
    grow_if_full();
    Table* table = table_.load(std::memory_order_relaxed);
    Slot* free = nullptr;
    for (std::size_t i = slot_of(key, table->mask);; i = (i + 1) & table->mask) {
      Slot& slot = table->slots[i];
      const void* at = slot.key.load(std::memory_order_relaxed);
      if (at == key) return slot.value.exchange(value, std::memory_order_acq_rel);
      if (at == gone() && !free) free = &slot;
      if (at) continue;
      if (!free) {
        free = &slot;
        ++used_;
      }
      free->value.store(value, std::memory_order_release);
      free->key.store(key, std::memory_order_release);
      return nullptr;
    }
  }

  T* erase(const void* key) {
    Table* table = table_.load(std::memory_order_relaxed);
    if (!table) return nullptr;
    for (std::size_t i = slot_of(key, table->mask);; i = (i + 1) & table->mask) {
      Slot& slot = table->slots[i];
      const void* at = slot.key.load(std::memory_order_relaxed);
      if (!at) return nullptr;
      if (at != key) continue;
      T* value = slot.value.load(std::memory_order_relaxed);
      slot.key.store(gone(), std::memory_order_release);
      // Where a fresh slot follows, no search for a live key goes past this one: it is fresh again, and those before it.
      if (!table->slots[(i + 1) & table->mask].key.load(std::memory_order_relaxed))
        for (; table->slots[i].key.load(std::memory_order_relaxed) == gone(); i = (i - 1) & table->mask) {
          table->slots[i].key.store(nullptr, std::memory_order_release);
          --used_;
        }
      return value;
    }
  }

  template <typename Visit>
  void each(Visit&& visit) const {
    const Table* table = table_.load(std::memory_order_acquire);
    for (std::size_t i = 0; table && i <= table->mask; ++i) {
      const void* at = table->slots[i].key.load(std::memory_order_acquire);
      if (at && at != gone()) visit(*table->slots[i].value.load(std::memory_order_acquire));
    }
  }

 private:
  struct Slot {
    std::atomic<const void*> key{nullptr};
    std::atomic<T*> value{nullptr};
  };
  struct Table {
    explicit Table(std::size_t size) : mask(size - 1), slots(new Slot[size]) {}
    const std::size_t mask;
    std::unique_ptr<Slot[]> slots;
  };

  static const void* gone() { return reinterpret_cast<const void*>(std::uintptr_t{1}); }
  static std::size_t slot_of(const void* key, std::size_t mask) {
    return (reinterpret_cast<std::uintptr_t>(key) * 0x9E3779B97F4A7C15ull >> 32) & mask;
  }

  void grow_if_full() {
    Table* old = table_.load(std::memory_order_relaxed);
    if (old && used_ * 4 < (old->mask + 1) * 3) return;
    std::size_t live = 0;
    if (old) each([&](T&) { ++live; });
    std::size_t size = 256;
    while (live * 2 >= size) size *= 2;
    auto* fresh = new Table(size);
    used_ = live;
    for (std::size_t i = 0; old && i <= old->mask; ++i) {
      const void* key = old->slots[i].key.load(std::memory_order_relaxed);
      if (!key || key == gone()) continue;
      std::size_t to = slot_of(key, fresh->mask);
      while (fresh->slots[to].key.load(std::memory_order_relaxed)) to = (to + 1) & fresh->mask;
      fresh->slots[to].key.store(key, std::memory_order_relaxed);
      fresh->slots[to].value.store(old->slots[i].value.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    // The old table stays: a reader may still be in it. Erased slots are reused, so this is rare.
    table_.store(fresh, std::memory_order_release);
  }

  std::atomic<Table*> table_{nullptr};
  std::size_t used_ = 0;  // slots that are not fresh
};

}  // namespace convpin::graph
