// The example client's calls of cuDNN, which is linked to it elsewhere, here passed on to a cuDNN that we opened.
#pragma once

#include "tools/convpin/cudnn.hpp"

namespace convpin::cli {

void call_legacy_in(const Cudnn&);               // before the first call; the same copy for the life of the process

}  // namespace convpin::cli
