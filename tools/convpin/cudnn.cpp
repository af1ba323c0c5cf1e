#include "tools/convpin/cudnn.hpp"

#include <dlfcn.h>

#include <filesystem>
#include <utility>

#include "shim/hooks/reason.hpp"
#include "shim/model/match.hpp"
#include "shim/model/text.hpp"
#include "tools/convpin/command.hpp"

namespace convpin::cli {
namespace {

namespace fs = std::filesystem;

// By the names that a program is linked to; a folder may hold them itself or in lib.
void* open_in(const std::string& where, std::string& tried) {
  std::vector<fs::path> places;
  if (where.empty()) {
    places = {"libcudnn.so.9", "libcudnn.so.8", "libcudnn.so"};
  } else if (fs::is_directory(where)) {
    for (const char* folder : {".", "lib", "lib64"})
      for (const char* name : {"libcudnn.so.9", "libcudnn.so.8", "libcudnn.so"})
        if (const fs::path path = (fs::absolute(where) / folder / name).lexically_normal(); fs::exists(path)) places.push_back(path);
  } else {
    places = {fs::absolute(where)};
  }
  for (const fs::path& place : places) {
    if (void* handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    tried = dlerror();
  }
  return nullptr;
}

std::string status_text(const Cudnn& cudnn, cudnnStatus_t status) { return ReasonScope(cudnn.library).text(status); }

cudnnStatus_t get_json(const Library& library, cudnnBackendDescriptor_t properties, std::string& json) {
  constexpr auto name = CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION;
  std::int64_t count = 0;
  if (const auto status = library.cudnnBackendGetAttribute(properties, name, CUDNN_TYPE_CHAR, 0, &count, nullptr)) return status;
  json.resize(static_cast<std::size_t>(count));
  const auto status = library.cudnnBackendGetAttribute(properties, name, CUDNN_TYPE_CHAR, count, &count, json.data());
  json.resize(std::char_traits<char>::length(json.c_str()));  // it counts its ending
  return status;
}

}  // namespace

std::unique_ptr<Cudnn> open_cudnn(const std::string& where) {
  std::string why = "there is no libcudnn.so in it";
  void* handle = open_in(where, why);
  if (!handle)
    throw BadUse(where.empty() ? "cuDNN is not found: give --cudnn with its folder, for example the one of "
                                 "python -c 'import nvidia.cudnn as c; print(list(c.__path__)[0])' (" +
                                     why + ")"
                               : "--cudnn " + where + ": " + why);
  auto cudnn = std::make_unique<Cudnn>();
  const auto look_up = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(handle, name));
  };
#define CONVPIN_HOOK(name, ...) look_up(cudnn->library.name, #name);
#define CONVPIN_USED(name) look_up(cudnn->library.name, #name);
#include "shim/hooks/functions.def"
#undef CONVPIN_HOOK
#undef CONVPIN_USED
  look_up(cudnn->create, "cudnnCreate");
  look_up(cudnn->destroy, "cudnnDestroy");
  cudnn->library.handle = handle;
  if (!cudnn->library.cudnnGetVersion || !cudnn->library.cudnnBackendCreateDescriptor)
    throw BadUse("this libcudnn has no backend API: cuDNN 8 or later is needed");
  cudnn->library.version = cudnn->library.cudnnGetVersion();
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(cudnn->library.cudnnGetVersion), &info)) cudnn->path = info.dli_fname;
  return cudnn;
}

Device::Device(Device&& other) noexcept
    : cudnn_(other.cudnn_), handle_(std::exchange(other.handle_, nullptr)), properties_(std::move(other.properties_)) {}

Device::~Device() {
  properties_ = {};
  if (handle_) cudnn_->destroy(handle_);
}

Device Device::present(const Cudnn& cudnn) {
  Device device(cudnn);
  const ReasonScope words(cudnn.library);
  if (const auto status = cudnn.create ? cudnn.create(&device.handle_) : CUDNN_STATUS_NOT_SUPPORTED)
    throw BadUse("cuDNN finds no GPU here (cudnnCreate: " + words.text(status) +
                 "): --device h200, or --device FILE with the description of one, asks about a GPU that is elsewhere");
  return device;
}

Device Device::described(const Cudnn& cudnn, const std::string& json) {
  Device device(cudnn);
  const Library& library = cudnn.library;
  const ReasonScope words(library, Listen::Yes);
  device.properties_ = graph::Descriptor(library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
  if (device.properties_)
    status = library.cudnnBackendSetAttribute(device.properties_.get(), CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                              static_cast<std::int64_t>(json.size()), json.data());
  if (!status) status = library.cudnnBackendFinalize(device.properties_.get());
  if (status)
    throw BadUse("this cuDNN (" + version_text(library.version) + ") doesn't take the description of a GPU: " + words.text(status) +
                 "; it is possible from cuDNN 9.8 on");
  return device;
}

std::string Device::json() const {
  const Library& library = cudnn_->library;
  std::string json;
  if (properties_ && !get_json(library, properties_.get(), json)) return json;
  const graph::Descriptor properties(library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  cudnnStatus_t status =
      properties ? library.cudnnBackendSetAttribute(properties.get(), CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_)
                 : CUDNN_STATUS_NOT_SUPPORTED;
  if (!status) status = library.cudnnBackendFinalize(properties.get());
  if (!status) status = get_json(library, properties.get(), json);
  if (status)
    throw BadUse("cuDNN " + version_text(library.version) + " gives no description of its GPU: " + status_text(*cudnn_, status) +
                 "; it is possible from cuDNN 9.8 on");
  return json;
}

}  // namespace convpin::cli
