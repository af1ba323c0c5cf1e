// How deeply a TOML text nests. toml11 reads by recursion: a few thousand open brackets, or dots in a key,
// would end the program we live in by using up its stack.
#include <algorithm>

#include "config/draft.hpp"

namespace convpin {
namespace {

// Behind the string that begins at `at`. One that does not end, ends with its line (or with the text).
std::size_t after_string(std::string_view text, std::size_t at) {
  const char mark = text[at];
  const std::string triple(3, mark);
  const bool lines = text.substr(at, 3) == triple;
  at += lines ? 3 : 1;
  for (; at < text.size(); ++at) {
    if (text[at] == '\\' && mark == '"') {
      ++at;
    } else if (lines ? text.substr(at, 3) == triple : text[at] == mark || text[at] == '\n') {
      return at + (lines ? 3 : 1);
    }
  }
  return text.size();
}

}  // namespace

int deepest_nesting(std::string_view text) {
  int deepest = 0, open = 0, dots = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = after_string(text, at);
      continue;
    }
    if (c == '#') at = std::min(text.find('\n', at), text.size() - 1);
    if (c == '[' || c == '{') ++open;
    if (c == ']' || c == '}') --open;
    if (c == '=' || c == ',' || c == '\n' || c == '#') dots = 0;
    if (c == '.') ++dots;
    deepest = std::max(deepest, open + dots);
    ++at;
  }
  return deepest;
}

}  // namespace convpin
