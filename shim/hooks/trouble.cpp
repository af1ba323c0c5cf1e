#include "shim/hooks/trouble.hpp"

#include <atomic>
#include <exception>
#include <string>

#include "shim/process/output.hpp"

namespace convpin {

void in_trouble(const char* doing) noexcept {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  try {
    std::string why = "unknown error";
    try {
      throw;
    } catch (const std::exception& e) {
      why = e.what();
    } catch (...) {
    }
    say(std::string("convpin: warning: ") + doing + " failed inside convpin (" + why +
        "); the program runs on with the real library's own behaviour\n");
  } catch (...) {
  }
}

}  // namespace convpin
