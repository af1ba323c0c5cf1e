/* The CUDA driver's functions that a program of `convpin replay --repro` calls, on the host's memory: for the stand-in. */
#include <stdlib.h>
#include <string.h>

typedef unsigned long long Pointer;
int cuInit(unsigned flags) { return (int)(flags * 0); }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal; }
int cuDeviceGetName(char* name, int size, int device) { return strncpy(name, "the host", (size_t)size), device * 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) { return *context = context, device * 0; }
int cuCtxSetCurrent(void* context) { return !context; }
int cuCtxSynchronize(void) { return 0; }
int cuMemAlloc_v2(Pointer* memory, size_t bytes) { return !(*memory = (Pointer)aligned_alloc(256, (bytes + 255) / 256 * 256)); }
int cuMemcpyHtoD_v2(Pointer to, const void* from, size_t bytes) { return memcpy((void*)to, from, bytes), 0; }
int cuMemcpyDtoH_v2(void* to, Pointer from, size_t bytes) { return memcpy(to, (const void*)from, bytes), 0; }
int cuMemsetD8_v2(Pointer to, unsigned char value, size_t bytes) { return memset((void*)to, value, bytes), 0; }
int cuEventCreate(void** event, unsigned flags) { return *event = event, (int)(flags * 0); }
int cuEventRecord(void* event, void* stream) { return !event && stream; }
int cuEventSynchronize(void* event) { return !event; }
int cuEventElapsedTime_v2(float* ms, void* begin, void* end) { return *ms = 1, !begin || !end; }
int cuEventElapsedTime(float* ms, void* begin, void* end) { return *ms = 1, !begin || !end; }
int cuGetErrorName(int error, const char** name) { return *name = "failed", error * 0; }
