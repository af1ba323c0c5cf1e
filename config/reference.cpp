// The README's reference of settings, made from the one table.
#include <type_traits>

#include "config/settings.hpp"
#include "config/values.hpp"

namespace convpin {
namespace {

std::string default_text(const std::string& value) { return value.empty() ? "unset" : value; }
std::string default_text(bool value) { return value ? "true" : "false"; }
template <typename Enum>
  requires std::is_enum_v<Enum>
std::string default_text(Enum value) {
  return text_of(value);
}
std::string default_text(int value) { return std::to_string(value); }
std::string default_text(std::int64_t value) { return std::to_string(value); }
std::string default_text(double seconds) { return std::to_string(static_cast<int>(seconds)) + " s"; }

std::string code(const std::string& text) { return text.empty() ? "" : "`" + text + "`"; }

// A bar would end the table's cell.
std::string cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.insert(at, "\\");
  return text;
}

}  // namespace

std::string settings_reference() {
  std::string out = "| environment | TOML key | default | what it does |\n| --- | --- | --- | --- |\n";
#define CONVPIN_SETTING(member, type, fallback, env, toml, doc)                                       \
  {                                                                                                   \
    const type value = fallback;                                                                      \
    out += "| " + code(env) + " | " + code(toml) + " | " + default_text(value) + " | " + cell(doc) + " |\n"; \
  }
#include "config/settings.def"
#undef CONVPIN_SETTING
  return out;
}

}  // namespace convpin
