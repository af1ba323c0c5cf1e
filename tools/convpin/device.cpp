// device: cuDNN's description of a GPU, written where there is one and used where there is none.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "shim/model/match.hpp"
#include "shim/model/text.hpp"
#include "tools/convpin/command.hpp"
#include "tools/convpin/cudnn.hpp"
#include "tools/convpin/files.hpp"

namespace convpin::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json parsed(const std::string& json) {
  Json value = Json::parse(json, nullptr, false);
  if (!value.is_object() || !value.contains("deviceVer") || !value["deviceVer"].is_number_integer())
    throw BadUse("this is no description of a GPU: it must be JSON with a deviceVer, as convpin device -o FILE writes it");
  return value;
}

// The folder of shipped descriptions: beside the command in the source tree's build, or where it is installed.
std::vector<fs::path> shipped() {
  std::vector<fs::path> files;
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const char* place : {CONVPIN_DEVICE_PLACES}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(here / place, error))
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    if (!files.empty()) break;
  }
  return files;
}

}  // namespace

std::string device_description(const std::string& name_or_file) {
  std::vector<std::string> names;
  if (!fs::exists(name_or_file)) {
    for (const fs::path& file : shipped()) {
      if (lower(file.stem().string()) == lower(name_or_file) || file.filename() == name_or_file) return read_file(file);
      names.push_back(file.stem());
    }
    throw BadUse("--device: there is no file " + quote(name_or_file) +
                 ", and it is no GPU whose description is shipped: " + join(names, ", ") + " can be had");
  }
  const std::string json = read_file(name_or_file);
  (void)parsed(json);
  return json;
}

std::string with_sm(const std::string& json, int sm) {
  Json value = parsed(json);
  value["deviceVer"] = sm * 10;
  return value.dump();
}

std::string name_in(const std::string& json) { return parsed(json).value("deviceName", std::string()); }
int sm_in(const std::string& json) { return parsed(json)["deviceVer"].get<int>() / 10; }

Action declare_device(CLI::App& app, const Program&) {
  auto where = std::make_shared<std::string>();
  app.add_option("--cudnn", *where, "cuDNN's folder or file; without it: as the loader finds it")->type_name("DIR");
  const auto output = declare_output(app, "the description");
  return [where, output] {
    const auto cudnn = open_cudnn(*where);
    const std::string json = Device::present(*cudnn).json();
    say(name_in(json) + ", sm_" + std::to_string(sm_in(json)) + ", by cuDNN " + version_text(cudnn->library.version));
    write_output(*output, json + "\n");
    return kYes;
  };
}

}  // namespace convpin::cli
