// doctor: can this program, or this Python, be pinned? One line a finding, with what to do.
#include <dlfcn.h>
#include <elf.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "shim/model/match.hpp"
#include "shim/model/text.hpp"
#include "tools/convpin/child.hpp"
#include "tools/convpin/command.hpp"
#include "tools/convpin/files.hpp"
#include "tools/convpin/library.hpp"
#include "tools/convpin/table.hpp"

namespace convpin::cli {
namespace {

namespace fs = std::filesystem;

struct Findings {
  Table table{{"what", "finding", "verdict", "advice"}, {}};
  bool good = true;
  void add(const std::string& what, const std::string& finding, bool ok, const std::string& advice = "") {
    table.rows.push_back({what, finding, ok ? "ok" : "no", advice.empty() ? Json() : Json(advice)});
    good = good && ok;
  }
  void note(const std::string& what, const std::string& finding, const std::string& advice = "") {
    table.rows.push_back({what, finding, "note", advice.empty() ? Json() : Json(advice)});
  }
};

std::string output_of(const std::vector<std::string>& command, int& status, const char* variable = nullptr,
                      const char* value = nullptr) {
  std::vector<std::pair<std::string, std::string>> variables;
  if (variable) variables.emplace_back(variable, value);
  Ended ended = run_child(command, variables, Stderr::Collected);
  status = ended.status;
  return std::move(ended.output);
}

// What cudnnGetVersion of this copy says, in a process of its own: two copies share the names of their parts, and the second
// in a process answers with the first one's version. Empty where it can't be opened; `path` becomes the file that was found.
std::string version_of(std::string& path) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw BadUse("no pipe can be made");
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    using Version = std::size_t (*)();
    void* copy = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    const auto version = copy ? reinterpret_cast<Version>(dlsym(copy, "cudnnGetVersion")) : nullptr;
    Dl_info info{};
    if (version && dladdr(reinterpret_cast<void*>(version), &info)) {
      const std::string said = version_text(version()) + " " + info.dli_fname;
      if (write(ends[1], said.data(), said.size()) != static_cast<ssize_t>(said.size())) _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  std::array<char, 4096> block{};
  for (ssize_t got; child > 0 && (got = read(ends[0], block.data(), block.size())) > 0;)
    said.append(block.data(), static_cast<std::size_t>(got));
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  const std::size_t blank = said.find(' ');
  if (blank == std::string::npos) return {};
  path = said.substr(blank + 1);
  return said.substr(0, blank);
}

std::string found_in_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* path = std::getenv("PATH");
  for (const std::string_view folder : split(path ? path : "", ':'))
    if (const std::string file = std::string(folder) + "/" + program; access(file.c_str(), X_OK) == 0) return file;
  return {};
}

bool has_interpreter(const std::string& elf) {
  Elf64_Ehdr header{};
  std::memcpy(&header, elf.data(), sizeof header);
  for (int i = 0; i < header.e_phnum; ++i) {
    const std::size_t at = header.e_phoff + static_cast<std::size_t>(i) * header.e_phentsize;
    Elf64_Phdr segment{};
    if (at + sizeof segment > elf.size()) break;
    std::memcpy(&segment, elf.data() + at, sizeof segment);
    if (segment.p_type == PT_INTERP) return true;
  }
  return false;
}

// The file that the kernel loads in the end: a script's interpreter, or `env`'s argument.
std::string loaded_for(std::string file, std::string& text) {
  for (int depth = 0; depth < 4; ++depth) {
    text = read_file(file);
    if (!text.starts_with("#!")) return file;
    const auto words = split(trim(std::string_view(text).substr(2, text.find('\n') - 2)), ' ');
    const bool by_env = words.size() > 1 && words[0].ends_with("/env");
    file = found_in_path(std::string(by_env ? words[words.size() > 2 && words[1] == "-S" ? 2 : 1] : words[0]));
    if (file.empty()) throw BadUse("the interpreter of that script is not found");
  }
  return file;
}

void look_at_library(Findings& f) {
  const std::string library = library_path();
  int status = 0;
  const std::string said = output_of({"/bin/true"}, status, "LD_PRELOAD", library.c_str());
  f.add("libconvpin.so", library, status == 0 && said.empty(),
        status == 0 && said.empty() ? "" : "the loader refuses it: " + one_line(said, 200) + " (built for a newer glibc?)");
}

void look_at_gpu(Findings& f) {
  void* cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  using Init = int (*)(unsigned);
  const auto init = cuda ? reinterpret_cast<Init>(dlsym(cuda, "cuInit")) : nullptr;
  const int status = init ? init(0) : -1;
  if (status == 0) return f.note("GPU", "a CUDA GPU is here");
  f.note("GPU", cuda ? "cuInit gives " + std::to_string(status) : "no libcuda.so.1", "convpin list --device h200 works without one; tune and replay need one");
}

// What the dynamic loader would load, from its own mouth; nothing of the program runs.
void look_at_links(const std::string& file, const std::string& elf, bool python, Findings& f) {
  int status = 0;
  const std::string list = output_of({file}, status, "LD_TRACE_LOADED_OBJECTS", "1");
  std::vector<std::string> linked;
  for (const std::string_view line : split(list, '\n'))
    if (line.find("libcudnn") != line.npos) linked.emplace_back(trim(line));
  for (const std::string& line : linked)
    f.add("cuDNN", "linked: " + line, line.find("not found") == std::string::npos, line.find("not found") == std::string::npos ? "" : "set LD_LIBRARY_PATH so that it is found");
  if (!linked.empty() || python) return;
  if (elf.find("cudnnConvolutionForward") != std::string::npos || elf.find("cudnnBackendExecute") != std::string::npos) {
    const bool looked_up = elf.find("libcudnn.so") != std::string::npos;
    if (looked_up) return f.note("cuDNN", "looked up at run time (dlopen, dlsym)");
    return f.add("cuDNN", "linked statically", false, "no preloaded library can reach it: link it dynamically");
  }
  f.note("cuDNN", "not linked: it comes with a library that is loaded later, or not at all", "convpin run says at the end how many convolutions were reached");
}

// The copies in this Python's folders, and who is there to use them; nothing of theirs is imported.
void look_at_python(const std::string& python, Findings& f) {
  constexpr const char* kScript =
      "import glob, os, sys, importlib.metadata as m\n"
      "for name in ('torch', 'jax', 'tensorflow', 'onnxruntime-gpu', 'paddlepaddle-gpu', 'cupy-cuda12x', 'cupy-cuda13x'):\n"
      "    try: print('package', name, m.version(name))\n"
      "    except m.PackageNotFoundError: pass\n"
      "seen = set()\n"
      "for folder in sys.path:\n"
      "    for where in ('nvidia/cudnn/lib', 'nvidia/*/lib', 'torch/lib', 'tensorflow', '*.libs'):\n"
      "        for path in glob.glob(os.path.join(folder, where, 'libcudnn.so*')) + glob.glob(os.path.join(folder, where, 'libcudnn-*.so*')):\n"
      "            seen.add(os.path.realpath(path))\n"
      "for path in sorted(seen): print('cudnn', path)\n";
  int status = 0;
  const std::string said = output_of({python, "-c", kScript}, status);
  if (status != 0) return f.note("Python", "it could not be asked: " + one_line(said, 200));
  bool any = false;
  for (const std::string_view line : split(said, '\n')) {
    const auto words = split(line, ' ');
    if (words.size() == 3 && words[0] == "package") f.note("Python", std::string(words[1]) + " " + std::string(words[2]));
    if (words.size() != 2 || words[0] != "cudnn") continue;
    any = true;
    std::string path(words[1]);
    const std::string version = version_of(path);
    f.note("cuDNN", std::string(words[1]) + (version.empty() ? ", which can't be opened" : ", " + version));
  }
  if (!any) f.note("cuDNN", "no copy in this Python's folders", "a framework without its own uses the system's");
}

void look_at_system(Findings& f) {
  for (const char* name : {"libcudnn.so.9", "libcudnn.so.8"}) {
    std::string path = name;
    if (const std::string version = version_of(path); !version.empty()) f.note("cuDNN", "the loader finds " + path + ", " + version);
  }
}

// By its name: python, python3, python3.12.
bool is_python(const std::string& file) {
  const std::string name = fs::path(file).filename().string();
  return name.starts_with("python") && name.find_first_not_of("0123456789.", 6) == name.npos;
}

int doctor(const Program& program, bool json) {
  Findings f;
  look_at_library(f);
  look_at_gpu(f);
  look_at_system(f);
  std::string file = found_in_path(program.empty() ? "python3" : program[0]);
  if (is_python(file)) {  // behind the wrappers of environment managers
    int ended = 0;
    const std::string itself = output_of({file, "-c", "import sys; print(sys.executable)"}, ended);
    if (ended == 0) file = std::string(trim(itself));
  }
  if (file.empty() || access(file.c_str(), X_OK) != 0) throw BadUse("there is no program " + quote(program.empty() ? "python3" : program[0]));
  std::string text;
  const std::string loaded = loaded_for(file, text);
  struct stat status{};
  if (stat(loaded.c_str(), &status) == 0 && status.st_mode & (S_ISUID | S_ISGID))
    f.add("program", loaded, false, "it is setuid or setgid, for which the loader ignores LD_PRELOAD");
  else if (!text.starts_with("\x7f" "ELF") || text.size() < sizeof(Elf64_Ehdr))
    f.add("program", loaded, false, "it is no ELF program");
  else if (text[EI_CLASS] != ELFCLASS64)
    f.add("program", loaded, false, "it is a 32-bit program; the library has 64");
  else if (!has_interpreter(text))
    f.add("program", loaded, false, "it is linked statically: nothing can be preloaded into it");
  else {
    const bool python = fs::path(loaded).filename().string().starts_with("python");
    f.add("program", loaded == file ? file : file + ", by " + loaded, true);
    look_at_links(loaded, text, python, f);
    if (python) look_at_python(loaded, f);
    if (loaded != file && !python) f.note("program", "what that script starts in the end is what matters", "convpin doctor that program");
  }
  print(json ? f.table.json().dump(2) + "\n" : f.table.text());
  return f.good ? kYes : kNo;
}

}  // namespace

Action declare_doctor(CLI::App& app, const Program& program) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "as JSON");
  static std::vector<std::string> shown;  // for the help alone
  app.add_option("program", shown, "what would be run; python3 without it. It is looked at, not started; a Python is asked where it is")->type_name("");
  return [json, &program] { return doctor(program, *json); };
}

}  // namespace convpin::cli
