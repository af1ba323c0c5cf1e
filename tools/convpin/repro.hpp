// A stand-alone program for a bug report: one problem with one engine and its knobs, by cuDNN's graph API and
// CUDA's driver.
//
// In either language it prints cuDNN's version, the GPU, the step that fails with its status and cuDNN's words (and exits
// with 1), the workspace (bytes), the CRC-32 of the output's bytes, its first NaN, and the time of a launch (ms). The data
// are the same in both, so that equal engines give equal checksums. Both fail for what they have no data for (other types
// than float, half, bfloat16 and double) and for fused operations that this command can't build.
#pragma once

#include <string>

#include "shim/model/algorithm.hpp"
#include "shim/model/parsed.hpp"
#include "shim/model/problem.hpp"

namespace convpin::cli {

// C++17 with cudnn.h and cuda.h, its compile line in the first comment.
Parsed<std::string> repro_cpp(const Problem&, const EngineConfig&);
// Python 3.8 or later, without anything beside its standard library.
Parsed<std::string> repro_python(const Problem&, const EngineConfig&);

}  // namespace convpin::cli
