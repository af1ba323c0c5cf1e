// What the settings deny, and what that takes from the lists by which cuDNN answers the program.
#pragma once

#include <string>
#include <vector>

#include "shim/process/runtime.hpp"

namespace convpin {

// What the settings deny here; null: nothing.
const Denial* denied(const ProblemState&, const EngineConfig&);
const Denial* denied_algorithm(const ProblemState&, int algorithm);

// Notes a list of cuDNN's where there are denials, in its order and in the words by which the log says what ran. Of several
// lists (programs ask for the fallbacks too) one comes behind the other.
void note_list(ProblemState&, const std::vector<Offer>&);
// What of these lists denials took that came before what ran: "before it in cuDNN's list: eng70 is denied by pins.toml:7:1".
// Empty: nothing, or what ran is not of them.
std::string denied_before(ProblemState&, const std::string& ran);
// Where denials leave nothing of this list, so that the program is given none, leaves it for cudnnGetLastErrorString; where
// none of the lists so far held anything else, says once by which, in the log as a choice by which nothing ran.
void say_all_denied(ProblemState&, const std::vector<Offer>& list) noexcept;

}  // namespace convpin
