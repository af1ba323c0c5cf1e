// Which convolutions, GPUs and cuDNN versions a rule or a denial is for, finer than the problem's text form says it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shim/model/parsed.hpp"
#include "shim/model/problem.hpp"

namespace convpin {

// Where this process convolves.
struct Place {
  std::string device;                            // the GPU's name, "NVIDIA H200"; "" where it is not known
  std::size_t cudnn_version = 0;                 // as cudnnGetVersion gives it: 91900, and 8907 for 8.9.7
};

// From low to high, both included. Without bounds it holds any number.
struct Range {
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
  bool holds(std::int64_t number) const { return low <= number && number <= high; }
  bool operator==(const Range&) const = default;
};
using Ranges = std::vector<Range>;

// "3", "128..512", "128..", "..512", "-1" or "*" for any.
Parsed<Range> parse_range(std::string_view);

// A span of cuDNN versions, and how it was written. The ends are in comparable_version's numbers.
struct Versions {
  Range range;
  std::string text;
};
// ">=9.10", "<9.5", "9.1 - 9.4", "9.19" (any 9.19.x), "9.19.0"; several separated by commas must all hold.
Parsed<Versions> parse_versions(std::string_view);
// cudnnGetVersion's number, whose digits mean another thing in cuDNN 8, as one that can be compared: 9019000 for 9.19.0.
std::int64_t comparable_version(std::size_t cudnn_version);
std::string version_text(std::size_t cudnn_version);         // "9.19.0"

// `*` is any text, `?` any one character; letters in any case.
bool matches_glob(std::string_view glob, std::string_view text);

// What is left out, or empty, matches anything. x, w and y are the forward convolution's tensors in all operations.
struct Match {
  std::optional<Ranges> x, w, y;                 // one for each dimension, in cuDNN's order
  std::optional<Ranges> pad, stride, dilation;   // one for each spatial dimension, or one for all
  std::optional<Range> groups;
  std::optional<Range> dims;                     // how many spatial dimensions
  std::vector<DataType> dtypes;                  // of x: one of these
  std::vector<Layout> layouts;                   // of x
  std::optional<bool> fused;                     // whether operations are fused behind the convolution
  std::vector<std::string> devices;              // globs on the GPU's name
  std::vector<Versions> cudnn;

  bool matches(const Problem&, const Place&) const;
  bool matches(const Place&) const;              // the GPU and cuDNN alone
  bool matches(const Problem&) const;            // all but these
};

}  // namespace convpin
