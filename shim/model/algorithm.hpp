// The names a person may give: cuDNN's legacy algorithms, engine tags, and the one table that says
// which graph engines a legacy algorithm stands for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shim/model/parsed.hpp"
#include "shim/model/problem.hpp"

namespace convpin {

// One legacy algorithm and the engines that run it in the graph API. cuDNN documents no such map
// (cudnn-frontend issue 20): it is read off the kernels that both launch, and tests/gpu checks it.
struct Algorithm {
  int number;                        // the value in cudnnConvolution{Fwd,BwdData,BwdFilter}Algo_t
  const char* name;                  // the enum's tail, e.g. "IMPLICIT_PRECOMP_GEMM", "ALGO_1"
  std::span<const int> engines;      // global engine indices, the plain one first. More than one: a family,
                                     // offered whole in the heuristics' order
};
// All algorithms of the operation, by number, with the engines that a graph of the bare convolution has. A graph with
// operations fused behind it numbers its engines differently (61 for conv + bias + relu where the bare one has 81,
// measured on 9.19): there an engine's number says nothing of an algorithm. `cudnn_version` as cudnnGetVersion() gives it (91900).
std::span<const Algorithm> algorithms(Operation, std::size_t cudnn_version);
// The algorithm that `engine` belongs to, -1 for none.
int algorithm_of_engine(Operation, std::size_t cudnn_version, int engine);
// "IMPLICIT_PRECOMP_GEMM" for 1; "" for a number that is none.
const char* algorithm_name(Operation, int number);

struct Knob {
  int type;                          // cudnnBackendKnobType_t
  std::int64_t value;
  auto operator<=>(const Knob&) const = default;
};
// An engine configuration. knobs sorted by type.
struct EngineConfig {
  int engine = -1;
  std::vector<Knob> knobs;
  bool operator==(const EngineConfig&) const = default;
};
std::string to_tag(const EngineConfig&);         // "eng38_k2=1_k13=0": cudnn-frontend's tag without its prefix

// What a rule or CONV_FWD_ALGO asks for.
struct Request {
  enum class Kind : std::uint8_t { FrameworkChoice, Algorithm, Engine, ExactEngine };
  Kind kind = Kind::FrameworkChoice;
  int algorithm = -1;                // Kind::Algorithm
  EngineConfig engine;               // Engine: the heuristics' own configuration, else the default; ExactEngine: these knobs
  std::string to_text() const;       // "1 (IMPLICIT_PRECOMP_GEMM)", "eng38", "eng38_k2=1", "-1 (the framework's choice)"
  Operation operation = Operation::Forward;
};
// One of the operation's numbers (forward: 0-7), cuDNN's name (full or its tail, any case), an engine tag (eng38,
// eng38_k2=1_k13=0, ConvFwd_eng38_..., any case, knob order free), or -1. Surrounding blanks are ignored. `eng38` is
// Engine; with at least one knob it is ExactEngine.
Parsed<Request> parse_request(Operation, std::string_view);
// Several, in order of preference, separated by commas; -1 can only be the last.
Parsed<std::vector<Request>> parse_requests(Operation, std::string_view);

}  // namespace convpin
