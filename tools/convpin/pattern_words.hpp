// What a rule is for, in words: the reverse of parse_problem_pattern and of a rule's match.
#pragma once

#include <string>

#include "shim/model/rule.hpp"

namespace convpin::cli {

// The text form with the parts that the pattern has: "x=[*,64,56,56] half nhwc"; empty for one that matches everything.
std::string to_text(const ProblemPattern&);
// The same behind the operation, which a rule may say elsewhere.
std::string with_operation(const ProblemPattern&, Operation);
// All but the place: "forward w=[64,64,3,3] where x=[128..512,*,*,*] dtype=half,bfloat16".
std::string what_for(Operation, const ProblemPattern&, const Match&);
// "NVIDIA H200, cuDNN 9.19.0"; empty for a match that is for all.
std::string place_words(const Match&);
// Both: "forward half (cuDNN 9.19.0)".
std::string whole_for(Operation, const ProblemPattern&, const Match&);

}  // namespace convpin::cli
