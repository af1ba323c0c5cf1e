#include "shim/process/nvtx.hpp"

#include "shim/model/problem.hpp"

#if __has_include(<nvtx3/nvToolsExt.h>)
#define CONVPIN_HAS_NVTX 1
#include <nvtx3/nvToolsExt.h>
#else
#define CONVPIN_HAS_NVTX 0
#endif

namespace convpin {

NvtxTexts::~NvtxTexts() {
  for (Text* text = first_.load(); text;) delete std::exchange(text, text->next);
}

const char* NvtxTexts::find(const Label* label) const noexcept {
  for (const Text* text = first_.load(std::memory_order_acquire); text; text = text->next)
    if (text->label == label) return text->text.c_str();
  return nullptr;
}

const char* NvtxTexts::add(const Label* label, const Problem& problem, const std::string& ran) {
  auto* made = new Text{label, "convpin: " + to_text(problem) + " " + ran + (label ? " [" + label->name + "]" : ""), first_.load()};
  while (!first_.compare_exchange_weak(made->next, made)) {
  }  // another thread's of the same label stays behind it
  return made->text.c_str();
}

#if CONVPIN_HAS_NVTX
// NVTX looks for a tool at its first call, and is a null check where there is none.
bool switch_ranges_on() noexcept {
  observing_.fetch_or(kRanges, std::memory_order_relaxed);
  return true;
}
void push_range(const char* text) noexcept { nvtxRangePushA(text); }
void pop_range() noexcept { nvtxRangePop(); }
#else
bool switch_ranges_on() noexcept { return false; }
void push_range(const char*) noexcept {}
void pop_range() noexcept {}
#endif

}  // namespace convpin
