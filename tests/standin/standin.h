// What the stand-in exports beside cuDNN's own functions, for tests.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// How often an algorithm ran in this process: "direct", "implicit_gemm", "im2col_gemm", "scatter", "fft",
// "fft_tiling", "winograd", "winograd_nonfused", or "backward_data/direct" for one operation's; null for all
// together.
unsigned long long cudnnStandinRuns(const char* algorithm);

// Multiplications of two real numbers done by all convolutions so far.
unsigned long long cudnnStandinMultiplies(void);

// Allocations made by the driver table's cuMemAllocAsync and not yet freed.
unsigned long long cudnnStandinAllocations(void);

// A host implementation of the CUDA driver function of that name, with cuda.h's signature; null for an
// unknown name. driver.cpp lists them.
const void* cudnnStandinDriver(const char* name);

#ifdef __cplusplus
}
#endif
