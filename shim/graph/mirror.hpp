// The mirror: what the application builds from backend descriptors, seen from Create to Destroy, since a finished
// operation graph can't be read back (shared facts: OPERATIONGRAPH_OPS gives 3000).
//
// Tensors and operations are copied when they are put together, so that the application may destroy its descriptors
// in any order. Only the types that matter for a convolution are mirrored; a variant pack never is.
#pragma once

#include <cudnn.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "shim/graph/backend.hpp"
#include "shim/graph/pointer_map.hpp"
#include "shim/model/problem.hpp"
#include "shim/process/runtime.hpp"

namespace convpin::graph {

// An attribute as it was set, for making the same descriptor once more. Kept only where the settings want fused graphs
// compared with their parts.
struct RawAttribute {
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  std::int64_t count;
  std::vector<char> bytes;
};

struct TensorNode {
  Tensor tensor;
  std::int64_t id = 0;
  std::int64_t vector_count = 1;
  std::int64_t alignment = 16; // bytes
  bool is_virtual = false;
  bool by_value = false;       // a scalar in host memory
};

struct ConvolutionNode {
  DataType compute = DataType::Float;
  bool flipped = false;
  int spatial_dims = 0;
  std::array<std::int64_t, kMaxDims> pad{}, post_pad{}, stride{}, dilation{};
};

struct PointwiseNode {
  std::int32_t mode = 0;
  std::vector<RawAttribute> raw;
};

struct OperationNode {
  enum class Kind { Convolution, Pointwise, Other } kind = Kind::Other;
  cudnnBackendDescriptorType_t type{};
  Operation operation = Operation::Forward;   // Convolution
  TensorNode x, w, y;          // Convolution: in the forward's roles. Pointwise: x and w (its second input) give y
  bool has_second_input = false;
  bool plain = true;           // a pointwise operation of x and w alone
  ConvolutionNode convolution;
  PointwiseNode pointwise;
  double beta = 0;             // the convolution reads its output where this is not 0
  std::vector<RawAttribute> scalars;  // alpha and beta

  const TensorNode& output() const;
  std::vector<const TensorNode*> inputs() const;   // that are known
};

// A finalized operation graph that holds one convolution.
struct ConvolutionGraph {
  const Library* library = nullptr;
  cudnnHandle_t handle = nullptr;
  Problem problem;
  struct Binding {             // a tensor of the variant pack
    std::int64_t id;
    std::size_t bytes;
    DataType type;
    bool read;                 // an output: read before it is written (beta)
    bool by_value;
  };
  std::vector<Binding> inputs, outputs;   // not virtual; the convolution's own output first, where it is one
  std::vector<OperationNode> operations;  // of a fused graph that is to be compared with its parts
  bool runnable = true;        // all inputs and outputs are known: it may be run on buffers of ours
};
using GraphPointer = std::shared_ptr<const ConvolutionGraph>;

struct GraphNode {
  cudnnHandle_t handle = nullptr;
  std::vector<OperationNode> operations;
  GraphPointer graph;          // after Finalize; null: no convolution, or one that can't be described
};

// What we answered to one query of the heuristics, and what became of each configuration in it: our pins first, then
// the real list. A framework that drops our pins (its numerical filter, memory, a failure) finds its own choice behind
// them; a framework that times everything finds that the rest does not run once a pin has.
struct Answer {
  enum class Role : std::uint8_t { Pin, Real };
  struct Slot {
    EngineConfig config;
    Role role = Role::Real;
    bool given = false;        // the application holds a descriptor for it
    bool alive = false;        // ... which it has not destroyed
    bool built = false;        // a plan was built from it
    bool ran = false;
    bool failed = false;       // its plan or its execution failed
    std::string refused = {};  // why there is no plan of this pin: cuDNN's words, or the limit on workspaces
    bool dropped = false;      // its plan was destroyed before it ran
  };
  std::mutex lock;
  GraphPointer graph;
  ProblemState* state = nullptr;
  std::vector<Slot> slots;
  std::size_t pins = 0;
  std::uint32_t generation = 0;// of the rules that it was made under
  bool filtered = false;       // the real list is not given as it is: something in it is denied
  std::string failure;         // not empty: the query is to fail, since a rule says so
  bool strict = false;         // pins alone: what drops them finds nothing behind them
  bool listed = true;          // the slots hold the real list already; else each is added as it is given

  bool pin_ran() const;        // under lock
};
using AnswerPointer = std::shared_ptr<Answer>;

struct HeuristicsNode {
  GraphPointer graph;
  cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_INSTANT;
  std::shared_ptr<Descriptor> device_prop;   // a copy: the application may destroy its own
  AnswerPointer answer;        // prepared when the application asks for the count
  std::shared_ptr<Descriptor> pinned_graph;  // the graph as the pins' configurations refer to it; null: no pins
};

struct EngineNode {
  GraphPointer graph;
  std::int64_t index = -1;
  std::shared_ptr<Descriptor> device_prop;   // as above
};

struct ConfigNode {
  GraphPointer graph;
  std::shared_ptr<Descriptor> device_prop;
  AnswerPointer answer;        // where it came from the heuristics
  std::size_t slot = 0;
  std::int64_t engine = -1;    // where the program built it
};

// One way in which a plan's convolution runs: by the plan itself, or by one of ours in its place. Fixed once it is made,
// but for the counters.
struct Way {
  EngineConfig config;
  Notes notes;
  std::int64_t workspace_bytes = 0;
  std::string ran;                          // tag
  Descriptor plan;                          // ours; empty: the program's own
  bool own_workspace = false;               // it needs more than the program gave for its plan
  bool live = false;                        // chosen while the program ran: not used inside a capture
  NvtxTexts ranges;
  std::atomic<std::uint64_t> calls{0};
  std::uint64_t flushed = 0;                // calls already counted for the problem; under the problem's lock
  std::atomic<bool> look{true};             // the next execution is not yet routine
  std::atomic<bool> reported{false};
};

struct PlanNode {
  GraphPointer graph;
  AnswerPointer answer;
  std::size_t slot = 0;
  // Where the program built its own configuration and a rule asks for another: that one, which the plan was given.
  Descriptor swapped;
  std::optional<EngineConfig> before_swap;
  cudnnBackendDescriptor_t config = nullptr;  // as the program set it, which may have destroyed it since
  std::string json;                         // the plan is made from this text, graph and all; then without a graph of ours
  // After Finalize, read back from the plan itself.
  ProblemState* state = nullptr;            // null: not a convolution of ours
  std::optional<EngineConfig> own_choice;   // what the framework would run without us
  std::vector<EngineConfig> dropped;        // what it dropped of the real list
  std::unique_ptr<Way> itself;
  // What runs where the rules are as they were when it was built, and inside captures: itself, or what took a failed pin's
  // place.
  std::atomic<Way*> standing{nullptr};
  std::atomic<Way*> way{nullptr};           // in force; null: the rules make its executions fail
  std::atomic<std::uint32_t> generation{0}; // of the rules under which it was chosen
  std::mutex changing;                      // guards what follows
  std::vector<std::unique_ptr<Way>> ways;   // of ours; none goes before the plan does
  struct Chosen {
    const Rule* rule;                       // null: no rule
    Way* way;
    std::string reason;                     // why it isn't what the rule asks for
  };
  std::vector<Chosen> chosen;               // for each rule that was in force while it was executed
  std::string failure;                      // why its executions fail
  bool pinned = false;                      // counted in ProblemState::pinned_plans
  std::atomic<bool> used{false};            // it ran, or the program took its text
  int misses = 0;                           // executions with a variant pack that was not watched

  Way& own() const { return *itself; }
};

struct Node {
  cudnnBackendDescriptorType_t type;
  std::variant<std::monostate, TensorNode, ConvolutionNode, PointwiseNode, OperationNode, GraphNode, HeuristicsNode,
               EngineNode, ConfigNode>
      what;
  std::unique_ptr<PlanNode> plan;           // not movable: frameworks execute it from any thread
};

// The descriptors that are alive.
Node* find(cudnnBackendDescriptor_t) noexcept;
bool mirrored(cudnnBackendDescriptorType_t) noexcept;
void add(cudnnBackendDescriptor_t, cudnnBackendDescriptorType_t);
std::unique_ptr<Node> remove(cudnnBackendDescriptor_t) noexcept;
template <typename T>
T* find_as(cudnnBackendDescriptor_t descriptor) noexcept {
  Node* node = find(descriptor);
  return node ? std::get_if<T>(&node->what) : nullptr;
}
void each_plan(const std::function<void(PlanNode&)>&);

// Copies an attribute that the application set, as far as it matters.
void note_attribute(Node&, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, std::int64_t count, const void* values);
void renew_in_child() noexcept;   // after fork
// Describes the graph; null where it is not exactly one convolution with pointwise operations behind it.
GraphPointer describe(const Library&, const GraphNode&);
// The same from a plan's JSON text (CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION), which holds the whole graph.
GraphPointer describe_json(const Library&, const std::string& json);

}  // namespace convpin::graph
