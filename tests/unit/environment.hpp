// An environment made of a map, and files in a folder of the test's own.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/settings.hpp"

namespace convpin {

// A file with one error: its text, a part of the message, and the line that toml11 shows with its caret or tildes.
struct Wrong {
  const char* text;
  const char* message;
  const char* place;
};

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class Environment : public testing::Test {
 protected:
  Environment() {
    std::string pattern = testing::TempDir() + "convpin-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~Environment() override { std::filesystem::remove_all(folder_); }

  void set(const std::string& name, const std::string& value) { variables_[name] = value; }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
  }
  // One file, named in CONVPIN_CONFIG.
  void toml(const std::string& text, const std::string& name = "pins.toml") {
    write(name, text);
    std::string& files = variables_["CONVPIN_CONFIG"];
    files += (files.empty() ? "" : ":") + name;
  }

  std::function<const char*(const char*)> reader() {
    return [this](const char* name) {
      asked_.push_back(name);
      const auto found = variables_.find(name);
      return found == variables_.end() ? nullptr : found->second.c_str();
    };
  }
  Settings load() { return load_settings(reader(), folder_); }
  // For what must be without errors.
  Settings good() {
    Settings settings = load();
    for (const std::string& error : settings.errors) ADD_FAILURE() << error;
    return settings;
  }
  // For what must have exactly one error, and leave nothing in force.
  std::string error() {
    Settings settings = load();
    EXPECT_EQ(settings.errors.size(), 1u);
    for (std::size_t i = 1; i < settings.errors.size(); ++i) ADD_FAILURE() << settings.errors[i];
    EXPECT_TRUE(settings.rules.empty());
    EXPECT_EQ(settings.profile_level, ProfileLevel::Off);
    EXPECT_FALSE(settings.idle());
    return settings.errors.empty() ? "" : settings.errors.front();
  }
  void expect_wrong(const Wrong& wrong) {
    toml(wrong.text, "wrong.toml");
    const std::string text = error();
    EXPECT_TRUE(has(text, wrong.message)) << text;
    EXPECT_TRUE(has(text, "--> wrong.toml")) << text;
    EXPECT_TRUE(has(text, wrong.place)) << text;
    EXPECT_TRUE(has(text, "^--") || has(text, "~")) << text;
    EXPECT_FALSE(has(text, "[error]")) << text;
  }
  void clear() { variables_.clear(); }

  std::string folder_;
  std::map<std::string, std::string> variables_;
  std::vector<std::string> asked_;
};

}  // namespace convpin
