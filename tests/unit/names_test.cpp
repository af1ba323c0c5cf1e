// Fails when a number in our tables of names is not the one in cuDNN's headers, or a name can't be read back.
#include <cudnn_graph.h>
#include <gtest/gtest.h>

#include "shim/model/candidate.hpp"
#include "shim/model/problem.hpp"

namespace convpin {
namespace {

TEST(Names, DataTypesAreCudnns) {
  const std::pair<cudnnDataType_t, const char*> types[] = {
      {CUDNN_DATA_FLOAT, "float"},       {CUDNN_DATA_DOUBLE, "double"},    {CUDNN_DATA_HALF, "half"},
      {CUDNN_DATA_INT8, "int8"},         {CUDNN_DATA_INT32, "int32"},      {CUDNN_DATA_UINT8, "uint8"},
      {CUDNN_DATA_BFLOAT16, "bfloat16"}, {CUDNN_DATA_INT64, "int64"},      {CUDNN_DATA_BOOLEAN, "boolean"},
      {CUDNN_DATA_FP8_E4M3, "fp8_e4m3"}, {CUDNN_DATA_FP8_E5M2, "fp8_e5m2"}};
  for (const auto& [type, name] : types) {
    EXPECT_EQ(name_of(static_cast<DataType>(type)), name);
    EXPECT_EQ(data_type_from(name), static_cast<DataType>(type));
    EXPECT_GT(size_of(static_cast<DataType>(type)), 0u) << name;
  }
  EXPECT_EQ(data_type_from("type99"), static_cast<DataType>(99));
  EXPECT_EQ(size_of(static_cast<DataType>(99)), 0u);
  EXPECT_FALSE(data_type_from("type"));
  EXPECT_FALSE(data_type_from("floaty"));
}

TEST(Names, PointwiseModesAreCudnns) {
  const std::pair<cudnnPointwiseMode_t, const char*> modes[] = {
      {CUDNN_POINTWISE_ADD, "add"},
      {CUDNN_POINTWISE_MUL, "mul"},
      {CUDNN_POINTWISE_SUB, "sub"},
      {CUDNN_POINTWISE_MAX, "max"},
      {CUDNN_POINTWISE_ADD_SQUARE, "add_square"},
      {CUDNN_POINTWISE_IDENTITY, "identity"},
      {CUDNN_POINTWISE_ATAN2, "atan2"},
      {CUDNN_POINTWISE_RELU_FWD, "relu"},
      {CUDNN_POINTWISE_SWISH_FWD, "swish"},
      {CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, "gelu_approx_tanh"},
      {CUDNN_POINTWISE_RELU_BWD, "relu_bwd"},
      {CUDNN_POINTWISE_GELU_APPROX_TANH_BWD, "gelu_approx_tanh_bwd"},
      {CUDNN_POINTWISE_CMP_LE, "cmp_le"},
      {CUDNN_POINTWISE_LOGICAL_NOT, "logical_not"},
      {CUDNN_POINTWISE_GEN_INDEX, "gen_index"},
      {CUDNN_POINTWISE_BINARY_SELECT, "binary_select"}};
  for (const auto& [mode, name] : modes) {
    EXPECT_EQ(pointwise_name(mode), name);
    EXPECT_EQ(pointwise_from(name), mode);
  }
  EXPECT_EQ(pointwise_name(37), "pointwise37");
  EXPECT_EQ(pointwise_from("pointwise37"), 37);
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
}

}  // namespace
}  // namespace convpin
