// bisect: which rules of a pin file make a command fail.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <toml.hpp>

#include "shim/model/text.hpp"
#include "tools/convpin/command.hpp"
#include "tools/convpin/configuration.hpp"
#include "tools/convpin/counted.hpp"
#include "tools/convpin/files.hpp"
#include "tools/convpin/halving.hpp"
#include "tools/convpin/library.hpp"
#include "tools/convpin/pattern_words.hpp"
#include "tools/convpin/table.hpp"

namespace convpin::cli {
namespace {

using Value = toml::basic_value<toml::discard_comments, std::map, std::vector>;

constexpr int kSkip = 125;  // as git bisect run has it

Value parsed(const std::string& text, const std::string& name) {
  std::istringstream in(text);
  return toml::parse<toml::discard_comments, std::map, std::vector>(in, name);
}

bool stays(const std::string& key) { return key == "operation" || key == "problem" || key == "match" || key == "name"; }

// A pin file of which single rules can be taken out. A rule that is out stays in its place and leaves its problems to the
// framework: without it they would meet the rules behind it.
class PinFile {
 public:
  explicit PinFile(const std::string& path) {
    const Settings settings = load_files({path});
    if (!settings.errors.empty()) throw BadUse(join(settings.errors, "\n"));
    const std::string text = read_file(path);
    for (const std::string_view line : split(text, '\n')) lines_.emplace_back(line);
    root_ = parsed(text, path);
    if (!root_.contains("rule")) throw BadUse("'" + path + "' has no rules");
    for (const Value& rule : root_.at("rule").as_array()) {
      const toml::source_location where = rule.location();
      const auto at = path + ":" + std::to_string(where.line()) + ":" + std::to_string(where.column());
      names_.emplace_back();
      for (const Rule& read : settings.rules)
        if (read.source == at) names_.back() = {read.label(), to_text(read.problem), request_text(read)};
    }
  }
  std::size_t size() const { return names_.size(); }
  struct Name {
    std::string label, problem, asks;
  };
  const Name& name(std::size_t rule) const { return names_[rule]; }

  // The file with these rules in alone: as it is written, with what was taken out as comments. Where that does not come to
  // the same (rules in an inline array), its content without comments.
  std::string text(const std::vector<std::size_t>& in) const {
    std::vector<std::string> lines = lines_;
    Value root = root_;
    auto& rules = root.at("rule").as_array();
    for (std::size_t i = 0; i < rules.size(); ++i) {
      if (std::ranges::find(in, i) != in.end()) continue;
      take_out(rules[i], lines);
      auto& table = rules[i].as_table();
      std::erase_if(table, [](const auto& entry) { return !stays(entry.first); });
      table["algo"] = -1;
    }
    const std::string edited = join(lines, "\n");
    if (is(edited, root)) return edited;
    std::ostringstream out;
    out << root;
    return out.str();
  }

 private:
  static bool is(const std::string& text, const Value& content) {
    try {
      return parsed(text, "edited") == content;
    } catch (const std::exception&) {
      return false;
    }
  }

  // A value may go on over several lines: up to the next key, or the next table's header.
  static void take_out(const Value& rule, std::vector<std::string>& lines) {
    std::set<std::size_t> keys;
    for (const auto& [key, value] : rule.as_table()) keys.insert(value.location().line());
    for (const auto& [key, value] : rule.as_table()) {
      if (stays(key)) continue;
      std::size_t at = value.location().line();
      do {
        std::string& line = lines[at - 1];
        if (!trim(line).empty() && !trim(line).starts_with('#')) line.insert(0, "# ");
      } while (++at <= lines.size() && !keys.contains(at) && !trim(lines[at - 1]).starts_with('['));
    }
    lines[rule.location().line() - 1] += "\nalgo = -1";
  }

  std::vector<std::string> lines_;
  Value root_;
  std::vector<Name> names_;
};

// A folder of ours for the files that are tried.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "convpin-bisect-XXXXXX").string();
    if (!mkdtemp(pattern.data()))
      throw BadUse("no folder can be made in " + std::filesystem::temp_directory_path().string() + ": " + std::strerror(errno));
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Its exit status under this configuration; what it prints goes to stderr, since stdout is for the answer.
int status_under(const std::string& config, const Program& program, const std::string& library) {
  std::vector<char*> arguments;
  for (const std::string& argument : program) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw BadUse(std::string("no process can be started: ") + std::strerror(errno));
  if (child == 0) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    setenv("CONVPIN_CONFIG", config.c_str(), 1);
    setenv("LD_PRELOAD", preload_list(library).c_str(), 1);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int bisect(const std::string& file, const std::string& output, bool json, const Program& program) {
  if (program.empty()) throw BadUse("no command is given: convpin bisect --config pins.toml -- command [arguments]");
  const PinFile pins(file);
  const Folder folder;
  const std::string library = library_path(), config = folder.path("pins.toml");
  int last = 0;
  const auto test = [&](const std::vector<std::size_t>& rules) {
    write_output(config, pins.text(rules));
    last = status_under(config, program, library);
    if (last == 127 || last == 126) throw BadUse(quote(program[0]) + " can't be started, or ends with " + std::to_string(last) + " itself");
    const Verdict verdict = last == 0 ? Verdict::Good : last == kSkip ? Verdict::Skip : Verdict::Bad;
    say("with " + std::to_string(rules.size()) + " of " + counted(pins.size(), "rule") + ": " +
        (verdict == Verdict::Good   ? "good"
         : verdict == Verdict::Skip ? "skipped"
                                    : "bad (exit status " + std::to_string(last) + ")"));
    return verdict;
  };
  std::vector<std::size_t> all(pins.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  if (test({}) != Verdict::Good) {
    say("it fails or is skipped without any of the rules too, so they are not what is wrong");
    return kNo;
  }
  if (const Verdict verdict = test(all); verdict != Verdict::Bad) {
    say(verdict == Verdict::Skip ? "with all the rules it is skipped, so nothing can be found out"
                                 : "with all the rules it doesn't fail, so there is nothing to find");
    return kNo;
  }
  const Culprits culprits = find_culprits(pins.size(), test);
  Table table{{"rule", "problem", "asks"}, {}};
  for (const std::size_t rule : culprits.found)
    table.rows.push_back({pins.name(rule).label, pins.name(rule).problem, pins.name(rule).asks});
  print(json ? table.json().dump(2) + "\n" : table.text());
  say(counted(culprits.found.size(), "rule makes", "rules together make") + " it fail; " + counted(culprits.tests + 2, "run") +
      (culprits.minimal ? "" : "; some were skipped, so that fewer rules might do"));
  if (!output.empty()) {
    std::erase_if(all, [&](std::size_t rule) { return std::ranges::find(culprits.found, rule) != culprits.found.end(); });
    write_output(output, pins.text(all));
    say(output + " is the file without " + (culprits.found.size() == 1 ? "it" : "them"));
  }
  return kYes;
}

}  // namespace

Action declare_bisect(CLI::App& app, const Program& program) {
  auto file = std::make_shared<std::string>();
  app.add_option("--config", *file, "the pin file whose rules are suspected")->required()->type_name("FILE");
  const auto output = std::make_shared<std::string>();
  app.add_option("-o,--output", *output, "file for the rules without those that were found")->type_name("FILE");
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "the rules that were found as JSON");
  static std::vector<std::string> shown;  // for the help alone
  app.add_option("command", shown, "its exit status says how a run went: 0 good, 125 can't be said, anything else bad")->type_name("");
  return [file, output, json, &program] { return bisect(*file, *output, *json, program); };
}

}  // namespace convpin::cli
