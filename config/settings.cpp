// From the environment and the files that it names to Settings: who wins, what is said, and what an error
// stops.
#include "config/settings.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "config/draft.hpp"
#include "config/values.hpp"
#include "shim/model/text.hpp"

namespace convpin {
namespace {

using Getenv = std::function<const char*(const char*)>;

std::string variable(const Getenv& getenv_, const char* name) {
  const char* value = *name ? getenv_(name) : nullptr;
  return value ? value : "";
}

class Loader {
 public:
  Loader(const Getenv& environment, const std::string& cwd) : environment_(environment), cwd_(cwd) {}

  Settings load() {
    from_environment("disable", "CONVPIN_DISABLE", settings().disable);
    if (settings().disable) return std::move(settings());
#define CONVPIN_SETTING(member, type, fallback, env, toml, doc) \
  from_environment(#member, env, settings().member);
#include "config/settings.def"
#undef CONVPIN_SETTING
    read_files(settings().config_files, read_toml);
    read_files(settings().errata, read_errata);
    read_rules();
    check_log_path();
    // %q{VAR} may hold an absolute path.
    if (!expand_path(settings().log_path, environment_).starts_with('/'))
      settings().log_path = absolute_pattern(settings().log_path, cwd_);
    note_what_is_not_default();
    if (settings().errors.empty()) {
      say_what_is_shadowed();
      append(settings().notices, draft_.notices);
    } else {
      disarm();
    }
    return std::move(settings());
  }

 private:
  Settings& settings() { return draft_.settings; }

  static void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }

  template <typename T>
  void from_environment(const char* member, const char* name, T& to) {
    const std::string text = variable(environment_, name);
    if (text.empty() || draft_.given.contains(member)) return;
    draft_.given[member] = {name, ""};
    Parsed<T> parsed = setting_from<T>(member, text);
    if (parsed) {
      to = std::move(*parsed.value);
    } else {
      settings().errors.push_back(std::string(name) + ": " + parsed.error);
    }
  }

  // Reads the files that `names` holds, and makes the names absolute.
  void read_files(std::string& names, void (*read)(const std::string&, const std::string&, Draft&)) {
    const std::string list = names;
    std::vector<std::string> paths;
    for (const std::string_view part : split(list, ':')) {
      if (part.empty()) continue;
      paths.push_back(absolute_path(std::string(part), cwd_));
      read(std::string(part), paths.back(), draft_);
    }
    names = join(paths, ":");
  }

  // A placeholder that is not known would become part of a file's name without a word.
  void check_log_path() {
    const std::string& path = settings().log_path;
    for (std::size_t at = path.find('%'); at != std::string::npos; at = path.find('%', at + 2)) {
      const char letter = at + 1 < path.size() ? path[at + 1] : ' ';
      const bool variable = letter == 'q' && path.substr(at + 2, 1) == "{" && path.find('}', at) != std::string::npos;
      if (variable || std::string_view("hpr%").find(letter) != std::string_view::npos) continue;
      const auto given = draft_.given.find("log_path");
      settings().errors.push_back((given == draft_.given.end() ? "log.path" : given->second.name) + ": '" + path.substr(at, 2) +
                                  "' in '" + path + "' is not known: allowed are %h, %p, %r, %q{VARIABLE} and %%");
      return;
    }
  }

  struct Named {
    Operation operation;
    const char* variable;
    const std::string& text;
  };
  // The variables that name an algorithm for every convolution of one operation. Their rules come first.
  std::array<Named, 3> algorithm_variables() {
    return {{{Operation::Forward, "CONV_FWD_ALGO", settings().forward_algorithm},
             {Operation::BackwardData, "CONV_BWD_DATA_ALGO", settings().backward_data_algorithm},
             {Operation::BackwardFilter, "CONV_BWD_FILTER_ALGO", settings().backward_filter_algorithm}}};
  }

  void read_algorithm(const Named& named, std::vector<Rule>& rules) {
    if (named.text.empty()) return;
    Parsed<std::vector<Request>> requests = parse_requests(named.operation, named.text);
    if (!requests) {
      settings().errors.push_back(std::string(named.variable) + ": " + requests.error);
      return;
    }
    Rule& rule = rules.emplace_back();
    rule.source = named.variable;
    rule.operation = named.operation;
    rule.requests = std::move(*requests.value);
    rule.on_unsupported = settings().on_unsupported;
    rule.workspace_limit = limit_of(settings().workspace_limit);
    settings().notices.push_back("convpin: " + words_for(named.operation) + " algorithm requested: " + request_text(rule));
    if (!rule.request()) return;
    usual_level_ = ProfileLevel::Algorithms;
    if (!draft_.given.contains("profile_level")) settings().profile_level = usual_level_;
  }

  // All rules, in their order, each with what the settings say where it is silent.
  void read_rules() {
    std::vector<Rule> rules;
    for (const Named& named : algorithm_variables()) read_algorithm(named, rules);
    settings().rules = std::move(rules);
    for (DraftRule& draft : draft_.rules) settings().rules.push_back(finished(std::move(draft), settings()));
  }

  void note_what_is_not_default() {
    const Settings usual;
    std::string echo;
    const auto note = [&](const char* member, const std::string& value, const std::string& fallback) {
      const auto given = draft_.given.find(member);
      if (given == draft_.given.end() || value == fallback) return;
      const std::string& name = given->second.name;
      settings().non_default.emplace_back(name, value);
      if (!name.starts_with("CONV_")) echo += " " + name + "=" + one_line(value, 1000);
    };
    const auto usual_of = [&](const char* member, const auto& fallback) {
      return std::string_view(member) == "profile_level" ? text_of(usual_level_) : text_of(fallback);
    };
#define CONVPIN_SETTING(member, type, fallback, env, toml, doc) \
  note(#member, text_of(settings().member), usual_of(#member, usual.member));
#include "config/settings.def"
#undef CONVPIN_SETTING
    if (!echo.empty()) settings().notices.push_back("convpin: settings:" + echo);
  }

  void say_what_is_shadowed() {
    for (const Named& named : algorithm_variables()) {
      if (named.text.empty()) continue;
      for (const auto& [file, rules] : draft_.rules_of) {
        const auto count = std::ranges::count(rules, named.operation);
        if (count > 0)
          settings().notices.push_back(std::string("convpin: ") + named.variable + " comes before " + std::to_string(count) + " " +
                                       words_for(named.operation) + (count == 1 ? " rule of " : " rules of ") + file);
      }
    }
  }

  // With an error the program runs as if nothing had been asked.
  void disarm() {
    settings().rules.clear();
    settings().denials.clear();
    settings().on_miss = OnMiss::Leave;
    settings().profile_level = ProfileLevel::Off;
    std::erase_if(settings().notices,
                  [](const std::string& line) { return !line.starts_with("convpin: settings:"); });
  }

  const Getenv& environment_;
  const std::string& cwd_;
  Draft draft_;
  ProfileLevel usual_level_ = ProfileLevel::Off;
};

}  // namespace

bool Settings::idle() const {
  return disable || (rules.empty() && denials.empty() && on_miss == OnMiss::Leave && errors.empty() && !profiling() && log_path.empty() && !nvtx);
}

Settings load_settings(const Getenv& getenv_, const std::string& cwd) {
  Settings failed;
  try {
    return Loader(getenv_, cwd).load();
  } catch (const std::exception& e) {
    failed.errors.push_back(std::string("the settings can't be read: ") + e.what());
  } catch (...) {
    failed.errors.emplace_back("the settings can't be read");
  }
  return failed;
}

}  // namespace convpin
