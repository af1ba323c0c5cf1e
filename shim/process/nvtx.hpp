// NVTX ranges around convolutions, for timelines (Nsight Systems, torch.profiler): CONVPIN_NVTX=1.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "shim/process/labels.hpp"
#include "shim/process/observing.hpp"

namespace convpin {

struct Problem;

// The texts of one way to run one problem, each made once: one for each label.
class NvtxTexts {
 public:
  NvtxTexts() = default;
  NvtxTexts(const NvtxTexts&) = delete;
  NvtxTexts& operator=(const NvtxTexts&) = delete;
  ~NvtxTexts();
  const char* find(const Label*) const noexcept;
  const char* add(const Label*, const Problem&, const std::string& ran);

 private:
  struct Text {
    const Label* label;
    std::string text;
    Text* next;
  };
  std::atomic<Text*> first_{nullptr};
};

// False where this library was built without NVTX's header.
bool switch_ranges_on() noexcept;
void push_range(const char* text) noexcept;
void pop_range() noexcept;

// While it lives, this thread is in the range "convpin: <problem> <what runs> [label]". `ran` is called where the text is not
// made yet.
class NvtxRange {
 public:
  template <typename Ran>
  NvtxRange(NvtxTexts& texts, const Problem& problem, Ran&& ran) noexcept {
    if (observing(kRanges)) [[unlikely]]
      push(texts, problem, std::forward<Ran>(ran));
  }
  ~NvtxRange() {
    if (pushed_) [[unlikely]]
      pop_range();
  }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  template <typename Ran>
  [[gnu::noinline]] void push(NvtxTexts& texts, const Problem& problem, Ran&& ran) noexcept {
    try {
      const char* text = texts.find(label_of_thread());
      push_range(text ? text : texts.add(label_of_thread(), problem, ran()));
      pushed_ = true;
    } catch (...) {  // out of memory: no range
    }
  }
  bool pushed_ = false;
};

}  // namespace convpin
