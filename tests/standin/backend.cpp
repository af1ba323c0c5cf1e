// The handle and the backend (graph) API's descriptors. They are the real library's own, handed through; the
// stand-in keeps the application's handle from them, gives them a device's properties instead, and watches
// plans and variant packs, which can't be read back.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "tests/standin/faults.hpp"
#include "tests/standin/graph.hpp"
#include "tests/standin/handle.hpp"
#include "tests/standin/real.hpp"
#include "tests/standin/watched.hpp"

namespace standin {
namespace {

std::string read_device_json() {
  const char* path = std::getenv("STANDIN_DEVICE_JSON");
  std::ifstream file(path != nullptr ? path : own_directory() + "/h200-deviceprop.json");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

cudnnStatus_t set_device_json(Descriptor descriptor) {
  const std::string& json = device_json();
  return real::cudnnBackendSetAttribute(descriptor, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                        CUDNN_TYPE_CHAR, static_cast<std::int64_t>(json.size() + 1),
                                        json.c_str());
}

Descriptor make_device_properties() {
  Descriptor descriptor = nullptr;
  real::cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &descriptor);
  if (set_device_json(descriptor) == CUDNN_STATUS_SUCCESS &&
      real::cudnnBackendFinalize(descriptor) == CUDNN_STATUS_SUCCESS) {
    return descriptor;
  }
  std::fprintf(stderr, "cuDNN stand-in: STANDIN_DEVICE_JSON: no device properties that cuDNN accepts\n");
  return nullptr;
}

cudnnBackendAttributeName_t device_attribute(cudnnBackendDescriptorType_t type) {
  switch (type) {
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return CUDNN_ATTR_ENGINEHEUR_DEVICEPROP;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
      return CUDNN_ATTR_ENGINE_DEVICEPROP;
    default:
      return CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP;
  }
}

bool needs_device(cudnnBackendDescriptorType_t type) {
  return type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR || type == CUDNN_BACKEND_ENGINE_DESCRIPTOR ||
         type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
}

void record(VariantPack& pack, cudnnBackendAttributeName_t name, std::int64_t count, const void* elements) {
  if (name == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) {
    const auto* ids = static_cast<const std::int64_t*>(elements);
    pack.ids.assign(ids, ids + count);
  } else if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) {
    const auto* pointers = static_cast<void* const*>(elements);
    pack.pointers.assign(pointers, pointers + count);
  } else if (name == CUDNN_ATTR_VARIANT_PACK_WORKSPACE) {
    std::memcpy(&pack.workspace, elements, sizeof pack.workspace);
  }
}

std::string read_text(Descriptor plan) {
  std::int64_t size = 0;
  real::cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0,
                                 &size, nullptr);
  std::string text(static_cast<std::size_t>(size), '\0');
  real::cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, size,
                                 &size, text.data());
  text.resize(std::strlen(text.c_str()));
  return text;
}

// What the plan will be is known before it is finalized: from the text that it is restored from, or from
// another plan of its configuration.
bool is_refused_plan(Descriptor descriptor) {
  Descriptor config = nullptr;
  std::string json, reason;
  with_watched(descriptor, [&](const Watched& w) { config = w.engine_config, json = w.json; });
  if (config != nullptr) {
    Descriptor device = device_properties(), scratch = nullptr;
    real::cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &scratch);
    real::cudnnBackendSetAttribute(scratch, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device);
    real::cudnnBackendSetAttribute(scratch, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
    if (real::cudnnBackendFinalize(scratch) == CUDNN_STATUS_SUCCESS) json = read_text(scratch);
    real::cudnnBackendDestroyDescriptor(scratch);
  }
  const std::optional<Plan> plan = parse_plan(json, reason);
  return plan && named_in("STANDIN_FAIL_PLAN", plan->graph.operation(), "eng" + std::to_string(plan->engine));
}

// Whether an engine is to say that it is compiled at run time: those that are never finalize without a device.
bool is_compiled(Descriptor engine) {
  std::int64_t index = -1, count = 0;
  if (std::getenv("STANDIN_COMPILED") == nullptr) return false;
  real::cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &index);
  return named_in("STANDIN_COMPILED", Operation::Forward, "eng" + std::to_string(index));
}

}  // namespace

const std::string& device_json() {
  static const auto* const json = new std::string(read_device_json());
  return *json;
}

Descriptor device_properties() {
  static const Descriptor descriptor = make_device_properties();
  return descriptor;
}

std::int64_t engine_of(Descriptor engine_config) {
  std::int64_t index = -1, count = 0;
  Descriptor engine = nullptr;
  real::cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine);
  real::cudnnBackendGetAttribute(engine_config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                 &count, &engine);
  real::cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &index);
  real::cudnnBackendDestroyDescriptor(engine);
  return index;
}

std::optional<Plan> read_plan(Descriptor descriptor, std::string& reason) {
  std::optional<Plan> plan = parse_plan(read_text(descriptor), reason);
  std::int64_t count = 0;
  if (plan) {
    real::cudnnBackendGetAttribute(descriptor, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                   &count, &plan->workspace);
  }
  return plan;
}

}  // namespace standin

using namespace standin;

STANDIN_EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (handle == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (!real_cudnn_available() || device_properties() == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}

STANDIN_EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  if (!is_handle(handle)) return CUDNN_STATUS_BAD_PARAM;
  handle->mark = 0;
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

STANDIN_EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (!is_handle(handle)) return CUDNN_STATUS_BAD_PARAM;
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

STANDIN_EXPORT cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  if (!is_handle(handle) || stream == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *stream = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}

STANDIN_EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                          Descriptor* descriptor) {
  const cudnnStatus_t status = real::cudnnBackendCreateDescriptor(type, descriptor);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  // At once, since a plan's JSON text needs them; the application may still set its own.
  if (needs_device(type)) {
    Descriptor device = device_properties();
    real::cudnnBackendSetAttribute(*descriptor, device_attribute(type), CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                   &device);
  }
  if (type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR || type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    watch(*descriptor, type);
  }
  return status;
}

STANDIN_EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(Descriptor descriptor) {
  forget(descriptor);  // first: the address is used again at once
  return real::cudnnBackendDestroyDescriptor(descriptor);
}

STANDIN_EXPORT cudnnStatus_t cudnnBackendSetAttribute(Descriptor descriptor, cudnnBackendAttributeName_t name,
                                                      cudnnBackendAttributeType_t type, std::int64_t count,
                                                      const void* elements) {
  switch (name) {
    case CUDNN_ATTR_OPERATIONGRAPH_HANDLE:
    case CUDNN_ATTR_EXECUTION_PLAN_HANDLE:
    case CUDNN_ATTR_DEVICEPROP_HANDLE: {
      if (descriptor == nullptr || type != CUDNN_TYPE_HANDLE || count != 1 || elements == nullptr ||
          !is_handle(*static_cast<const cudnnHandle_t*>(elements))) {
        return refuse(CUDNN_STATUS_BAD_PARAM, "not a handle of cudnnCreate");
      }
      return name == CUDNN_ATTR_DEVICEPROP_HANDLE ? set_device_json(descriptor) : CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_DEVICEPROP_DEVICE_ID:
      return set_device_json(descriptor);
    default:
      break;
  }
  const cudnnStatus_t status = real::cudnnBackendSetAttribute(descriptor, name, type, count, elements);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  if (name >= CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS && name <= CUDNN_ATTR_VARIANT_PACK_WORKSPACE) {
    with_watched(descriptor, [&](Watched& w) { record(*w.pack, name, count, elements); });
  } else if (name == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) {
    with_watched(descriptor,
                 [&](Watched& w) { w.engine_config = *static_cast<const Descriptor*>(elements); });
  } else if (name == CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION) {
    const std::string text(static_cast<const char*>(elements), static_cast<std::size_t>(count));
    with_watched(descriptor, [&](Watched& w) { w.json = text.c_str(); });
  }
  return status;
}

STANDIN_EXPORT cudnnStatus_t cudnnBackendGetAttribute(Descriptor descriptor, cudnnBackendAttributeName_t name,
                                                      cudnnBackendAttributeType_t type, std::int64_t requested,
                                                      std::int64_t* count, void* elements) {
  if (name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE && is_compiled(descriptor)) {
    if (count != nullptr) *count = 1;
    if (requested > 0 && elements != nullptr) *static_cast<cudnnBackendBehaviorNote_t*>(elements) = CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
    return CUDNN_STATUS_SUCCESS;
  }
  return real::cudnnBackendGetAttribute(descriptor, name, type, requested, count, elements);
}

STANDIN_EXPORT cudnnStatus_t cudnnBackendFinalize(Descriptor descriptor) {
  const bool refused = std::getenv("STANDIN_FAIL_PLAN") != nullptr && is_refused_plan(descriptor);
  if (std::getenv("STANDIN_TRACE_PLANS") != nullptr) {
    Descriptor config = nullptr;
    with_watched(descriptor, [&](const Watched& w) { config = w.engine_config; });
    if (config != nullptr) trace_plan("eng" + std::to_string(engine_of(config)));
  }
  if (refused) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "STANDIN_FAIL_PLAN");
  const cudnnStatus_t status = real::cudnnBackendFinalize(descriptor);
  if (status == CUDNN_STATUS_SUCCESS) with_watched(descriptor, [](Watched& w) { w.finalized = true; });
  return status;
}
