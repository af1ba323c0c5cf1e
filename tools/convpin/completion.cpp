// bash's completion, written from CLI11's tree: the commands, and each one's options. Everything else is a file.
#include "tools/convpin/command.hpp"

namespace convpin::cli {
namespace {

std::string options_of(const CLI::App& app) {
  std::string words;
  for (const CLI::Option* option : all_options(app))
    for (const std::string& name : option->get_lnames()) words += (words.empty() ? "--" : " --") + name;
  return words;
}

}  // namespace

std::string bash_completion(const CLI::App& app, std::span<const Command> commands) {
  std::string names, cases;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    names += (names.empty() ? "" : " ") + sub->get_name();
    cases += "    " + sub->get_name() + ") words='" + options_of(*sub) + "' ;;\n";
  }
  std::string programs;
  for (const Command& command : commands)
    if (command.takes_program) programs += (programs.empty() ? "" : "|") + std::string(command.name);

  return "# bash completion for convpin\n"
         "_convpin() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} words i\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W '" +
         names +
         " --help --version' -- \"$current\"))\n"
         "    return\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]} in\n"
         "    help) [ \"$COMP_CWORD\" -eq 2 ] && COMPREPLY=($(compgen -W '" +
         names + "' -- \"$current\")); return ;;\n" + cases +
         "    *) return ;;\n"
         "  esac\n"
         "  # Behind --, another program with completions of its own\n"
         "  case ${COMP_WORDS[1]} in " +
         programs +
         ")\n"
         "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
         "      if [ \"${COMP_WORDS[i]}\" = -- ] && declare -F _command_offset >/dev/null; then\n"
         "        _command_offset $((i + 1))\n"
         "        return\n"
         "      fi\n"
         "    done ;;\n"
         "  esac\n"
         "  [[ $current == -* ]] && COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "}\n"
         "complete -o default -o bashdefault -F _convpin convpin\n";
}

}  // namespace convpin::cli
