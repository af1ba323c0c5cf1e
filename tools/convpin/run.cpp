// run: becomes a program with the library preloaded. path: for those who preload it themselves.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "config/settings.hpp"
#include "shim/model/text.hpp"
#include "tools/convpin/command.hpp"
#include "tools/convpin/configuration.hpp"
#include "tools/convpin/counted.hpp"
#include "tools/convpin/files.hpp"
#include "tools/convpin/library.hpp"

namespace convpin::cli {

namespace fs = std::filesystem;

std::string library_path() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  std::vector<std::string> tried;
  for (const char* place : {CONVPIN_LIBRARY_PLACES}) {
    const fs::path path = (folder / place / "libconvpin.so").lexically_normal();
    if (fs::exists(path)) return path;
    tried.push_back(path.string());
  }
  throw BadUse("libconvpin.so is not where it belongs: " + join(tried, ", ") + " don't exist");
}

// The list that the dynamic loader reads; it is separated by colons and blanks, and knows no quoting.
std::string preload_list(const std::string& library) {
  if (library.find_first_of(": \t\n") != std::string::npos)
    throw BadUse("LD_PRELOAD can't hold the path " + quote(library) + ": no blank and no colon may be in it");
  const char* before = std::getenv("LD_PRELOAD");
  if (!before || !*before) return library;
  std::string list = library;
  std::string names = before;
  for (char& c : names)
    if (is_blank(c)) c = ':';
  for (const std::string_view name : split(names, ':'))
    if (!name.empty() && name != library) list += ":" + std::string(name);
  return list;
}

namespace {

struct RunOptions {
  std::string record;
  std::vector<std::string> config;
};

using Environment = std::function<const char*(const char*)>;

// A recording is to cost next to nothing, so the profile that comes with CONV_FWD_ALGO alone is left out of it; one that was
// asked for stays. Both are said, and so is a log that is not written.
void say_what_recording_changes(const Settings& recording, const Environment& without_record) {
  const Settings without = load_settings(without_record, fs::current_path());
  if (!without.log_path.empty() && without.log_path != recording.log_path)
    say("the log goes to " + quote(recording.log_path) + " (--record) alone, not to " + quote(without.log_path));
  if (!recording.profiling()) return;
  const auto names_no_algorithm = [&](const char* name) {
    return std::string_view(name).starts_with("CONV_") ? nullptr : without_record(name);
  };
  if (load_settings(names_no_algorithm, fs::current_path()).profiling()) {
    say("the profile is on, as the settings ask: each convolution's first execution takes longer, and the log has all candidates");
    return;
  }
  setenv("CONVPIN_PROFILE", "off", 1);
  say("recorded without a profile of all candidates, which takes time; CONVPIN_PROFILE=algorithms asks for it");
}

// What the program will read, read now: an error stops here and not after an hour.
void check_settings(const RunOptions& options) {
  const std::string config = join(options.config, ":");
  const Environment without_record = [&](const char* name) -> const char* {
    if (!options.config.empty() && std::string_view(name) == "CONVPIN_CONFIG") return config.c_str();
    return std::getenv(name);
  };
  const auto environment = [&](const char* name) -> const char* {
    if (!options.record.empty() && std::string_view(name) == "CONVPIN_LOG") return options.record.c_str();
    return without_record(name);
  };
  check_readable(config, "--config: ");
  Settings settings = load_settings(environment, fs::current_path());
  if (!options.config.empty()) name_no_variable(settings);
  if (!settings.errors.empty()) {
    for (const std::string& error : settings.errors) say(error);
    throw BadUse("the program was not started, since its configuration has " + counted(settings.errors.size(), "error"));
  }
  if (settings.disable && (!options.record.empty() || !options.config.empty()))
    throw BadUse("CONVPIN_DISABLE=1 is set: nothing would be pinned or recorded");
  if (!options.record.empty()) {
    // Known before the job has run for a day; a folder with a % in its name is only known in it.
    const std::string folder = fs::path(settings.log_path).parent_path();
    if (folder.find('%') == folder.npos && access(settings.log_path.c_str(), W_OK) != 0 && access(folder.c_str(), W_OK) != 0)
      throw BadUse("--record: nothing can be written in " + quote(folder) + ": " + std::strerror(errno));
    say_what_recording_changes(settings, without_record);
  }
  // As the settings have it: absolute, since the program may change its folder before its first convolution.
  if (!options.config.empty()) setenv("CONVPIN_CONFIG", settings.config_files.c_str(), 1);
  if (!options.record.empty()) setenv("CONVPIN_LOG", settings.log_path.c_str(), 1);
}

int become(const Program& program) {
  std::vector<char*> arguments;
  for (const std::string& argument : program) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int why = errno;
  say(quote(program[0]) + " can't be started: " + std::strerror(why));
  return why == ENOENT ? 127 : 126;  // as env(1) and the shells have it
}

}  // namespace

Action declare_run(CLI::App& app, const Program& program) {
  auto options = std::make_shared<RunOptions>();
  app.add_option("--record", options->record,
                 "write a log: what convolutions there are, how often, and what runs them; %h host, %p pid, %r rank in its name. "
                 "Without a profile of all candidates, unless the settings ask for one")
      ->type_name("FILE");
  app.add_option("--config", options->config, "TOML file with settings and rules (repeatable); comes in the place of CONVPIN_CONFIG")
      ->type_name("FILE")
      ->allow_extra_args(false);
  static std::vector<std::string> shown;  // for the help alone: main cuts the program off before the parser sees it
  app.add_option("program", shown, "the program with its arguments; convpin becomes it, so its exit status is the program's")
      ->type_name("");
  return [options, &program] {
    if (program.empty()) throw BadUse("no program is given: convpin run [options] -- program [arguments]");
    check_settings(*options);
    setenv("LD_PRELOAD", preload_list(library_path()).c_str(), 1);
    return become(program);
  };
}

Action declare_path(CLI::App&, const Program&) {
  return [] {
    print(library_path() + "\n");
    return kYes;
  };
}

}  // namespace convpin::cli
