// The man page, written from CLI11's tree as help is: the commands with their options and examples.
#include "tools/convpin/command.hpp"

namespace convpin::cli {
namespace {

// As text that roff leaves alone: no escapes, no requests.
std::string plain(const std::string& text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    line_begins = c == '\n';
    out += c == '\\'   ? "\\e"
           : c == '-'  ? "\\-"
           : c == '\'' ? "\\(aq"
           : c == '`'  ? "\\(ga"
           : c == '^'  ? "\\(ha"
           : c == '~'  ? "\\(ti"
                       : std::string(1, c);
  }
  return out;
}

std::string example(const std::string& lines) { return ".PP\n.nf\n.RS 4\n" + plain(lines) + "\n.RE\n.fi\n"; }

std::string option_text(const CLI::App& app, const CLI::Option& option) {
  std::string name = option.get_name(option.get_positional(), !option.get_positional());
  if (const std::string type = option.get_type_name(); !type.empty() && !option.get_positional())
    name += " " + type;
  if (!option.get_default_str().empty()) name += " (default: " + option.get_default_str() + ")";
  const bool help = &option == app.get_help_ptr();
  return ".TP\n.B " + plain(name) + "\n" + plain(help ? "says all this" : option.get_description()) + "\n";
}

}  // namespace

std::vector<const CLI::Option*> all_options(const CLI::App& app) {
  std::vector<const CLI::Option*> all = app.get_options();
  for (const CLI::App* group : app.get_subcommands(nullptr))
    for (const CLI::Option* option : group->get_options()) all.push_back(option);
  return all;
}

std::string exit_status_of(const Command& command) { return command.no ? std::string("Exit status: 1 ") + command.no : ""; }

std::string man_page(const CLI::App& app, std::span<const Command> commands) {
  std::string page =
      ".TH CONVPIN 1 \"\" \"convpin " CONVPIN_VERSION
      "\" \"User commands\"\n"
      ".SH NAME\nconvpin \\- sees and sets the algorithms of cuDNN's convolutions in unmodified programs\n"
      ".SH SYNOPSIS\n.B convpin\n.I command\n[options]\n"
      ".SH DESCRIPTION\n" +
      plain(app.get_description()) + ".SH COMMANDS\n";
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    page += ".SS " + sub->get_name() + "\n" + plain(sub->get_description()) + "\n";
    for (const CLI::Option* option : all_options(*sub)) page += option_text(*sub, *option);
    for (const Command& command : commands)
      if (command.name == sub->get_name()) {
        if (command.no) page += ".PP\n" + plain(exit_status_of(command)) + "\n";
        page += example(command.example);
      }
  }
  return page +
         ".SH EXIT STATUS\n0; 1 where the answer is no; 2 where the command could not do what was asked.\n"
         "Of\n.BR \"convpin run\" ,\nthe program's.\n"
         ".SH ENVIRONMENT\nThe library's settings, which\n.B convpin run\npasses on, are in its README; "
         "convpin check says what is wrong with them.\n";
}

}  // namespace convpin::cli
