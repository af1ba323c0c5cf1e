// convpin: makes choices out of a program's log, files out of choices, and something to look at out of both.
#include <algorithm>
#include <exception>
#include <iostream>

#include "commit.hpp"  // made by commit.cmake
#include "tools/convpin/command.hpp"
#include "tools/convpin/files.hpp"

namespace convpin::cli {
namespace {

constexpr Command kCommands[] = {
    {"run", "starts a program with the library preloaded",
     "convpin run --record run.jsonl -- python train.py\n"
     "convpin run --config pins.toml python train.py --epochs 3",
     nullptr, declare_run, true},
    {"path", "prints the library's path, for LD_PRELOAD",
     "LD_PRELOAD=$(convpin path) CONV_FWD_ALGO=1 python train.py",
     nullptr, declare_path},
    {"list", "which algorithms and engines support a problem, without running anything",
     "convpin list \"x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1\"\n"
     "convpin list -n 32 -c 64 -H 56 -W 56 -k 64 -y 3 -x 3 -p 1 -q 1 --dtype half --layout nhwc\n"
     "convpin list --log run.jsonl --device h200 --sm 80",
     "where a problem is supported by no engine", declare_list},
    {"replay", "runs a problem with any candidate; prints time and error",
     "convpin replay \"x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1\" --candidate eng38 --candidate 7\n"
     "convpin replay --log run.jsonl --log pins.toml.jsonl\n"
     "convpin replay --log run.jsonl --cudnn /opt/cudnn-9.19 --cudnn /opt/cudnn-9.22\n"
     "convpin replay \"x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1\" --candidate eng38_k2=1 --repro python > repro.py",
     "where no candidate of a problem ran; of two cuDNNs, where something speaks against the second, or nothing ran under either",
     declare_replay},
    {"bisect", "finds the rules of a pin file that make a command fail",
     "convpin bisect --config pins.toml -o good.toml -- ./train_and_check.sh",
     "where no rule is to blame: the command fails without them, or doesn't fail with them", declare_bisect, true},
    {"doctor", "tells whether a program can be pinned, and what to do where it can't",
     "convpin doctor python3\n"
     "convpin doctor ./my_program",
     "where something can't be pinned", declare_doctor, true},
    {"device", "writes cuDNN's description of this GPU, for convpin list elsewhere",
     "convpin device -o h200.json",
     nullptr, declare_device},
    {"freeze", "rules that name, for every problem of a log, what ran",
     "convpin freeze run.jsonl -o pins.toml",
     "where no convolution ran", declare_freeze},
    {"tune", "times every engine for every problem of a log; rules for what is best",
     "convpin tune run.jsonl -o pins.toml\n"
     "convpin tune --refresh pins.toml -o pins.toml\n"
     "convpin tune run.jsonl -o pins.toml --generalize\n"
     "convpin tune run.jsonl -o pins.toml --knobs --budget \"1 h\" --workspace-limit \"256 MiB\"",
     "where nothing was tuned", declare_tune},
    {"check", "validates a configuration; against a log, says what each rule would match",
     "convpin check pins.toml\n"
     "convpin check pins.toml --log run.jsonl\n"
     "convpin check pins.toml --device \"NVIDIA H200\" --cudnn 9.22.0",
     "where the configuration has an error, or rules that are stale", declare_check},
    {"diff",
     "what differs between logs (problems that appear, vanish, or changed what runs them), or between pin files",
     "convpin diff before.jsonl after.jsonl\n"
     "convpin diff rank-*.jsonl",
     "where choices differ", declare_diff},
    {"report", "a page about a log: what ran, what each candidate costs, and what the pins gained",
     "convpin report run.jsonl -o report.html\n"
     "convpin report run.jsonl --csv -o run.csv",
     nullptr, declare_report},
};

constexpr const char* kOverview = "Shows and sets which algorithm or engine of cuDNN runs each convolution of an unmodified program.\n";

constexpr const char* kWorkflow =
    "Exit status: 0; 1 where the answer is no; 2 where the command could not do what was asked.\n"
    "convpin help COMMAND, or convpin COMMAND --help, says more.";

std::string footer_of(const Command& command) {
  std::string text = exit_status_of(command);
  text += text.empty() ? "Example:\n  " : "\n\nExample:\n  ";
  for (const char* c = command.example; *c; ++c) text += *c == '\n' ? std::string("\n  ") : std::string(1, *c);
  return text;
}

// Everything behind our own options belongs to the person's program, whatever it looks like: it never reaches the parser.
Program cut_program(std::vector<std::string>& arguments, const CLI::App& command) {
  std::size_t at = 1;
  for (; at < arguments.size() && arguments[at].starts_with('-') && arguments[at] != "--"; ++at) {
    const CLI::Option* option = command.get_option_no_throw(arguments[at]);
    if (option && option->get_items_expected_max() > 0) ++at;
  }
  if (at >= arguments.size()) return {};
  Program program(arguments.begin() + static_cast<std::ptrdiff_t>(at + (arguments[at] == "--")), arguments.end());
  arguments.resize(at);
  return program;
}

int complain(const std::string& what) {
  std::cerr << "convpin: " << what << '\n';
  return kBadUse;
}

int dispatch(std::vector<std::string> arguments) {
  CLI::App app(kOverview, "convpin");
  app.footer(kWorkflow);
  app.require_subcommand(1);
  const std::string commit = CONVPIN_COMMIT;
  app.set_version_flag("--version", "convpin " CONVPIN_VERSION + (commit.empty() ? "" : " (" + commit + ")"));

  Program program;
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    sub->footer(footer_of(command));
    Action action = command.declare(*sub, program);
    actions.emplace_back(sub, std::move(action));
    if (!arguments.empty() && arguments[0] == command.name && command.takes_program) program = cut_program(arguments, *sub);
  }
  std::string topic;
  bool man = false;
  CLI::App* help = app.add_subcommand("help", "says what convpin or one of its commands does");
  help->add_option("command", topic, "one of the commands");
  help->add_flag("--man", man, "all of it as a man page, in roff");
  help->footer("Example:\n  convpin help run\n  convpin help --man | man -l -");
  actions.emplace_back(help, [&] {
    const auto print_help = [](const CLI::App& of, const std::string& name) {
      // Not App::help, which would turn to the subcommand that was used: this one.
      print(of.get_formatter()->make_help(&of, name, CLI::AppFormatMode::Normal));
      return kYes;
    };
    if (man) return print(man_page(app, kCommands)), kYes;
    if (topic.empty()) return print_help(app, "convpin");
    for (const CLI::App* sub : app.get_subcommands(nullptr))
      if (sub->get_name() == topic) return print_help(*sub, "convpin " + topic);
    throw BadUse("there is no command '" + topic + "'; convpin help lists them");
  });
  CLI::App* completion = app.add_subcommand("completion", "prints the script that completes convpin's words in bash");
  completion->footer("Example:\n  source <(convpin completion)");
  actions.emplace_back(completion, [&] {
    print(bash_completion(app, kCommands));
    return kYes;
  });

  const auto known = [&](const CLI::App* sub) { return sub->get_name() == arguments[0]; };
  if (!arguments.empty() && !arguments[0].starts_with('-') && std::ranges::none_of(app.get_subcommands(nullptr), known))
    return complain("there is no command '" + arguments[0] + "'; convpin help lists them");
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(std::move(reversed));
  } catch (const CLI::Success& e) {  // --help, --version
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    const auto used = app.get_subcommands();
    const std::string name = used.empty() ? "" : " " + used.front()->get_name();
    return complain(std::string(e.what()) + "\nconvpin" + name + " --help says what is allowed");
  }
  for (const auto& [sub, action] : actions)
    if (sub->parsed()) return action();
  return kBadUse;
}

}  // namespace
}  // namespace convpin::cli

int main(int argc, char** argv) {
  try {
    return convpin::cli::dispatch({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    return convpin::cli::complain(e.what());
  }
}
