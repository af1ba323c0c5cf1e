// The same convolution in float64 by the definition, and how far from it a result may be.
#pragma once

#include <cstdint>
#include <vector>

#include "shim/model/problem.hpp"
#include "tools/convclient/data.hpp"

namespace convclient {

// Whether the reference knows what is fused to it: nothing, or behind forward fused=add,relu (a bias) or fused=add,add,relu
// (a tensor z like the result, then a bias).
bool knows_fused(const convpin::Problem&);
// Whether it knows the problem: that, and data of types that read() knows.
bool has_reference(const convpin::Problem&);

// What goes into y = relu?(conv(x, w) + beta * y + z + bias), dx = dgrad(w, dy) + beta * dx, or
// dw = wgrad(x, dy) + beta * dw: x, w and y, the one that is written as it was before, in the result's type as z and bias
// are. z, bias empty: none. relu only with a bias.
struct Inputs {
  Bytes x, w, y, z, bias;
  double beta = 0;

  Bytes& written(const convpin::Problem&);
  const Bytes& written(const convpin::Problem&) const;
};

// The output's element `index` (row-major over its dims, whatever its layout).
double reference_at(const convpin::Problem&, const Inputs&, std::int64_t index);

// How many products are summed in an element of the output, at most.
double products_of(const convpin::Problem&);

// All of the output's elements where they are few, else `limit` of them chosen by the seed.
std::vector<std::int64_t> elements_to_check(std::int64_t count, std::size_t limit, std::uint64_t seed);

// max |out - ref| / max |ref| over those elements; NaN where the output holds a NaN.
double relative_error(const convpin::Problem&, const Inputs&, const Bytes& output,
                      const std::vector<std::int64_t>& elements);

// How large relative_error may be for a correct algorithm. `tf32`: float data may be rounded to TF32.
double error_bound(const convpin::Problem&, bool tf32);

}  // namespace convclient
