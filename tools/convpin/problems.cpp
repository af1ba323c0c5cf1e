#include "tools/convpin/problems.hpp"

#include <algorithm>

#include "tools/convpin/command.hpp"
#include "tools/convpin/files.hpp"
#include "tools/convpin/log.hpp"

namespace convpin::cli {

std::vector<Problem> problems_from(const std::vector<std::string>& texts, const Letters& letters, const std::vector<std::string>& logs) {
  std::vector<Problem> problems;
  const auto add = [&](const Problem& problem) {
    if (std::ranges::find(problems, problem) == problems.end()) problems.push_back(problem);
  };
  for (const std::string& text : texts) {
    const auto problem = parse_problem(text);
    if (!problem) throw BadUse(problem.error);
    add(*problem);
  }
  if (letters.any()) {
    const auto of_letters = problems_of(letters);
    if (!of_letters) throw BadUse(of_letters.error);
    for (const Problem& problem : *of_letters) add(problem);
  }
  if (!logs.empty()) {
    const Log log = read_logs(logs);
    for (const std::string& warning : log.warnings) say(warning);
    for (const Run& run : log.runs)
      for (const auto& [id, p] : run.problems) add(p.problem);
  }
  if (problems.empty()) throw BadUse("no problem is given: its text form, --log FILE, or letters (-n -c -H -W -k -y -x ...)");
  return problems;
}

}  // namespace convpin::cli
