// What to say about a call of cuDNN's that failed.
#pragma once

#include <cudnn.h>

#include <string>

namespace convclient {

// "cudnnBackendFinalize(plan): CUDNN_STATUS_NOT_SUPPORTED: cuDNN's own text where it has any".
// cudnnGetLastErrorString is read here, and reading it empties it.
std::string failure(const std::string& call, cudnnStatus_t status);

}  // namespace convclient
