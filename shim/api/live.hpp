// What the program set through the C API, and the rules that it makes.
#pragma once

#include <string>

namespace convpin {

// False where CONVPIN_DISABLE is set: then nothing can be.
bool enable();

// Each gives an error message, empty for none; then nothing has changed.
std::string set_algorithm(const std::string& operation, const std::string& text);
std::string set_rules(const std::string& toml);
std::string clear_algorithm(const std::string& operation);
std::string clear_everything();

// What was met so far, as JSON.
std::string problems_json();

void renew_live_in_child() noexcept;   // after fork

}  // namespace convpin
