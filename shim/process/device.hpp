// The process and its GPU, for the log's header.
#pragma once

#include <functional>
#include <string>

#include "shim/hooks/real.hpp"
#include "shim/model/record.hpp"

namespace convpin {

// The current context's device. With `ask_nvml`, also clocks, power limit and MIG (loads libnvidia-ml.so.1: only
// where a log is asked for).
Device describe_device(const Library&, bool ask_nvml);
std::string command_line();

// For a process in which no cuDNN call reached us: why, in one line, if settings ask for anything and the process
// uses the GPU or has cuDNN loaded. Empty otherwise: a child such as /bin/true stays silent.
std::string silence_explained(const std::function<const char*(const char*)>& getenv_);

}  // namespace convpin
