// Fails when the README's reference of settings is not what config/settings.def says.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "config/settings.hpp"

namespace convpin {
namespace {

TEST(Readme, SettingsAreThoseOfTheTable) {
  std::ifstream file(std::string(CONVPIN_SOURCE_DIR) + "/README.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string readme = text.str();
  const std::string begin = "<!-- settings: config/settings.def -->\n", end = "<!-- /settings -->";
  const auto from = readme.find(begin), to = readme.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  EXPECT_EQ(readme.substr(from + begin.size(), to - from - begin.size()), settings_reference());
}

}  // namespace
}  // namespace convpin
