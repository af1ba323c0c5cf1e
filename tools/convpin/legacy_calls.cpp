#include "tools/convpin/legacy_calls.hpp"

#include <dlfcn.h>

#include <type_traits>

#include "shim/hooks/signature.hpp"

namespace {

void* library = nullptr;

// A function that this cuDNN lacks fails, or says nothing.
template <typename Result, typename Function, typename... A>
Result pass_on(Function* function, A... arguments) {
  if (function) return function(arguments...);
  if constexpr (std::is_same_v<Result, cudnnStatus_t>) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  } else if constexpr (std::is_same_v<Result, const char*>) {
    return "";
  }
}

}  // namespace

#define PASS_ON(name, count)                                                                              \
  extern "C" convpin::Signature<decltype(name)>::Result name(CONVPIN_PARAMETERS_##count(name)) {          \
    using Result = convpin::Signature<decltype(name)>::Result;                                            \
    static const auto function = reinterpret_cast<decltype(&::name)>(dlsym(library, #name));              \
    return pass_on<Result>(function, CONVPIN_ARGUMENTS_##count);                                          \
  }
PASS_ON(cudnnGetErrorString, 1)
PASS_ON(cudnnGetLastErrorString, 2)
PASS_ON(cudnnBackendCreateDescriptor, 2)
PASS_ON(cudnnBackendDestroyDescriptor, 1)
PASS_ON(cudnnBackendSetAttribute, 5)
PASS_ON(cudnnBackendGetAttribute, 6)
PASS_ON(cudnnBackendFinalize, 1)
PASS_ON(cudnnCreateTensorDescriptor, 1)
PASS_ON(cudnnDestroyTensorDescriptor, 1)
PASS_ON(cudnnSetTensorNdDescriptor, 5)
PASS_ON(cudnnCreateFilterDescriptor, 1)
PASS_ON(cudnnDestroyFilterDescriptor, 1)
PASS_ON(cudnnSetFilterNdDescriptor, 5)
PASS_ON(cudnnCreateActivationDescriptor, 1)
PASS_ON(cudnnDestroyActivationDescriptor, 1)
PASS_ON(cudnnSetActivationDescriptor, 4)
PASS_ON(cudnnCreateConvolutionDescriptor, 1)
PASS_ON(cudnnDestroyConvolutionDescriptor, 1)
PASS_ON(cudnnSetConvolutionNdDescriptor, 7)
PASS_ON(cudnnSetConvolutionGroupCount, 2)
PASS_ON(cudnnSetConvolutionMathType, 2)
PASS_ON(cudnnGetConvolutionMathType, 2)
PASS_ON(cudnnConvolutionForward, 13)
PASS_ON(cudnnConvolutionBiasActivationForward, 18)
PASS_ON(cudnnConvolutionBackwardData, 13)
PASS_ON(cudnnConvolutionBackwardFilter, 13)
PASS_ON(cudnnGetConvolutionForwardWorkspaceSize, 7)
PASS_ON(cudnnGetConvolutionBackwardDataWorkspaceSize, 7)
PASS_ON(cudnnGetConvolutionBackwardFilterWorkspaceSize, 7)
PASS_ON(cudnnGetConvolutionForwardAlgorithm_v7, 8)
PASS_ON(cudnnGetConvolutionBackwardDataAlgorithm_v7, 8)
PASS_ON(cudnnGetConvolutionBackwardFilterAlgorithm_v7, 8)
PASS_ON(cudnnFindConvolutionForwardAlgorithmEx, 13)
PASS_ON(cudnnFindConvolutionBackwardDataAlgorithmEx, 13)
PASS_ON(cudnnFindConvolutionBackwardFilterAlgorithmEx, 13)

namespace convpin::cli {

void call_legacy_in(const Cudnn& cudnn) { library = cudnn.library.handle; }

}  // namespace convpin::cli
