// What a program for a bug report does with cuDNN's backend API, for whatever language it is then written in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shim/model/algorithm.hpp"
#include "shim/model/parsed.hpp"
#include "shim/model/problem.hpp"

namespace convpin::cli {

// An enumerator of cuDNN's headers.
struct Enumerator {
  const char* name;
  int number;
};

// What the values of an attribute are: cuDNN's type, and the languages'.
struct ElementType {
  Enumerator type;
  const char *cpp, *python;
};

// A value as the languages write it, and what a number stands for where Python's doesn't say it.
struct StepValue {
  std::string cpp, python, meaning{};
};

// cudnnBackendCreateDescriptor of type `what`, cudnnBackendSetAttribute of `what` or cudnnBackendFinalize, of the descriptor
// that is called `descriptor`.
struct Step {
  enum class Kind { Create, Set, Finalize };
  Kind kind;
  std::string descriptor;
  Enumerator what{};
  const ElementType* element = nullptr;  // Set
  std::vector<StepValue> values{};       // Set
};

// An element in its own bits: five multiples of a half from -1 to 1, and what tells a NaN, as both languages write them.
struct ElementBits {
  DataType type;
  Enumerator cudnn;  // a cudnnDataType_t
  const char *values, *exponent, *mantissa;
};

// A tensor with memory, NAME_data in the program: filled from `seed`.
struct Buffer {
  std::string name;
  std::int64_t id = 0;  // in the graph
  Tensor tensor;
  int seed = 0;
  const ElementBits* bits = nullptr;
};

struct ReproSteps {
  std::vector<Step> plan;  // up to the finalized descriptor `plan`; reads `handle`
  std::vector<Buffer> buffers;
  std::size_t output = 0;  // which of the buffers is written
  std::vector<Step> pack;  // the variant pack `pack`; reads the buffers' NAME_data and `workspace`
};

// Fails as repro_cpp and repro_python do.
Parsed<ReproSteps> repro_steps(const Problem&, const EngineConfig&);

const std::vector<ElementType>& element_types();

}  // namespace convpin::cli
