// The backend API's descriptor types and attributes in cuDNN's own words.
#pragma once

#include <string>

namespace convpin {

std::string descriptor_name(int type);           // cudnnBackendDescriptorType_t: "OPERATIONGRAPH"; "99" for an unknown one
std::string attribute_name(int attribute);       // cudnnBackendAttributeName_t: "TENSOR_DIMENSIONS"

}  // namespace convpin
