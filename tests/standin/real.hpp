// The real cuDNN's sub-libraries: everything that they can do without a device is asked of them.
#pragma once

#include <string>

#include "tests/standin/forward.hpp"

namespace standin {

// Look a function up in the real libcudnn_graph, libcudnn_ops or libcudnn_cnn. The libraries are opened
// by absolute path: their SONAMEs may belong to another copy in this process.
void* find_graph(const char* name);
void* find_ops(const char* name);
void* find_cnn(const char* name);

// Whether the real libraries were found; says on stderr, once, if not.
bool real_cudnn_available();

// The folder that holds this library.
std::string own_directory();

#define STANDIN_REAL(find, name) inline constinit Lazy<decltype(::name)> name(#name, find);
namespace real {
STANDIN_REAL(find_graph, cudnnBackendCreateDescriptor)
STANDIN_REAL(find_graph, cudnnBackendDestroyDescriptor)
STANDIN_REAL(find_graph, cudnnBackendSetAttribute)
STANDIN_REAL(find_graph, cudnnBackendGetAttribute)
STANDIN_REAL(find_graph, cudnnBackendFinalize)
STANDIN_REAL(find_graph, cudnnGetLastErrorString)
STANDIN_REAL(find_ops, cudnnGetTensorNdDescriptor)
STANDIN_REAL(find_ops, cudnnGetFilterNdDescriptor)
STANDIN_REAL(find_ops, cudnnGetActivationDescriptor)
STANDIN_REAL(find_cnn, cudnnGetConvolutionNdDescriptor)
STANDIN_REAL(find_cnn, cudnnGetConvolutionGroupCount)
STANDIN_REAL(find_cnn, cudnnGetConvolutionMathType)
}  // namespace real
#undef STANDIN_REAL

}  // namespace standin
