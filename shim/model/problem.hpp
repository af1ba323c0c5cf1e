// A problem: one convolution as cuDNN sees it, and its canonical one-line text form.
//
// Plain data without CUDA. The text form is the same in the table, the log, a rule, the command line
// and stored results:
//   forward x=[32,64,56,56] w=[64,64,3,3] float nchw pad=1,1 stride=1,1 dilation=1,1 groups=1
// Parts that have their usual value are left out of it; they are, in this order:
//   wtype=half ytype=float  the filter's or the output's data type where it differs from x's
//   otype=half              the type of what the last fused operation writes, where it differs from the convolution's own
//                           output's (y, dx or dw), which is then between the two
//   compute=half            the compute type, where it is not the usual one (usual_compute_type)
//   wlayout=nhwc ylayout=.. the layout of w or y where it differs from x's
//   xstride=[..] wstride=[..] ystride=[..]   strides in elements, for each tensor that is not packed
//   postpad=0,1             padding after, where it differs from pad (padding before)
//   mode=convolution        true convolution (flipped filter); cross-correlation is the usual one
//   fused=add,relu          the other operations of the same graph, in its order: pointwise ones by their mode, others
//                           by their type (gen_stats, reduction); "pre.relu" where the result goes into the convolution
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "shim/model/parsed.hpp"

namespace convpin {

inline constexpr int kMaxDims = 8;       // CUDNN_DIM_MAX
inline constexpr int kMaxFused = 8;      // longer chains are not described and so not touched
// What else a convolution's graph holds, as numbers: a cudnnPointwiseMode_t, or kFusedOther + cudnnBackendDescriptorType_t
// of another operation; plus kFusedBefore where its result goes into the convolution.
inline constexpr std::int32_t kFusedOther = 1000, kFusedBefore = 10000;

// What is computed from what. x, w and y are the forward convolution's tensors in all three: backward_data writes dx (x's
// place) from w and dy, backward_filter writes dw from x and dy.
enum class Operation : std::int32_t { Forward, BackwardData, BackwardFilter };
inline constexpr Operation kOperations[] = {Operation::Forward, Operation::BackwardData, Operation::BackwardFilter};

// Values are cudnnDataType_t's (cuDNN API reference, cudnnDataType_t), so that one no table knows
// still passes through as a number.
enum class DataType : std::int32_t {
  Float = 0, Double = 1, Half = 2, Int8 = 3, Int32 = 4, Int8x4 = 5, UInt8 = 6, UInt8x4 = 7,
  Int8x32 = 8, BFloat16 = 9, Int64 = 10, Boolean = 11, Fp8E4M3 = 12, Fp8E5M2 = 13,
};
inline constexpr DataType kOwnType{std::numeric_limits<std::int32_t>::min()};  // Problem::otype: no other

// dims and strides in cuDNN's order, whatever the layout: N C [D] H W for x and y, K C/groups [D] R S
// for w. Strides in elements.
struct Tensor {
  DataType type = DataType::Float;
  std::int32_t rank = 0;
  std::array<std::int64_t, kMaxDims> dims{};
  std::array<std::int64_t, kMaxDims> strides{};
  bool operator==(const Tensor&) const = default;
};

// Trivially copyable and without padding bytes, so that it can be hashed as it lies in memory.
struct Problem {
  Operation operation = Operation::Forward;
  DataType compute = DataType::Float;
  Tensor x, w, y;
  std::array<std::int64_t, kMaxDims> pad{}, post_pad{}, stride{}, dilation{};  // [spatial_dims()]
  std::int32_t groups = 1;
  std::int32_t flipped = 0;                      // 1: CUDNN_CONVOLUTION, 0: CROSS_CORRELATION
  std::int32_t fused_count = 0;
  std::array<std::int32_t, kMaxFused> fused{};   // in graph order
  // What the last fused operation writes, where it has another type than the convolution's own output.
  DataType otype = kOwnType;
  int spatial_dims() const { return x.rank - 2; }
  bool operator==(const Problem&) const = default;
};
static_assert(std::has_unique_object_representations_v<Problem>);

std::uint64_t hash(const Problem&);

// Layouts as people write them, for any rank: "nchw"/"nhwc" with 4 dims, "ncdhw"/"ndhwc" with 5,
// "strided" for what is neither. Strides of dims of size 1 say nothing and are not looked at; where
// that leaves both open, the layout that x, w and y can share, else nchw.
enum class Layout : std::int32_t { ChannelsFirst, ChannelsLast, Strided };
Layout layout_of(const Tensor&);
void set_packed_strides(Tensor&, Layout);        // Strided is not allowed
std::string layout_name(Layout, std::int32_t rank);          // "nchw", "ndhwc", "strided", ...
std::optional<Layout> layout_from(std::string_view);         // the names of any rank, channels_first, channels_last

// The three tensors' layouts as the text form says them: open ones agree with the others where they can.
struct Layouts { Layout x, w, y; };
Layouts layouts_of(const Problem&);
// The same problem with the strides that say nothing (dims of size 1 of a packed tensor) set as its
// layout would, and without an otype that says nothing: equal exactly where the text forms are.
// parse_problem(to_text(p)) is canonical(p).
Problem canonical(const Problem&);

DataType usual_compute_type(DataType x);         // float for float, half, bfloat16, fp8; double; int32 for int8
const Tensor& written(const Problem&);           // y, dx or dw: the operation's output
DataType result_type(const Problem&);            // of what the whole graph writes: the last fused operation, or the convolution
Problem in_memory(const Problem&);               // the same with that type in written()'s place: x, w and y as they lie in memory
const char* name_of(Operation);                  // "forward", "backward_data", "backward_filter"
std::string words_for(Operation);                // "backward data", for sentences
std::string name_of(DataType);                   // "float", "half", "bfloat16", ...; "type17" for an unknown
std::string fused_name(std::int32_t);            // "add", "relu", "gen_stats", "pre.relu"; "pointwise37", "operation99" for an unknown
std::optional<std::int32_t> fused_from(std::string_view);
std::optional<Operation> operation_from(std::string_view);   // also fwd, fprop, bwd_data, dgrad, bwd_filter, wgrad; any case
std::optional<DataType> data_type_from(std::string_view);    // also float32/fp32, float16/fp16, bf16, float64/fp64/double, ...
std::size_t size_of(DataType);                   // bytes an element; 0 for an unknown type
std::size_t bytes_of(const Tensor&);             // from the first to the last element, whatever the strides

// The graph's operations in order: what goes into the convolution, "convolution", what comes behind it.
std::vector<std::string> operations_of(const Problem&);

// y's dims from x, w, padding, stride, dilation (cuDNN API reference,
// cudnnGetConvolutionNdForwardOutputDim). Strides packed in `layout`.
Tensor output_of(const Problem&, Layout layout, DataType type);

std::string to_text(const Problem&);             // the canonical form above
Parsed<Problem> parse_problem(std::string_view); // any order of parts; missing: float nchw pad=0 stride=1
                                                 // dilation=1 groups=1. x and w are needed. A `*` is an error.

// The text form with any part left out, and `*` for any number (or, for a whole part, any value).
// An empty pattern matches everything. Layout and type spellings as in data_type_from and
// nchw/channels_first/contiguous, nhwc/channels_last (the 5-D names too; a rank-independent match).
struct ProblemPattern {
  struct Numbers {                               // -1: any
    std::int32_t count = 0;
    std::array<std::int64_t, kMaxDims> at{};
  };
  std::optional<Operation> operation;
  std::optional<DataType> type, wtype, ytype, otype, compute;
  std::optional<Layout> layout, wlayout, ylayout;
  std::optional<Numbers> x, w, xstride, wstride, ystride;
  std::optional<Numbers> pad, post_pad, stride, dilation;      // one number stands for every dimension
  std::optional<std::int64_t> groups;
  std::optional<bool> flipped;
  std::optional<std::string> fused;              // "add,relu"; "" for: nothing fused (fused=none)
  bool matches(const Problem&) const;
};
Parsed<ProblemPattern> parse_problem_pattern(std::string_view);

}  // namespace convpin
