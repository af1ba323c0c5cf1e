// Files and standard output, with errors that name the file.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tools/convpin/command.hpp"

namespace convpin::cli {

std::string read_file(const std::string& path);             // throws BadUse; "-" is standard input
void print(const std::string& text);                        // to stdout; throws BadUse where it can't be written
void say(const std::string& sentence);                      // to stderr, with our name and a newline
// To the file, complete or not at all: what stood there stays until the new text is written. Empty path: stdout.
void write_output(const std::string& path, const std::string& text);

// Throws BadUse where the output is one of the files that are read: a recording would be gone.
void keep_apart(const std::string& output, const std::vector<std::string>& inputs);

// -o FILE
std::shared_ptr<std::string> declare_output(CLI::App&, const char* what);

}  // namespace convpin::cli
