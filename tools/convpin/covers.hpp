// Which rules leave nothing to those behind them, as far as their words tell: the first that matches counts.
#pragma once

#include "shim/model/rule.hpp"

namespace convpin::cli {

// Whether whatever `later` matches, on any GPU and cuDNN, is matched by `first` too. False where that can't be told.
bool covers(const Rule& first, const Rule& later);
// Its problem and its match exclude each other: no convolution can be both.
bool contradicts_itself(const Rule&);

}  // namespace convpin::cli
