#include "tools/convpin/repro_steps.hpp"

#include <cudnn.h>

#include <algorithm>

#include "shim/model/text.hpp"
#include "tools/convpin/operation_graph.hpp"

namespace convpin::cli {
namespace {

#define NAMED(enumerator) (Enumerator{#enumerator, enumerator})

enum Element { Int64, Float, Double, Boolean, Type, Mode, PointwiseMode, KnobType, Handle, Pointer, Descriptor };
const std::vector<ElementType> kElements = {
    {NAMED(CUDNN_TYPE_INT64), "int64_t", "c_int64"},
    {NAMED(CUDNN_TYPE_FLOAT), "float", "c_float"},
    {NAMED(CUDNN_TYPE_DOUBLE), "double", "c_double"},
    {NAMED(CUDNN_TYPE_BOOLEAN), "bool", "c_bool"},
    {NAMED(CUDNN_TYPE_DATA_TYPE), "cudnnDataType_t", "c_int"},
    {NAMED(CUDNN_TYPE_CONVOLUTION_MODE), "cudnnConvolutionMode_t", "c_int"},
    {NAMED(CUDNN_TYPE_POINTWISE_MODE), "cudnnPointwiseMode_t", "c_int"},
    {NAMED(CUDNN_TYPE_KNOB_TYPE), "cudnnBackendKnobType_t", "c_int"},
    {NAMED(CUDNN_TYPE_HANDLE), "cudnnHandle_t", "c_void_p"},
    {NAMED(CUDNN_TYPE_VOID_PTR), "void*", "c_void_p"},
    {NAMED(CUDNN_TYPE_BACKEND_DESCRIPTOR), "D", "c_void_p"},
};

constexpr ElementBits kBits[] = {
    {DataType::Float, NAMED(CUDNN_DATA_FLOAT), "0xbf800000, 0xbf000000, 0, 0x3f000000, 0x3f800000", "0x7f800000", "0x7fffff"},
    {DataType::Half, NAMED(CUDNN_DATA_HALF), "0xbc00, 0xb800, 0, 0x3800, 0x3c00", "0x7c00", "0x3ff"},
    {DataType::BFloat16, NAMED(CUDNN_DATA_BFLOAT16), "0xbf80, 0xbf00, 0, 0x3f00, 0x3f80", "0x7f80", "0x7f"},
    {DataType::Double, NAMED(CUDNN_DATA_DOUBLE), "0xbff0000000000000, 0xbfe0000000000000, 0, 0x3fe0000000000000, 0x3ff0000000000000",
     "0x7ff0000000000000", "0xfffffffffffff"},
};
const ElementBits* bits_of(DataType type) {
  const auto at = std::ranges::find(kBits, type, &ElementBits::type);
  return at == std::end(kBits) ? nullptr : at;
}

// Where the three operations keep the same things.
struct Names {
  Enumerator type, x, w, y, convolution, alpha, beta;
};
#define NAMES(operation, attributes, x, w, y)                                                                                           \
  {                                                                                                                                     \
    NAMED(CUDNN_BACKEND_OPERATION_CONVOLUTION_##operation##_DESCRIPTOR), NAMED(CUDNN_ATTR_OPERATION_CONVOLUTION_##attributes##_##x),    \
        NAMED(CUDNN_ATTR_OPERATION_CONVOLUTION_##attributes##_##w), NAMED(CUDNN_ATTR_OPERATION_CONVOLUTION_##attributes##_##y),         \
        NAMED(CUDNN_ATTR_OPERATION_CONVOLUTION_##attributes##_CONV_DESC), NAMED(CUDNN_ATTR_OPERATION_CONVOLUTION_##attributes##_ALPHA), \
        NAMED(CUDNN_ATTR_OPERATION_CONVOLUTION_##attributes##_BETA)                                                                     \
  }
constexpr Names kNames[] = {NAMES(FORWARD, FORWARD, X, W, Y), NAMES(BACKWARD_DATA, BWD_DATA, DX, W, DY),
                            NAMES(BACKWARD_FILTER, BWD_FILTER, X, DW, DY)};

StepValue of(std::int64_t number) { return {std::to_string(number), std::to_string(number)}; }
StepValue of(const Enumerator& e) { return {e.name, std::to_string(e.number), e.name}; }
StepValue of(const std::string& variable) { return {variable, variable}; }
// A tensor's id: a letter's code, but for those between the operations.
StepValue letter_or_number(std::int64_t id) {
  if (id >= kFirstBetween) return of(id);
  const std::string letter = std::string("'") + static_cast<char>(id) + "'";
  return {letter, "ord(" + letter + ")"};
}

class Builder {
 public:
  Builder(const Problem& p, const EngineConfig& config) : p_(p), config_(config) {}

  ReproSteps build() {
    tensors();
    operations();
    plan();
    pack();
    return std::move(out_);
  }

 private:
  void create(const std::string& name, const Enumerator& type) { steps_->push_back({Step::Kind::Create, name, type, nullptr, {}}); }
  void set(const std::string& name, const Enumerator& attribute, Element element, std::vector<StepValue> values) {
    steps_->push_back({Step::Kind::Set, name, attribute, &kElements[element], std::move(values)});
  }
  void set(const std::string& name, const Enumerator& attribute, std::int64_t number) { set(name, attribute, Int64, {of(number)}); }
  void set(const std::string& name, const Enumerator& attribute, const std::array<std::int64_t, kMaxDims>& numbers, int count) {
    std::vector<StepValue> values;
    for (int i = 0; i < count; ++i) values.push_back(of(numbers[static_cast<std::size_t>(i)]));
    set(name, attribute, Int64, std::move(values));
  }
  void set(const std::string& name, const Enumerator& attribute, DataType type) { set(name, attribute, Type, {of(bits_of(type)->cudnn)}); }
  void set(const std::string& name, const Enumerator& attribute, const std::string& descriptor) {
    set(name, attribute, Descriptor, {of(descriptor)});
  }
  void set(const std::string& name, const Enumerator& attribute, const std::vector<std::string>& descriptors) {
    std::vector<StepValue> values;
    for (const std::string& d : descriptors) values.push_back(of(d));
    set(name, attribute, Descriptor, std::move(values));
  }
  void finalize(const std::string& name) { steps_->push_back({Step::Kind::Finalize, name, {}, nullptr, {}}); }

  void tensor(const std::string& name, const Tensor& t, std::int64_t id) {
    create(name, NAMED(CUDNN_BACKEND_TENSOR_DESCRIPTOR));
    set(name, NAMED(CUDNN_ATTR_TENSOR_DATA_TYPE), t.type);
    set(name, NAMED(CUDNN_ATTR_TENSOR_DIMENSIONS), t.dims, t.rank);
    set(name, NAMED(CUDNN_ATTR_TENSOR_STRIDES), t.strides, t.rank);
    set(name, NAMED(CUDNN_ATTR_TENSOR_UNIQUE_ID), Int64, {letter_or_number(id)});
    set(name, NAMED(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT), 16);
    if (id >= kFirstBetween) set(name, NAMED(CUDNN_ATTR_TENSOR_IS_VIRTUAL), Boolean, {{"true", "True"}});
    finalize(name);
  }
  void buffer(const std::string& name, const Tensor& t, std::int64_t id) {
    tensor(name, t, id);
    out_.buffers.push_back({name, id, t, static_cast<int>(out_.buffers.size()) + 1, bits_of(t.type)});
  }

  void tensors() {
    const Problem in = in_memory(p_);
    buffer("x", in.x, kX);
    buffer("w", in.w, kW);
    buffer("y", in.y, kY);
    out_.output = &written(p_) == &p_.x ? 0 : &written(p_) == &p_.w ? 1 : 2;
  }

  void convolution() {
    const int dims = p_.spatial_dims();
    create("convolution", NAMED(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
    set("convolution", NAMED(CUDNN_ATTR_CONVOLUTION_COMP_TYPE), p_.compute);
    set("convolution", NAMED(CUDNN_ATTR_CONVOLUTION_CONV_MODE), Mode,
        {of(p_.flipped ? NAMED(CUDNN_CONVOLUTION) : NAMED(CUDNN_CROSS_CORRELATION))});
    set("convolution", NAMED(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS), dims);
    set("convolution", NAMED(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS), p_.pad, dims);
    set("convolution", NAMED(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS), p_.post_pad, dims);
    set("convolution", NAMED(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES), p_.stride, dims);
    set("convolution", NAMED(CUDNN_ATTR_CONVOLUTION_DILATIONS), p_.dilation, dims);
    finalize("convolution");
  }

  // The operation's own output is virtual where something is fused behind it.
  void operations() {
    std::string result = out_.buffers[out_.output].name;
    const std::string last = result;
    const auto next = [&](int at) {
      if (at == p_.fused_count) return last;
      const std::string name = "between_" + std::to_string(at);
      tensor(name, written(p_), kFirstBetween + at);
      return name;
    };
    result = next(0);
    const auto input_or_result = [&](std::size_t at) { return at == out_.output ? result : out_.buffers[at].name; };
    convolution();
    const Names& names = kNames[static_cast<std::size_t>(p_.operation)];
    create("operation", names.type);
    set("operation", names.x, input_or_result(0));
    set("operation", names.w, input_or_result(1));
    set("operation", names.y, input_or_result(2));
    set("operation", names.convolution, "convolution");
    const Element scale = p_.compute == DataType::Double ? Double : Float;
    set("operation", names.alpha, scale, {of(1)});
    set("operation", names.beta, scale, {of(0)});
    finalize("operation");
    operations_ = {"operation"};
    for (int i = 0; i < p_.fused_count; ++i) {
      const std::string in = result;
      result = next(i + 1);
      fuse(i, in, result);
    }
  }

  void fuse(int at, const std::string& in, const std::string& result) {
    const auto mode = p_.fused[static_cast<std::size_t>(at)];
    const std::string number = std::to_string(at), pointwise = "pointwise_" + number, name = "fused_" + number;
    create(pointwise, NAMED(CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
    const std::string value = std::to_string(mode), word = fused_name(mode);
    set(pointwise, NAMED(CUDNN_ATTR_POINTWISE_MODE), PointwiseMode,
        {{"static_cast<cudnnPointwiseMode_t>(" + value + ") /* " + word + " */", value, word}});
    set(pointwise, NAMED(CUDNN_ATTR_POINTWISE_MATH_PREC), p_.compute);
    finalize(pointwise);
    std::string operand;
    if (arguments_of(mode) == 2) {
      operand = "operand_" + number;
      buffer(operand, operand_of(p_, static_cast<std::size_t>(at)), kFirstOperand + at);
    }
    create(name, NAMED(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR));
    set(name, NAMED(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR), pointwise);
    set(name, NAMED(CUDNN_ATTR_OPERATION_POINTWISE_XDESC), in);
    if (!operand.empty()) set(name, NAMED(CUDNN_ATTR_OPERATION_POINTWISE_BDESC), operand);
    set(name, NAMED(CUDNN_ATTR_OPERATION_POINTWISE_YDESC), result);
    finalize(name);
    operations_.push_back(name);
  }

  void plan() {
    create("graph", NAMED(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
    set("graph", NAMED(CUDNN_ATTR_OPERATIONGRAPH_HANDLE), Handle, {of("handle")});
    set("graph", NAMED(CUDNN_ATTR_OPERATIONGRAPH_OPS), operations_);
    finalize("graph");
    create("engine", NAMED(CUDNN_BACKEND_ENGINE_DESCRIPTOR));
    set("engine", NAMED(CUDNN_ATTR_ENGINE_OPERATION_GRAPH), "graph");
    set("engine", NAMED(CUDNN_ATTR_ENGINE_GLOBAL_INDEX), config_.engine);
    finalize("engine");
    std::vector<std::string> knobs;
    for (const Knob& knob : config_.knobs) {
      const std::string type = std::to_string(knob.type), name = "knob_" + type;
      create(name, NAMED(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR));
      set(name, NAMED(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE), KnobType, {{"static_cast<cudnnBackendKnobType_t>(" + type + ")", type}});
      set(name, NAMED(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE), knob.value);
      finalize(name);
      knobs.push_back(name);
    }
    create("config", NAMED(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    set("config", NAMED(CUDNN_ATTR_ENGINECFG_ENGINE), "engine");
    if (!knobs.empty()) set("config", NAMED(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES), knobs);
    finalize("config");
    create("plan", NAMED(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
    set("plan", NAMED(CUDNN_ATTR_EXECUTION_PLAN_HANDLE), Handle, {of("handle")});
    set("plan", NAMED(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG), "config");
    finalize("plan");
  }

  void pack() {
    steps_ = &out_.pack;
    const auto pointer = [](const std::string& name) { return StepValue{"reinterpret_cast<void*>(" + name + ")", name}; };
    std::vector<StepValue> ids, pointers;
    for (const Buffer& b : out_.buffers) {
      ids.push_back(letter_or_number(b.id));
      pointers.push_back(pointer(b.name + "_data"));
    }
    create("pack", NAMED(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
    set("pack", NAMED(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS), Int64, ids);
    set("pack", NAMED(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS), Pointer, pointers);
    set("pack", NAMED(CUDNN_ATTR_VARIANT_PACK_WORKSPACE), Pointer, {pointer("workspace")});
    finalize("pack");
  }

  const Problem& p_;
  const EngineConfig& config_;
  ReproSteps out_;
  std::vector<Step>* steps_ = &out_.plan;
  std::vector<std::string> operations_;
};

}  // namespace

const std::vector<ElementType>& element_types() { return kElements; }

Parsed<ReproSteps> repro_steps(const Problem& problem, const EngineConfig& config) {
  using Result = Parsed<ReproSteps>;
  for (const DataType type : {problem.x.type, problem.w.type, problem.y.type, result_type(problem)})
    if (!bits_of(type)) return Result::fail("--repro: it has no data of type " + name_of(type));
  if (!bits_of(problem.compute)) return Result::fail("--repro: not for the compute type " + name_of(problem.compute));
  for (int i = 0; i < problem.fused_count; ++i)
    if (const auto mode = problem.fused[static_cast<std::size_t>(i)]; arguments_of(mode) == 0)
      return Result::fail("--repro: not for graphs with " + fused_name(mode) + " in them");
  return Result::ok(Builder(problem, config).build());
}

}  // namespace convpin::cli
