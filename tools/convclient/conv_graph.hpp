// A convolution, forward or backward, as an operation graph of the backend API.
#pragma once

#include <cudnn.h>

#include <vector>

#include "shim/model/problem.hpp"
#include "tools/convclient/backend.hpp"

namespace convclient {

// The application's own names of the tensors, any numbers: the variant pack says by them which pointer is
// which. All tensors of one graph need different ones.
enum TensorId : std::int64_t { kX = 'x', kW = 'w', kY = 'y', kZ = 'z', kBias = 'b', kConvOut = 'C', kSumWithZ = 'Z', kSum = 'S' };

struct ConvGraph {
  std::vector<Descriptor> parts;  // tensors and operations, kept as long as the graph
  Descriptor graph;
};

// y = conv(x, w) + beta * y, dx = dgrad(w, dy) + beta * dx, dw = wgrad(x, dy) + beta * dw; and with
// problem.fused = {ADD, RELU_FWD}: y = relu(conv(x, w) + bias), or {ADD, ADD, RELU_FWD}: y = relu(conv(x, w) + z + bias).
// There problem.y is what the convolution writes, which lies nowhere; the last y, z and the bias have result_type(problem).
// The handle may be null: then heuristics, engines and plans need a device-properties descriptor instead.
ConvGraph build_conv_graph(const convpin::Problem&, double beta, cudnnHandle_t);

}  // namespace convclient
