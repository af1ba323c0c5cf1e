#include "shim/model/backend_names.hpp"

namespace convpin {

std::string descriptor_name(int type) {
  switch (type) {
#define CONVPIN_DESCRIPTOR(value, name) \
  case value: return #name;
#define CONVPIN_ATTRIBUTE(value, name)
#include "shim/model/backend_names.def"
#undef CONVPIN_DESCRIPTOR
#undef CONVPIN_ATTRIBUTE
    default: return std::to_string(type);
  }
}

std::string attribute_name(int attribute) {
  switch (attribute) {
#define CONVPIN_DESCRIPTOR(value, name)
#define CONVPIN_ATTRIBUTE(value, name) \
  case value: return #name;
#include "shim/model/backend_names.def"
#undef CONVPIN_DESCRIPTOR
#undef CONVPIN_ATTRIBUTE
    default: return std::to_string(attribute);
  }
}

}  // namespace convpin
