// Labels: what the program calls its own module that runs on this thread ("layer3.0.conv2"). Only it can know.
#pragma once

#include <string>
#include <vector>

#include "shim/process/observing.hpp"

namespace convpin {

struct ProblemState;

struct Label {
  std::string name;            // made once for each name, never freed: compared by address
};

// From now on, for this thread. Null or empty: none.
void set_label(const char* name);
const Label* label_of_thread() noexcept;
const std::string& current_label() noexcept;   // its name, "" for none

// The problem was run on this thread: notes under which label, and logs it the first time.
void attach_label(ProblemState&) noexcept;
std::vector<std::string> labels_of(const ProblemState&);

void renew_labels_in_child() noexcept;         // after fork

}  // namespace convpin
