#include "tools/convpin/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace convpin::cli {

std::string bar_text(std::size_t done, std::size_t all, double seconds_left, std::size_t width) {
  const std::size_t of = std::max<std::size_t>(all, 1), full = std::min(width, width * done / of);
  return "[" + std::string(full, '#') + std::string(width - full, '-') + "] " + std::to_string(100 * done / of) + " %, " +
         std::to_string(static_cast<long>(seconds_left) + 1) + " s left";
}

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::clear() const {
  if (terminal_) std::fputs("\r\033[K", stderr);
}

void Progress::show(std::size_t done, std::size_t all, double seconds_left) const {
  if (!terminal_) return;
  std::fputs(("\r\033[K" + bar_text(done, all, seconds_left)).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace convpin::cli
