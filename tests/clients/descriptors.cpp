// What cuDNN answers without a GPU, call by call, as numbers: they differ between cuDNN 8 and 9. Compiled with cuDNN 9's
// headers, as convpin is; all that is called here has the same signature in both.
//
//   run: LD_LIBRARY_PATH=<libcudnn's folder> descriptors_8                              linked to libcudnn.so.8
//   run: LD_LIBRARY_PATH=<libcudnn's folder> CLIENT_CUDNN=libcudnn.so.8 descriptors_lookup
#include <cudnn.h>

#include <cstdio>
#include <cstring>

namespace {

void say(const char* what, int status) { std::printf("%s: %d\n", what, status); }

void backend_tensor(bool complete) {
  cudnnBackendDescriptor_t tensor = nullptr;
  say("create", cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &tensor));
  const cudnnDataType_t type = CUDNN_DATA_FLOAT;
  const int64_t dims[] = {2, 8, 14, 14}, strides[] = {1568, 196, 14, 1}, id = 'x', alignment = 16;
  say("type", cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type));
  say("dims", cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims));
  if (complete) {
    say("strides", cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides));
    say("id", cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id));
    say("alignment", cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment));
  }
  say(complete ? "finalize" : "finalize what is incomplete", cudnnBackendFinalize(tensor));
  int64_t count = 0, back[8] = {};
  say("get", cudnnBackendGetAttribute(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 8, &count, back));
  std::printf("dims back: %d %d\n", static_cast<int>(count), static_cast<int>(back[1]));
  say("destroy", cudnnBackendDestroyDescriptor(tensor));
}

}  // namespace

int main() {
  std::printf("version: %zu\n", cudnnGetVersion());
  backend_tensor(true);
  backend_tensor(false);
  cudnnHandle_t handle = nullptr;
  say("handle without a GPU", cudnnCreate(&handle));

  cudnnTensorDescriptor_t x, y;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t convolution;
  const int dims[] = {2, 8, 14, 14}, strides[] = {1568, 196, 14, 1}, filter[] = {8, 8, 3, 3}, one[] = {1, 1};
  say("x", cudnnCreateTensorDescriptor(&x) + cudnnSetTensorNdDescriptor(x, CUDNN_DATA_FLOAT, 4, dims, strides));
  say("y", cudnnCreateTensorDescriptor(&y) + cudnnSetTensorNdDescriptor(y, CUDNN_DATA_FLOAT, 4, dims, strides));
  say("w", cudnnCreateFilterDescriptor(&w) +
               cudnnSetFilterNdDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, filter));
  say("convolution", cudnnCreateConvolutionDescriptor(&convolution) +
                         cudnnSetConvolutionNdDescriptor(convolution, 2, one, one, one, CUDNN_CROSS_CORRELATION,
                                                         CUDNN_DATA_FLOAT));
  std::size_t bytes = 0;
  int count = 0;
  cudnnConvolutionFwdAlgoPerf_t results[16];
  say("workspace", cudnnGetConvolutionForwardWorkspaceSize(nullptr, x, w, convolution, y,
                                                           CUDNN_CONVOLUTION_FWD_ALGO_GEMM, &bytes));
  say("query", cudnnGetConvolutionForwardAlgorithm_v7(nullptr, x, w, convolution, y, 16, &count, results));
  return 0;
}
