// Fails when a number in our tables of names is not the one in cuDNN's headers, or a name can't be read back.
#include <cudnn_graph.h>
#include <gtest/gtest.h>

#include "shim/model/candidate.hpp"
#include "shim/model/problem.hpp"
#include "shim/model/text.hpp"

namespace convpin {
namespace {

TEST(Names, DataTypesAreCudnns) {
  struct Row {
    cudnnDataType_t type;
    const char* name;
    std::size_t bytes;
  };
  const Row rows[] = {{CUDNN_DATA_FLOAT, "float", 4},       {CUDNN_DATA_DOUBLE, "double", 8},
                      {CUDNN_DATA_HALF, "half", 2},         {CUDNN_DATA_INT8, "int8", 1},
                      {CUDNN_DATA_INT32, "int32", 4},       {CUDNN_DATA_UINT8, "uint8", 1},
                      {CUDNN_DATA_BFLOAT16, "bfloat16", 2}, {CUDNN_DATA_INT64, "int64", 8},
                      {CUDNN_DATA_BOOLEAN, "boolean", 1},   {CUDNN_DATA_FP8_E4M3, "fp8_e4m3", 1},
                      {CUDNN_DATA_FP8_E5M2, "fp8_e5m2", 1}};
  for (const Row& row : rows) {
    const auto type = static_cast<DataType>(row.type);
    EXPECT_EQ(name_of(type), row.name);
    EXPECT_EQ(data_type_from(row.name), type);
    EXPECT_EQ(size_of(type), row.bytes) << row.name;
  }
  for (const char* name : {"float32", "fp32", "FLOAT"})
    EXPECT_EQ(data_type_from(name), DataType::Float) << name;
  for (const char* name : {"float16", "fp16", "Half"})
    EXPECT_EQ(data_type_from(name), DataType::Half) << name;
  for (const char* name : {"bf16", "BFloat16"}) EXPECT_EQ(data_type_from(name), DataType::BFloat16) << name;
  for (const char* name : {"float64", "fp64"}) EXPECT_EQ(data_type_from(name), DataType::Double) << name;
  EXPECT_EQ(data_type_from("type99"), static_cast<DataType>(99));
  EXPECT_EQ(size_of(static_cast<DataType>(99)), 0u);
  EXPECT_FALSE(data_type_from("type"));
  EXPECT_FALSE(data_type_from("floaty"));
}

TEST(Names, PointwiseModesAreCudnns) {
  // An entry's name is the enumerator's in lower case; a forward activation is called by its bare name.
#define MODE(tail) \
  { CUDNN_POINTWISE_##tail, #tail }
  const std::pair<cudnnPointwiseMode_t, std::string> modes[] = {
      MODE(ADD),         MODE(ADD_SQUARE),   MODE(DIV),          MODE(MAX),
      MODE(MIN),         MODE(MOD),          MODE(MUL),          MODE(POW),
      MODE(SUB),         MODE(ABS),          MODE(CEIL),         MODE(COS),
      MODE(EXP),         MODE(FLOOR),        MODE(LOG),          MODE(NEG),
      MODE(RSQRT),       MODE(SIN),          MODE(SQRT),         MODE(TAN),
      MODE(ERF),         MODE(IDENTITY),     MODE(RECIPROCAL),   MODE(ATAN2),
      MODE(RELU_FWD),    MODE(TANH_FWD),     MODE(SIGMOID_FWD),  MODE(ELU_FWD),
      MODE(GELU_FWD),    MODE(SOFTPLUS_FWD), MODE(SWISH_FWD),    MODE(GELU_APPROX_TANH_FWD),
      MODE(RELU_BWD),    MODE(TANH_BWD),     MODE(SIGMOID_BWD),  MODE(ELU_BWD),
      MODE(GELU_BWD),    MODE(SOFTPLUS_BWD), MODE(SWISH_BWD),    MODE(GELU_APPROX_TANH_BWD),
      MODE(CMP_EQ),      MODE(CMP_NEQ),      MODE(CMP_GT),       MODE(CMP_GE),
      MODE(CMP_LT),      MODE(CMP_LE),       MODE(LOGICAL_AND),  MODE(LOGICAL_OR),
      MODE(LOGICAL_NOT), MODE(GEN_INDEX),    MODE(BINARY_SELECT)};
#undef MODE
  for (const auto& [mode, tail] : modes) {
    std::string name = lower(tail);
    if (name.ends_with("_fwd")) name.resize(name.size() - 4);
    EXPECT_EQ(fused_name(mode), name);
    EXPECT_EQ(fused_from(name), mode);
  }
  EXPECT_EQ(fused_name(37), "pointwise37");
  EXPECT_EQ(fused_from("pointwise37"), 37);
  for (const char* name : {"gen_stats", "operation99", "pre.relu", "pre.operation99", "pre.pointwise37"}) {
    ASSERT_TRUE(fused_from(name)) << name;
    EXPECT_EQ(fused_name(*fused_from(name)), name);
  }
}

TEST(Names, NotesAreCudnns) {
  EXPECT_EQ(cudnn_numerical_note(CUDNN_NUMERICAL_NOTE_TENSOR_CORE), "TENSOR_CORE");
  EXPECT_EQ(cudnn_numerical_note(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS), "DOWN_CONVERT_INPUTS");
  EXPECT_EQ(cudnn_numerical_note(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION),
            "REDUCED_PRECISION_REDUCTION");
  EXPECT_EQ(cudnn_numerical_note(CUDNN_NUMERICAL_NOTE_FFT), "FFT");
  EXPECT_EQ(cudnn_numerical_note(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC), "NONDETERMINISTIC");
  EXPECT_EQ(cudnn_numerical_note(CUDNN_NUMERICAL_NOTE_WINOGRAD), "WINOGRAD");
  EXPECT_EQ(cudnn_numerical_note(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4), "WINOGRAD_TILE_4x4");
  EXPECT_EQ(cudnn_numerical_note(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13), "WINOGRAD_TILE_13x13");
  EXPECT_EQ(cudnn_numerical_note(CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP), "STRICT_NAN_PROP");
  EXPECT_EQ(cudnn_numerical_note(77), "77");
  EXPECT_EQ(cudnn_behavior_note(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION), "RUNTIME_COMPILATION");
  EXPECT_EQ(cudnn_behavior_note(CUDNN_BEHAVIOR_NOTE_REQUIRES_FILTER_INT8x32_REORDER),
            "REQUIRES_FILTER_INT8x32_REORDER");
  EXPECT_EQ(cudnn_behavior_note(CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API),
            "SUPPORTS_CUDA_GRAPH_NATIVE_API");
  EXPECT_EQ(cudnn_behavior_note(CUDNN_BEHAVIOR_NOTE_CUBLASLT_DEPENDENCY), "CUBLASLT_DEPENDENCY");
  EXPECT_EQ(cudnn_behavior_note(-1), "-1");
  EXPECT_EQ(cudnn_math_type(CUDNN_TENSOR_OP_MATH), "TENSOR_OP_MATH");
  EXPECT_EQ(cudnn_math_type(CUDNN_FMA_MATH), "FMA_MATH");
}

TEST(Names, PeoplesWordsForNotes) {
  EXPECT_EQ(numerical_note_name(0, DataType::Float), "tf32");
  EXPECT_EQ(numerical_note_name(0, DataType::Half), "tensor_core");
  EXPECT_EQ(numerical_note_name(3, DataType::Float), "fft");
}

TEST(Names, StatusAndChoice) {
  EXPECT_STREQ(name_of(CandidateStatus::Ok), "ok");
  EXPECT_STREQ(name_of(CandidateStatus::Unsupported), "unsupported");
  EXPECT_STREQ(name_of(CandidateStatus::NoMemory), "no_memory");
  EXPECT_STREQ(name_of(CandidateStatus::TooSlow), "too_slow");
  EXPECT_STREQ(name_of(CandidateStatus::Skipped), "skipped");
  EXPECT_STREQ(name_of(ChoiceKind::LeftAlone), "left_alone");
  EXPECT_STREQ(name_of(ChoiceKind::Set), "set");
  EXPECT_STREQ(name_of(ChoiceKind::Unsupported), "unsupported");
  EXPECT_STREQ(name_of(ChoiceKind::Refused), "refused");
  EXPECT_STREQ(name_of(ChoiceKind::Tuned), "tuned");
}

}  // namespace
}  // namespace convpin
