// What a subcommand is. main.cpp has the one table of them; help, completion and dispatch are made from it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace convpin::cli {

inline constexpr int kYes = 0, kNo = 1, kBadUse = 2;  // exit statuses; `no` is an answer, not a failure

// A sentence for the person, after which nothing can be done: exit status 2.
struct BadUse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Runs after the command line was read; gives the exit status.
using Action = std::function<int()>;
using Program = std::vector<std::string>;  // a program of the person's with its arguments

struct Command {
  const char* name;
  const char* summary;
  const char* example;           // whole lines, as they would be typed
  const char* no;                // when it ends with status 1, behind "Exit status: 1 "; nullptr: it never does
  // Declares the options. What they are read into belongs to the action. `program` is filled before it runs.
  Action (*declare)(CLI::App&, const Program& program);
  bool takes_program = false;    // the rest of the line, from the first word that is no option, is a program of the person's
};

Action declare_run(CLI::App&, const Program&);
Action declare_path(CLI::App&, const Program&);
Action declare_freeze(CLI::App&, const Program&);
Action declare_check(CLI::App&, const Program&);
Action declare_diff(CLI::App&, const Program&);
Action declare_report(CLI::App&, const Program&);
Action declare_list(CLI::App&, const Program&);
Action declare_device(CLI::App&, const Program&);
Action declare_replay(CLI::App&, const Program&);
Action declare_tune(CLI::App&, const Program&);
Action declare_bisect(CLI::App&, const Program&);
Action declare_doctor(CLI::App&, const Program&);

// A command's options, those of its option groups too.
std::vector<const CLI::Option*> all_options(const CLI::App&);
// "Exit status: 1 where ...", or nothing.
std::string exit_status_of(const Command&);
// The script that completes our words in bash, from the finished tree of commands.
std::string bash_completion(const CLI::App&, std::span<const Command>);
// The man page in roff, from the same.
std::string man_page(const CLI::App&, std::span<const Command>);

}  // namespace convpin::cli
