// Names of log files, and the ranks that launchers tell their processes.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "config/settings.hpp"
#include "shim/model/text.hpp"

namespace convpin {
namespace {

using Getenv = std::function<const char*(const char*)>;

int first_number(const Getenv& getenv_, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* text = getenv_(name);
    const auto number = text ? integer_from<int>(text) : std::nullopt;
    if (number && *number >= 0) return *number;
  }
  return -1;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

// The name in "{NAME}", which `at` is moved behind; nothing where there is no such thing.
std::optional<std::string> braced_name(const std::string& pattern, std::size_t& at) {
  if (at >= pattern.size() || pattern[at] != '{') return std::nullopt;
  const std::size_t end = pattern.find('}', at);
  if (end == pattern.npos) return std::nullopt;
  const std::string name = pattern.substr(at + 1, end - at - 1);
  at = end + 1;
  return name;
}

}  // namespace

std::string expand_path(const std::string& pattern, const Getenv& getenv_) {
  std::string path;
  for (std::size_t at = 0; at < pattern.size();) {
    const char c = pattern[at++];
    if (c != '%' || at == pattern.size()) {
      path += c;
      continue;
    }
    switch (const char letter = pattern[at++]) {
      case '%':
        path += '%';
        break;
      case 'h':
        path += host_name();
        break;
      case 'p':
        path += std::to_string(getpid());
        break;
      case 'r':
        path += std::to_string(std::max(0, ranks_of(getenv_).global));
        break;
      case 'q':
        if (const auto name = braced_name(pattern, at)) {
          const char* value = getenv_(name->c_str());
          path += value ? value : "";
          break;
        }
        [[fallthrough]];
      default:
        path += {'%', letter};  // not ours: kept as it is
    }
  }
  return path;
}

Ranks ranks_of(const Getenv& getenv_) {
  return {first_number(getenv_, {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}),
          first_number(getenv_, {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                 "PMI_LOCAL_RANK", "SLURM_LOCALID"})};
}

}  // namespace convpin
