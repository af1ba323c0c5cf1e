// What two rules have to do with each other, as far as their words tell: of those that match, the first counts.
#pragma once

#include "shim/model/rule.hpp"

namespace convpin::cli {

// Whether whatever `later` matches, on any GPU and cuDNN, is matched by `first` too. False where that can't be told.
bool covers(const Rule& first, const Rule& later);
// Whether something might match both, so that it counts which comes first. True where that can't be told.
bool may_meet(const Rule&, const Rule&);
// Its problem and its match exclude each other: no convolution can be both.
bool contradicts_itself(const Rule&);

}  // namespace convpin::cli
