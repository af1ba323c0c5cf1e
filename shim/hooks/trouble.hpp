// When something of ours fails: the host goes on with the real library, and one warning says so.
#pragma once

namespace convpin {

// Call from a catch block. `doing` completes "convpin: warning: ... failed".
void in_trouble(const char* doing) noexcept;

}  // namespace convpin
