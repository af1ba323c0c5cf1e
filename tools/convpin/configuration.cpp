#include "tools/convpin/configuration.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "shim/model/text.hpp"
#include "tools/convpin/command.hpp"

namespace convpin::cli {

void check_readable(const std::string& list, const std::string& named_by) {
  for (const std::string_view part : split(list, ':')) {
    const std::string file(part);
    std::error_code none;
    errno = 0;
    if (std::filesystem::is_directory(file, none)) errno = EISDIR;
    if (!file.empty() && (errno != 0 || access(file.c_str(), R_OK) != 0))
      throw BadUse(named_by + quote(file) + " can't be read: " + std::strerror(errno));
  }
}

void name_no_variable(Settings& settings) {
  constexpr std::string_view kVariable = "CONVPIN_CONFIG: ";
  for (std::string& error : settings.errors)
    if (error.starts_with(kVariable)) error.erase(0, kVariable.size());
}

Settings load_files(const std::vector<std::string>& files) {
  const std::string names = join(files, ":");
  check_readable(names, "");
  const auto environment = [&](const char* name) { return std::string_view(name) == "CONVPIN_CONFIG" ? names.c_str() : nullptr; };
  Settings settings = load_settings(environment, std::filesystem::current_path());
  name_no_variable(settings);
  return settings;
}

}  // namespace convpin::cli
