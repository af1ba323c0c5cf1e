// Where words go: lines for people on stderr, records in the log file. Both from any thread, one write(2) each.
#pragma once

#include <string>

#include "config/settings.hpp"

namespace convpin {

// Writes to stderr, unless this process is not local rank 0. Never to stdout. errno and a broken pipe's
// SIGPIPE stay ours.
void say(const std::string& lines) noexcept;
void set_quiet(bool quiet) noexcept;  // other ranks than the local rank 0

// The log file, if one is asked for. Opened at the first record, again after fork (the path may hold %p).
class Log {
 public:
  bool wanted() const { return !pattern_.empty(); }
  void set_pattern(std::string pattern) { pattern_ = std::move(pattern); }
  // Appends one line. `header` makes the first record of each process. Returns without a word if the file can't be
  // written, after one message that says why.
  template <typename MakeHeader>
  void write(const std::string& record, MakeHeader&& header) noexcept {
    if (pattern_.empty()) return;
    try {
      if (opened_for_this_process()) append(header());
      append(record);
    } catch (...) {
    }
  }

 private:
  bool opened_for_this_process();  // true exactly once a process: the header comes now
  void append(const std::string& record) noexcept;
  std::string pattern_;
  int descriptor_ = -1;
  int process_ = 0;
  bool failed_ = false;            // said once
};

}  // namespace convpin
