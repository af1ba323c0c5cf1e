// Numbers in sentences.
#pragma once

#include <concepts>
#include <string>

namespace convpin::cli {

// "1 rule", "3 rules"; `several` where the plural is another: counted(n, "rule makes", "rules make").
inline std::string counted(std::integral auto number, const std::string& one, const std::string& several = {}) {
  return std::to_string(number) + " " + (number == 1 ? one : several.empty() ? one + "s" : several);
}

}  // namespace convpin::cli
