#include "tools/convpin/files.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

namespace convpin::cli {
namespace {

[[noreturn]] void fail(const std::string& path, const char* doing, int error) {
  throw BadUse("'" + path + "' can't be " + doing + ": " + std::strerror(error));
}

}  // namespace

std::string read_file(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(path, "read", errno);
  if (std::filesystem::is_directory(path)) fail(path, "read", EISDIR);
  text << in.rdbuf();
  if (in.bad()) fail(path, "read", errno);
  return text.str();
}

void print(const std::string& text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    fail("standard output", "written", errno);
}

void say(const std::string& sentence) { std::cerr << "convpin: " << sentence << '\n'; }

void write_output(const std::string& path, const std::string& text) {
  if (path.empty() || path == "-") return print(text);
  std::error_code error;
  const bool in_place = std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error);  // /dev/stdout
  const std::string written = in_place ? path : path + "." + std::to_string(getpid()) + ".tmp";
  errno = 0;
  std::ofstream out(written, std::ios::binary | std::ios::trunc);
  if (!out) fail(path, "written", errno);
  out << text;
  out.close();
  if (!out) {
    const int why = errno;
    if (!in_place) std::filesystem::remove(written, error);
    fail(path, "written", why);
  }
  if (in_place) return;
  std::filesystem::rename(written, path, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(written, ignored);
    fail(path, "written", error.value());
  }
}

void keep_apart(const std::string& output, const std::vector<std::string>& inputs) {
  std::error_code none;
  for (const std::string& input : inputs)
    if (std::filesystem::is_regular_file(input, none) && std::filesystem::equivalent(output, input, none))
      throw BadUse("'" + output + "' is read, and would be overwritten: it needs another name");
}

std::shared_ptr<std::string> declare_output(CLI::App& app, const char* what) {
  auto path = std::make_shared<std::string>();
  app.add_option("-o,--output", *path, std::string("file for ") + what + "; without it: standard output")->type_name("FILE");
  return path;
}

}  // namespace convpin::cli
