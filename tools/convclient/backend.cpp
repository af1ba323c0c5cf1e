#include "tools/convclient/backend.hpp"

#include <algorithm>

#include "tools/convclient/status.hpp"

namespace convclient {

std::string failure(const std::string& call, cudnnStatus_t status) {
  char text[1024] = "";
  cudnnGetLastErrorString(text, sizeof text);
  std::string message = call + ": " + cudnnGetErrorString(status);
  if (text[0]) message += ": " + std::string(text);
  std::replace(message.begin(), message.end(), '\n', ' ');
  return message;
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type, const char* what) : what_(what) {
  note("cudnnBackendCreateDescriptor", cudnnBackendCreateDescriptor(type, &raw_));
}

Descriptor::~Descriptor() {
  if (raw_) cudnnBackendDestroyDescriptor(raw_);
}

void Descriptor::note(const char* call, cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) error_ = failure(std::string(call) + "(" + what_ + ")", status);
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                            std::int64_t count, const void* elements) {
  if (ok()) note("cudnnBackendSetAttribute", cudnnBackendSetAttribute(raw_, name, type, count, elements));
  return *this;
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
  return set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, std::int64_t value) {
  return set(name, CUDNN_TYPE_INT64, 1, &value);
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
  return set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, std::span<const Descriptor* const> values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor* value : values) {
    if (ok()) error_ = value->error_;
    raw.push_back(value->raw_);
  }
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(raw.size()), raw.data());
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  const Descriptor* one[] = {&value};
  return set(name, one);
}

Descriptor& Descriptor::finalize() {
  if (ok()) note("cudnnBackendFinalize", cudnnBackendFinalize(raw_));
  return *this;
}

std::int64_t Descriptor::count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) {
  return get(name, type, 0, nullptr);
}

std::int64_t Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                             std::int64_t room, void* elements) {
  std::int64_t got = 0;
  if (ok())
    note("cudnnBackendGetAttribute", cudnnBackendGetAttribute(raw_, name, type, room, &got, elements));
  return got;
}

Descriptor Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                           const char* what) {
  Descriptor into(type, what);
  get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &into.raw_);
  if (into.ok()) into.error_ = error_;
  return into;
}

std::vector<Descriptor> Descriptor::get_all(cudnnBackendAttributeName_t name,
                                            cudnnBackendDescriptorType_t type, const char* what,
                                            std::int64_t room) {
  std::vector<Descriptor> all;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < room; ++i) raw.push_back(all.emplace_back(type, what).raw_);
  const std::int64_t got = room > 0 ? get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, room, raw.data()) : 0;
  all.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(ok() ? got : 0, 0, room)));
  return all;
}

}  // namespace convclient
