// A small graph of operations on tensors in host memory, and its evaluation. Graph plans and legacy
// calls both become one.
#pragma once

#include <cudnn.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/standin/conv.hpp"

namespace standin {

inline constexpr std::size_t max_rank = 5;

struct Tensor {
  std::int64_t uid = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::size_t rank = 4;
  std::array<std::int64_t, max_rank> dim{};     // N, C, [D,] [H,] W
  std::array<std::int64_t, max_rank> stride{};  // in elements
  bool is_virtual = false;

  std::int64_t count() const {
    std::int64_t product = 1;
    for (std::size_t i = 0; i < rank; ++i) product *= dim[i];
    return product;
  }
};

std::size_t size_of(cudnnDataType_t);  // 0 for types that the stand-in can't compute with

// Between a tensor in memory and packed values in the order of its dimensions.
template <typename T>
void load(const Tensor&, const void* memory, T* packed);
template <typename T>
void store(const Tensor&, const T* packed, void* memory);
// Rounds the values as storing and loading them would.
template <typename T>
void round_to(cudnnDataType_t, T* values, std::int64_t count);

struct Node {
  enum class Kind : std::uint8_t { Convolution, Add, Multiply, Relu, Identity, MaxPool };
  Kind kind = Kind::Convolution;
  std::size_t x = 0, b = 0, y = 0;           // indices of tensors: first and second input, result
  Operation operation = Operation::Forward;  // of a convolution
  Convolution conv{};                        // of a pooling too: its window is the filter
  double alpha = 1, beta = 0;  // convolution: alpha * conv(x, b) + beta * y; Add: alpha * x + beta * b
  double lower = 0, upper = 0, slope = 0;  // Relu

  bool has_second() const { return kind <= Kind::Multiply; }
};

struct Graph {
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;  // in any order
  bool in_double = false;   // computes in double, else in float (half and TF32 are computed in float)

  bool has_convolution() const;
  Operation operation() const;  // of its convolution
};

// The convolution of these tensors; only strides, padding and dilations are missing from it.
Convolution shape_of(const Tensor& x, const Tensor& w, const Tensor& y);

// Those, for as many dimensions as the tensors have.
struct Spatial {
  std::vector<std::int64_t> pad, stride, dilation;
};
void set_spatial(Convolution&, const Spatial&);

// `memory` gives a tensor's data by unique id, null where there is none. Returns the status to answer with.
cudnnStatus_t evaluate(const Graph&, Algorithm, const std::function<void*(std::int64_t)>& memory,
                       std::span<std::byte> workspace);

// A finalized execution plan: what it would run.
struct Plan {
  Graph graph;
  std::string pattern;  // cuDNN's name of the graph's kind, "CONV_FORWARD"
  int engine = -1;
  std::int64_t workspace = 0;
};
// From EXECUTION_PLAN_JSON_REPRESENTATION. Empty, with the reason, where the graph is not one of ours.
std::optional<Plan> parse_plan(const std::string& json, std::string& reason);

// Each kind of graph has its own engine numbers. A single convolution's kind: "CONV_FORWARD".
const char* pattern_of(Operation);
Algorithm algorithm_of_engine(const std::string& pattern, int engine);

}  // namespace standin
