// One descriptor of cuDNN's backend API (https://docs.nvidia.com/deeplearning/cudnn/backend/latest).
//
// The backend API has one life for everything: create a descriptor of a type, set its attributes, finalize
// it, then read attributes or put it into another descriptor. Attributes are untyped arrays: a name, the type
// of the elements, how many, and where they are. A wrong type or count is an error at run time only.
#pragma once

#include <cudnn.h>

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace convclient {

// Owns a descriptor. The first call that fails is remembered and later ones do nothing, also in the
// descriptors that this one is put into: so a graph is built without a question after each line, and error()
// is asked once at the end.
class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(cudnnBackendDescriptorType_t type, const char* what);
  Descriptor(Descriptor&& other) noexcept { *this = std::move(other); }
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(raw_, other.raw_);
    std::swap(what_, other.what_);
    std::swap(error_, other.error_);
    return *this;
  }
  ~Descriptor();

  Descriptor& set(cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, std::int64_t count,
                  const void* elements);
  Descriptor& set(cudnnBackendAttributeName_t, std::span<const std::int64_t>);
  Descriptor& set(cudnnBackendAttributeName_t, std::int64_t);
  Descriptor& set(cudnnBackendAttributeName_t,
                  std::same_as<bool> auto);  // or any pointer would become a bool
  Descriptor& set(cudnnBackendAttributeName_t, cudnnDataType_t);
  Descriptor& set(cudnnBackendAttributeName_t, std::span<const Descriptor* const>);
  Descriptor& set(cudnnBackendAttributeName_t, const Descriptor&);
  Descriptor& finalize();

  // Reading an attribute: get() fills at most `room` elements and says how many it filled. An attribute that
  // is a descriptor is read *into* one that the caller created. count() asks how many elements there are, by
  // leaving no room; not every attribute answers that (ENGINEHEUR_RESULTS does, ENGINECFG_KNOB_CHOICES says
  // 0).
  std::int64_t count(cudnnBackendAttributeName_t, cudnnBackendAttributeType_t);
  std::int64_t get(cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, std::int64_t room,
                   void* elements);
  Descriptor get(cudnnBackendAttributeName_t, cudnnBackendDescriptorType_t, const char* what);
  std::vector<Descriptor> get_all(cudnnBackendAttributeName_t, cudnnBackendDescriptorType_t, const char* what,
                                  std::int64_t room);

  cudnnBackendDescriptor_t raw() const { return raw_; }
  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }

 private:
  void note(const char* call, cudnnStatus_t status);

  cudnnBackendDescriptor_t raw_ = nullptr;
  const char* what_ = "";
  std::string error_;
};

inline Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, std::same_as<bool> auto value) {
  return set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
}

}  // namespace convclient
