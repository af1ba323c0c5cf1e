// How far something long is: on a terminal a bar below what is said.
#pragma once

#include <cstddef>
#include <string>

namespace convpin::cli {

// "[#########-----------] 45 %, 12 s left", `width` signs in the bar.
std::string bar_text(std::size_t done, std::size_t all, double seconds_left, std::size_t width = 30);

class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  void clear() const;  // before anything else is said
  void show(std::size_t done, std::size_t all, double seconds_left) const;

 private:
  const bool terminal_;  // of stderr: elsewhere nothing is shown
};

}  // namespace convpin::cli
