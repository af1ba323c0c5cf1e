// The words for a candidate's status, notes and math types, and for a choice: one table each.
#include "shim/model/candidate.hpp"

#include <span>

#include "shim/model/text.hpp"

namespace convpin {
namespace {

constexpr const char* kStatus[] = {"ok", "unsupported", "no_memory", "too_slow", "skipped"};
constexpr const char* kChoice[] = {"left_alone", "set", "unsupported", "refused", "tuned"};

// By value: cudnnBackendNumericalNote_t, cudnnBackendBehaviorNote_t and cudnnMathType_t.
constexpr int kTensorCore = 0;
constexpr const char* kNumericalNotes[] = {"TENSOR_CORE",
                                           "DOWN_CONVERT_INPUTS",
                                           "REDUCED_PRECISION_REDUCTION",
                                           "FFT",
                                           "NONDETERMINISTIC",
                                           "WINOGRAD",
                                           "WINOGRAD_TILE_4x4",
                                           "WINOGRAD_TILE_6x6",
                                           "WINOGRAD_TILE_13x13",
                                           "STRICT_NAN_PROP"};
constexpr const char* kBehaviorNotes[] = {"RUNTIME_COMPILATION", "REQUIRES_FILTER_INT8x32_REORDER",
                                          "REQUIRES_BIAS_INT8x32_REORDER", "SUPPORTS_CUDA_GRAPH_NATIVE_API",
                                          "CUBLASLT_DEPENDENCY"};
constexpr const char* kMathTypes[] = {"DEFAULT_MATH", "TENSOR_OP_MATH", "TENSOR_OP_MATH_ALLOW_CONVERSION",
                                      "FMA_MATH"};

std::string word_or_number(std::span<const char* const> words, int value) {
  const auto index = static_cast<std::size_t>(value);
  return value >= 0 && index < words.size() ? words[index] : std::to_string(value);
}

}  // namespace

const char* name_of(CandidateStatus status) {
  const auto index = static_cast<std::size_t>(status);
  return index < std::size(kStatus) ? kStatus[index] : "unknown";
}

const char* name_of(ChoiceKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  return index < std::size(kChoice) ? kChoice[index] : "unknown";
}

bool by_framework(ChoiceKind kind) { return kind != ChoiceKind::Set && kind != ChoiceKind::Tuned; }

std::string cudnn_numerical_note(int note) { return word_or_number(kNumericalNotes, note); }
std::string cudnn_behavior_note(int note) { return word_or_number(kBehaviorNotes, note); }
std::string cudnn_math_type(int math_type) { return word_or_number(kMathTypes, math_type); }

std::string numerical_note_name(int note, DataType type) {
  if (note == kTensorCore && type == DataType::Float) return "tf32";
  return lower(cudnn_numerical_note(note));
}

}  // namespace convpin
