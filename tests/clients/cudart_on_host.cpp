// cudnn-frontend's headers call the CUDA runtime for events and for the state of the stream. The clients are
// linked with the real runtime, statically. On the stand-in there is no GPU and the runtime answers each call
// with an error; there these wrappers (linked with --wrap) let the host's clock and an idle stream answer
// instead. On a GPU every call goes to the runtime unchanged.

#include <cuda_runtime_api.h>

#include <chrono>

#include "tools/convclient/memory.hpp"

namespace {

using Clock = std::chrono::steady_clock;

bool on_host() {
  static const bool yes = convclient::on_standin();
  return yes;
}

Clock::time_point& time_of(cudaEvent_t event) { return *reinterpret_cast<Clock::time_point*>(event); }

}  // namespace

extern "C" {

cudaError_t __real_cudaEventCreate(cudaEvent_t*);
cudaError_t __wrap_cudaEventCreate(cudaEvent_t* event) {
  if (!on_host()) return __real_cudaEventCreate(event);
  *event = reinterpret_cast<cudaEvent_t>(new Clock::time_point);
  return cudaSuccess;
}

cudaError_t __real_cudaEventDestroy(cudaEvent_t);
cudaError_t __wrap_cudaEventDestroy(cudaEvent_t event) {
  if (!on_host()) return __real_cudaEventDestroy(event);
  delete &time_of(event);
  return cudaSuccess;
}

cudaError_t __real_cudaEventRecord(cudaEvent_t, cudaStream_t);
cudaError_t __wrap_cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (!on_host()) return __real_cudaEventRecord(event, stream);
  time_of(event) = Clock::now();
  return cudaSuccess;
}

cudaError_t __real_cudaEventSynchronize(cudaEvent_t);
cudaError_t __wrap_cudaEventSynchronize(cudaEvent_t event) {
  return on_host() ? cudaSuccess : __real_cudaEventSynchronize(event);
}

cudaError_t __real_cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t);
cudaError_t __wrap_cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t stop) {
  if (!on_host()) return __real_cudaEventElapsedTime(ms, start, stop);
  *ms = std::chrono::duration<float, std::milli>(time_of(stop) - time_of(start)).count();
  return cudaSuccess;
}

cudaError_t __real_cudaDeviceSynchronize();
cudaError_t __wrap_cudaDeviceSynchronize() {
  return on_host() ? cudaSuccess : __real_cudaDeviceSynchronize();
}

#if CUDART_VERSION >= 13000  // older: cudnn-frontend calls cudaStreamGetCaptureInfo_v2 or _v3
cudaError_t __real_cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*,
                                            cudaGraph_t*, const cudaGraphNode_t**, const cudaGraphEdgeData**,
                                            size_t*);
cudaError_t __wrap_cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                            unsigned long long* id, cudaGraph_t* graph,
                                            const cudaGraphNode_t** dependencies,
                                            const cudaGraphEdgeData** edges, size_t* count) {
  if (!on_host())
    return __real_cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, edges, count);
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
#endif

}  // extern "C"
