// A stand-alone program for a bug report: one problem with one engine and its knobs, by cuDNN's graph API and
// CUDA's driver.
#pragma once

#include <string>

#include "shim/model/algorithm.hpp"
#include "shim/model/parsed.hpp"
#include "shim/model/problem.hpp"

namespace convpin::cli {

// C++17 with cudnn.h and cuda.h, its compile line in the first comment. It prints cuDNN's version, the GPU,
// each step that fails with its status and cuDNN's words, the workspace (bytes), a checksum of the output's
// bytes, its first NaN, and the time of a launch (ms). Fails for what it has no data for: other types than
// float, half, bfloat16 and double, fused graphs.
Parsed<std::string> repro_cpp(const Problem&, const EngineConfig&);

}  // namespace convpin::cli
