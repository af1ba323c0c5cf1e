// What is known of a problem on the legacy API, and whether it must fail.
#pragma once

#include <string>

#include "shim/legacy/adapter.hpp"
#include "shim/process/runtime.hpp"

namespace convpin::legacy {

std::string algorithm_text(const Library&, Operation, int number);   // "1 IMPLICIT_PRECOMP_GEMM", as the log has it
ProblemState* state_of(const Library&, const Problem&);

std::string denial_of(const ProblemState&, int algorithm);   // by which denial it must not run; empty: by none
// Whether this convolution must fail, with this algorithm of the program's (-1: none yet), and then says why: no rule covers
// it, its rule can't be met and must be, or it is denied.
bool fails(const Library&, const Descriptors&, ProblemState&, int algorithm);

}  // namespace convpin::legacy
