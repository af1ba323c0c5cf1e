// The words for operations, data types, layouts and pointwise operations: one table each, read both ways.
// Where a value has several names, the first is the one that is written.
#include <span>

#include "shim/model/problem.hpp"
#include "shim/model/text.hpp"

namespace convpin {
namespace {

struct Word {
  std::int32_t value;
  const char* name;
};

constexpr Word kOperationWords[] = {
    {0, "forward"},       {0, "fwd"},        {0, "fprop"}, {1, "backward_data"},  {1, "bwd_data"},
    {1, "dgrad"},         {2, "backward_filter"}, {2, "bwd_filter"}, {2, "wgrad"},
};

constexpr Word kDataTypes[] = {
    {0, "float"},     {0, "float32"},      {0, "fp32"},         {0, "single"},  {1, "double"},
    {1, "float64"},   {1, "fp64"},         {2, "half"},         {2, "float16"}, {2, "fp16"},
    {3, "int8"},      {4, "int32"},        {5, "int8x4"},       {6, "uint8"},   {7, "uint8x4"},
    {8, "int8x32"},   {9, "bfloat16"},     {9, "bf16"},         {10, "int64"},  {11, "boolean"},
    {11, "bool"},     {12, "fp8_e4m3"},    {12, "float8_e4m3"}, {12, "e4m3"},   {12, "float8_e4m3fn"},
    {13, "fp8_e5m2"}, {13, "float8_e5m2"}, {13, "e5m2"},
};

constexpr Word kLayouts[] = {
    {0, "nchw"},  {0, "ncdhw"}, {0, "ncw"},           {0, "channels_first"},   {0, "contiguous"}, {1, "nhwc"},
    {1, "ndhwc"}, {1, "nwc"},   {1, "channels_last"}, {1, "channels_last_3d"}, {2, "strided"},
};

// cudnnPointwiseMode_t. A forward activation is what people mean by its bare name.
constexpr Word kPointwise[] = {
    {0, "add"},
    {1, "mul"},
    {2, "min"},
    {3, "max"},
    {4, "sqrt"},
    {5, "add_square"},
    {6, "div"},
    {7, "mod"},
    {8, "pow"},
    {9, "sub"},
    {10, "abs"},
    {11, "ceil"},
    {12, "cos"},
    {13, "exp"},
    {14, "floor"},
    {15, "log"},
    {16, "neg"},
    {17, "rsqrt"},
    {18, "sin"},
    {19, "tan"},
    {20, "erf"},
    {21, "identity"},
    {22, "reciprocal"},
    {23, "atan2"},
    {100, "relu"},
    {101, "tanh"},
    {102, "sigmoid"},
    {103, "elu"},
    {104, "gelu"},
    {105, "softplus"},
    {106, "swish"},
    {107, "gelu_approx_tanh"},
    {200, "relu_bwd"},
    {201, "tanh_bwd"},
    {202, "sigmoid_bwd"},
    {203, "elu_bwd"},
    {204, "gelu_bwd"},
    {205, "softplus_bwd"},
    {206, "swish_bwd"},
    {207, "gelu_approx_tanh_bwd"},
    {300, "cmp_eq"},
    {301, "cmp_neq"},
    {302, "cmp_gt"},
    {303, "cmp_ge"},
    {304, "cmp_lt"},
    {305, "cmp_le"},
    {400, "logical_and"},
    {401, "logical_or"},
    {402, "logical_not"},
    {501, "gen_index"},
    {601, "binary_select"},
};

// cudnnBackendDescriptorType_t of operations that are not pointwise.
constexpr Word kOtherOperations[] = {
    {10, "convolution_forward"}, {11, "convolution_backward_filter"}, {12, "convolution_backward_data"},
    {14, "gen_stats"}, {19, "matmul"},   {20, "bn_finalize"}, {22, "reduction"},    {23, "bn_bwd_weights"}, {25, "resample_fwd"},
    {26, "resample_bwd"}, {27, "concat"}, {28, "signal"},      {29, "norm_forward"}, {30, "norm_backward"},  {31, "reshape"},
    {33, "rng"},          {36, "block_scale_quantize"}, {37, "block_scale_dequantize"},
};
constexpr std::string_view kBefore = "pre.";

const char* word_for(std::span<const Word> words, std::int32_t value) {
  for (const Word& word : words)
    if (word.value == value) return word.name;
  return nullptr;
}

std::optional<std::int32_t> value_of(std::span<const Word> words, std::string_view text) {
  const std::string wanted = lower(trim(text));
  for (const Word& word : words)
    if (wanted == word.name) return word.value;
  return std::nullopt;
}

// Values that no table knows are written as a number behind this prefix, and read back.
std::string word_or_number(std::span<const Word> words, std::int32_t value, const char* prefix) {
  const char* word = word_for(words, value);
  return word ? word : prefix + std::to_string(value);
}

std::optional<std::int32_t> value_or_number(std::span<const Word> words, std::string_view text,
                                            std::string_view prefix) {
  if (auto value = value_of(words, text)) return value;
  const std::string wanted = lower(trim(text));
  if (!wanted.starts_with(prefix)) return std::nullopt;
  return integer_from<std::int32_t>(std::string_view(wanted).substr(prefix.size()));
}

struct TypeSize {
  DataType type;
  std::size_t bytes;
};
constexpr TypeSize kSizes[] = {
    {DataType::Float, 4},    {DataType::Double, 8},   {DataType::Half, 2},  {DataType::Int8, 1},
    {DataType::Int32, 4},    {DataType::Int8x4, 4},   {DataType::UInt8, 1}, {DataType::UInt8x4, 4},
    {DataType::Int8x32, 32}, {DataType::BFloat16, 2}, {DataType::Int64, 8}, {DataType::Boolean, 1},
    {DataType::Fp8E4M3, 1},  {DataType::Fp8E5M2, 1},
};

}  // namespace

const char* name_of(Operation operation) {
  const char* name = word_for(kOperationWords, static_cast<std::int32_t>(operation));
  return name ? name : "unknown";
}

std::string words_for(Operation operation) {
  std::string words = name_of(operation);
  for (char& c : words)
    if (c == '_') c = ' ';
  return words;
}

std::string name_of(DataType type) {
  return word_or_number(kDataTypes, static_cast<std::int32_t>(type), "type");
}

std::string fused_name(std::int32_t value) {
  if (value >= kFusedBefore) return std::string(kBefore) + fused_name(value - kFusedBefore);
  if (value >= kFusedOther) return word_or_number(kOtherOperations, value - kFusedOther, "operation");
  return word_or_number(kPointwise, value, "pointwise");
}

std::optional<std::int32_t> fused_from(std::string_view text) {
  const std::string wanted = lower(trim(text));
  const bool before = wanted.starts_with(kBefore);
  const std::string_view name = std::string_view(wanted).substr(before ? kBefore.size() : 0);
  auto value = value_or_number(kPointwise, name, "pointwise");
  if (!value) {
    value = value_or_number(kOtherOperations, name, "operation");
    if (value) *value += kFusedOther;
  }
  if (value && before) *value += kFusedBefore;
  return value;
}

std::optional<Operation> operation_from(std::string_view text) {
  const auto value = value_of(kOperationWords, text);
  return value ? std::optional(static_cast<Operation>(*value)) : std::nullopt;
}

std::optional<DataType> data_type_from(std::string_view text) {
  const auto value = value_or_number(kDataTypes, text, "type");
  return value ? std::optional(static_cast<DataType>(*value)) : std::nullopt;
}

std::optional<Layout> layout_from(std::string_view text) {
  const auto value = value_of(kLayouts, text);
  return value ? std::optional(static_cast<Layout>(*value)) : std::nullopt;
}

std::string layout_name(Layout layout, std::int32_t rank) {
  if (layout == Layout::Strided) return "strided";
  const bool first = layout == Layout::ChannelsFirst;
  switch (rank) {
    case 3:
      return first ? "ncw" : "nwc";
    case 4:
      return first ? "nchw" : "nhwc";
    case 5:
      return first ? "ncdhw" : "ndhwc";
    default:
      return first ? "channels_first" : "channels_last";
  }
}

std::size_t size_of(DataType type) {
  for (const TypeSize& entry : kSizes)
    if (entry.type == type) return entry.bytes;
  return 0;
}

DataType usual_compute_type(DataType x) {
  switch (x) {
    case DataType::Double:
      return DataType::Double;
    case DataType::Int8:
    case DataType::Int8x4:
    case DataType::Int8x32:
    case DataType::UInt8:
    case DataType::UInt8x4:
    case DataType::Int32:
      return DataType::Int32;
    default:
      return DataType::Float;
  }
}

}  // namespace convpin
