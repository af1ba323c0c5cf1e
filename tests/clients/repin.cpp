// A plan that is kept, executed again and again with something in between: what is asked of convpin's C API, if it is there.
//
//   run: LD_LIBRARY_PATH=<libcudnn's folder> repin [--legacy] PROBLEM STEP...
//
//   run              executes; prints the output's checksum
//   kept             the same with one variant pack for all
//   pack             makes that variant pack now
//   build            finds plan or algorithm anew
//   set OP TEXT      convpin_set_algo      rules TOML   convpin_set_rules      clear OP (all for -)   convpin_clear
//   enable           convpin_enable        label NAME (- for none)             problems               prints their JSON
//   env NAME=VALUE   for the stand-in's faults
//   allocations      pieces of memory that are outstanding in the stand-in's driver
//   fork STEPS...    the rest of the steps in a child
//   threads N M      N threads execute, every second one the same plan, until the main thread has changed
//                    the algorithm M times; prints the distinct checksums
//
// Each prints one line: "<step>: <what came of it>".
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "tests/clients/api.hpp"
#include "tests/clients/kept_conv.hpp"

namespace {

const char* name_or_null(const std::string& text) { return text == "-" ? nullptr : text.c_str(); }

std::string outcome_of(const char* error) { return error ? std::string("error: ") + error : "ok"; }

template <typename Function, typename... A>
std::string ask(Function function, A... arguments) {
  return function ? outcome_of(function(arguments...)) : "no convpin";
}

std::string problems() {
  if (!clients::problems()) return "no convpin";
  char* text = clients::problems()();
  const std::string copy = text ? text : "none";
  clients::free()(text);
  return copy;
}

std::string on_threads(const convpin::Problem& problem, bool legacy, int count, int changes) {
  std::atomic<bool> stop{false};
  std::atomic<int> ready{0};
  std::mutex lock;
  std::set<std::string> seen;
  clients::KeptConv shared(problem, legacy);
  if (shared.error().empty()) shared.build();
  if (!shared.error().empty()) return shared.error();
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      clients::KeptConv own(problem, legacy);
      if (i % 2 && !legacy) {
        own.share(shared);
      } else {
        own.build();
      }
      ++ready;
      do {
        const std::string checksum = own.error().empty() ? own.run() : own.error();
        std::lock_guard hold(lock);
        seen.insert(checksum);
      } while (!stop);
    });
  while (ready < count) std::this_thread::yield();
  const char* algorithms[] = {"GEMM", "IMPLICIT_GEMM", "DIRECT", "6", "-1"};
  for (int i = 0; i < changes && clients::set_algo(); ++i) {
    const char* error = i % 7 == 6 ? clients::clear()(nullptr) : clients::set_algo()("any", algorithms[i % 5]);
    const std::string listed = problems();
    std::this_thread::yield();
    std::lock_guard hold(lock);
    if (error) seen.insert(error);
    if (listed.front() != '[') seen.insert(listed);
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  std::string text;
  for (const std::string& checksum : seen) text += (text.empty() ? "" : " ") + checksum;
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool legacy = !words.empty() && words.front() == "--legacy";
  if (legacy) words.erase(words.begin());
  const auto problem = convpin::parse_problem(words.empty() ? "" : words.front());
  if (!problem) return std::fprintf(stderr, "repin: %s\n", problem.error.c_str()), 2;
  std::optional<clients::KeptConv> conv;
  const auto kept = [&]() -> clients::KeptConv& {
    if (conv) return *conv;
    conv.emplace(*problem, legacy);
    if (conv->error().empty()) conv->build();
    return *conv;
  };

  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string step = words[i];
    std::string what = step, came;
    const auto next = [&] {
      if (i + 1 >= words.size()) std::fprintf(stderr, "repin: %s needs more\n", step.c_str()), std::exit(2);
      what += " " + words[i + 1];
      return words[++i];
    };
    if (step == "run" || step == "kept") {
      came = kept().error().empty() ? kept().run(step == "kept") : kept().error();
    } else if (step == "pack") {
      kept().keep_pack(), came = "ok";
    } else if (step == "build") {
      kept().build(), came = kept().error().empty() ? "ok" : kept().error();
    } else if (step == "set") {
      const std::string operation = next(), text = next();
      came = ask(clients::set_algo(), operation.c_str(), text.c_str());
    } else if (step == "rules") {
      const std::string toml = words[++i];
      came = ask(clients::set_rules(), toml.c_str());
    } else if (step == "clear") {
      const std::string operation = next();
      came = ask(clients::clear(), name_or_null(operation));
    } else if (step == "enable") {
      came = clients::enable() ? (clients::enable()(), "ok") : "no convpin";
    } else if (step == "label") {
      const std::string name = next();
      came = clients::label() ? (clients::label()(name_or_null(name)), "ok") : "no convpin";
    } else if (step == "problems") {
      came = problems();
    } else if (step == "env") {
      const std::string both = next();
      const auto at = both.find('=');
      setenv(both.substr(0, at).c_str(), both.substr(at + 1).c_str(), 1), came = "ok";
    } else if (step == "allocations") {
      const auto count = reinterpret_cast<unsigned long long (*)()>(dlsym(RTLD_DEFAULT, "cudnnStandinAllocations"));
      came = count ? std::to_string(count()) : "no stand-in";
    } else if (step == "threads") {
      const int count = std::atoi(next().c_str()), changes = std::atoi(next().c_str());
      came = on_threads(*problem, legacy, count, changes);
    } else if (step == "fork") {
      const pid_t child = fork();
      if (child == 0) continue;
      int status = -1;
      waitpid(child, &status, 0);
      std::printf("parent: %d\n", status);
      std::fflush(stdout);
      return status == 0 ? 0 : 1;
    } else {
      return std::fprintf(stderr, "repin: no step %s\n", step.c_str()), 2;
    }
    std::printf("%s: %s\n", what.c_str(), came.c_str());
    std::fflush(stdout);
  }
  return 0;
}
