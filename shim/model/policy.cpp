// Requirements and policies, on a candidate's notes and costs.
#include "shim/model/policy.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "shim/model/record.hpp"

namespace convpin {
namespace {

// cudnnBackendNumericalNote_t, cudnnBackendBehaviorNote_t and cudnnMathType_t.
constexpr int kTensorCore = 0, kDownConvert = 1, kReducedPrecision = 2, kNondeterministic = 4;
constexpr int kRuntimeCompilation = 0;
constexpr int kTensorOpMath = 1, kTensorOpMathConversion = 2, kFmaMath = 3;

bool has(const std::vector<int>& notes, int note) { return std::ranges::find(notes, note) != notes.end(); }
bool on_graph(const Candidate& c) { return c.engine.engine >= 0; }

bool deterministic(const Candidate& c) {
  if (c.deterministic) return *c.deterministic;
  if (on_graph(c)) return !has(c.numerical_notes, kNondeterministic);
  // cuDNN API reference, cudnnConvolutionBwdDataAlgo_t and cudnnConvolutionBwdFilterAlgo_t: "non-deterministic".
  if (c.operation == Operation::Forward) return true;
  return c.algorithm != 0 && !(c.operation == Operation::BackwardFilter && c.algorithm == 3);
}

bool converts_down(const Candidate& c) {
  return on_graph(c) ? has(c.numerical_notes, kDownConvert) : c.math_type == kTensorOpMathConversion;
}

// Nothing where cuDNN doesn't say: its default math for the legacy API may use them, or not.
std::optional<bool> on_tensor_cores(const Candidate& c) {
  if (on_graph(c)) return has(c.numerical_notes, kTensorCore);
  if (c.math_type == kTensorOpMath || c.math_type == kTensorOpMathConversion) return true;
  return c.math_type == kFmaMath ? std::optional(false) : std::nullopt;
}

// Why the policy may not take it, though it meets the requirements; empty if it may.
std::string not_allowed(const Candidate& c, Flags allow) {
  const auto forbidden = [&](Flag flag, bool is) { return is && !allow.has(flag); };
  if (forbidden(Flag::DownConvert, converts_down(c))) return "it converts its inputs down";
  if (forbidden(Flag::Nondeterministic, !deterministic(c))) return "it is not deterministic";
  if (forbidden(Flag::ReducedPrecisionReduction, has(c.numerical_notes, kReducedPrecision)))
    return "it sums up in a lower precision";
  if (forbidden(Flag::RuntimeCompilation, has(c.behavior_notes, kRuntimeCompilation))) return "it is compiled at run time";
  return {};
}

// Against the rule itself, whoever chose it.
std::string against(const Candidate& c, const Rule& rule) {
  std::string why = unmet(c, rule.require);
  if (why.empty() && rule.workspace_limit && c.workspace_bytes && *c.workspace_bytes > *rule.workspace_limit)
    why = "it needs a workspace of " + std::to_string(*c.workspace_bytes) + " bytes, more than the limit of " +
          std::to_string(*rule.workspace_limit);
  return why;
}

// What the policy looks at: less is better.
std::optional<double> cost_of(const Candidate& c, PolicyKind policy) {
  if (c.status != CandidateStatus::Ok && c.status != CandidateStatus::TooSlow) return std::nullopt;  // too slow: it ran, once
  if (policy == PolicyKind::Fastest) return c.time_ms && std::isfinite(*c.time_ms) ? c.time_ms : std::nullopt;
  if (!c.workspace_bytes) return std::nullopt;
  return static_cast<double>(*c.workspace_bytes);
}

std::string name_of(const Candidate& c) {
  return on_graph(c) ? to_tag(c.engine) : std::to_string(c.algorithm) + " (" + algorithm_name(c.operation, c.algorithm) + ")";
}

// "31 %", "2.5 %".
std::string percent(double fraction) {
  const long long tenths = std::llround(fraction * 1000);
  const bool whole = tenths % 10 == 0 || tenths >= 100;
  return std::to_string(whole ? (tenths + 5) / 10 : tenths / 10) + (whole ? "" : "." + std::to_string(tenths % 10)) + " %";
}

class Ranker {
 public:
  Ranker(const std::vector<Candidate>& candidates, const Rule& rule) : all_(candidates), rule_(rule) {
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (all_[i].framework_choice && !own_ && cost(i)) own_ = i;
    if (own_) own_is_against_ = against(all_[*own_], rule_);
  }

  Ranking rank() {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (i == own_ || !cost(i)) continue;
      const std::string why = untakable(all_[i], rule_);
      if (why.empty()) {
        qualified_.push_back(i);
      } else if (!refused_ || better(i, *refused_)) {
        refused_ = i;
        refused_why_ = why;
      }
    }
    std::ranges::sort(qualified_, [&](std::size_t a, std::size_t b) { return better(a, b); });
    for (const std::size_t i : qualified_)
      if (beats_own(i)) ranking_.best.push_back(i);
    ranking_.met = !ranking_.best.empty() || yardstick();
    ranking_.reason = ranking_.best.empty() ? why_none() : why(ranking_.best.front());
    return std::move(ranking_);
  }

 private:
  std::optional<double> cost(std::size_t i) const { return cost_of(all_[i], rule_.policy); }

  // The policy's cost, then the other one, where unknown comes last; then the order that was given.
  bool better(std::size_t a, std::size_t b) const {
    const auto key = [&](std::size_t i) {
      const bool fastest = rule_.policy == PolicyKind::Fastest;
      const auto other = cost_of(all_[i], fastest ? PolicyKind::LeastMemory : PolicyKind::Fastest);
      return std::tuple(*cost(i), !other, other.value_or(0), i);
    };
    return key(a) < key(b);
  }

  // The framework's own choice is a yardstick only where it could stay.
  bool yardstick() const { return own_ && own_is_against_.empty(); }
  double gain(std::size_t i) const { return *cost(*own_) > 0 ? 1 - *cost(i) / *cost(*own_) : 0; }
  bool beats_own(std::size_t i) const {
    constexpr double kRounding = 1e-9;  // 1 - 0.98 is a little less than 0.02
    return !yardstick() || (*cost(i) < *cost(*own_) && gain(i) >= rule_.min_gain - kRounding);
  }

  std::string why(std::size_t i) const {
    const bool fastest = rule_.policy == PolicyKind::Fastest;
    std::string text = fastest ? four_digits(*all_[i].time_ms) + " ms"
                               : "a workspace of " + std::to_string(*all_[i].workspace_bytes) + " bytes";
    if (yardstick()) return text + ", " + percent(gain(i)) + " less than the framework's own choice";
    return text + "; the framework's own choice " + (own_ ? "can't stay: " + own_is_against_ : "is not known");
  }

  std::string why_none() const {
    const std::string best = rule_.policy == PolicyKind::Fastest ? "the fastest" : "the one with the least workspace";
    if (!qualified_.empty() && gain(qualified_.front()) > 0)
      return best + ", " + name_of(all_[qualified_.front()]) + ", is within " + percent(rule_.min_gain) +
             " of the framework's own choice";
    if (yardstick() && (!refused_ || *cost(*refused_) >= *cost(*own_))) return "the framework's own choice is " + best;
    if (!refused_) return "no candidate could be measured";
    return best + ", " + name_of(all_[*refused_]) + ", is against the rule: " + refused_why_;
  }

  const std::vector<Candidate>& all_;
  const Rule& rule_;
  std::optional<std::size_t> own_, refused_;  // refused_: the best of those that may not be taken
  std::string own_is_against_, refused_why_;
  std::vector<std::size_t> qualified_;
  Ranking ranking_;
};

}  // namespace

std::string unmet(const Candidate& c, Flags require) {
  if (require.has(Flag::Deterministic) && !deterministic(c)) return "it is not deterministic";
  if (require.has(Flag::NoDownConvert) && converts_down(c)) return "it converts its inputs down";
  const bool wants = require.has(Flag::TensorCore), forbids = require.has(Flag::NoTensorCore);
  if (!wants && !forbids) return {};
  const auto uses = on_tensor_cores(c);
  if (!uses) return "cuDNN doesn't say whether it uses tensor cores";
  if (wants && !*uses) return "it uses no tensor cores";
  return forbids && *uses ? "it uses tensor cores" : "";
}

std::string untakable(const Candidate& c, const Rule& rule) {
  std::string why = against(c, rule);
  return why.empty() ? not_allowed(c, rule.allow) : why;
}

Ranking rank(const std::vector<Candidate>& candidates, const Rule& rule) {
  if (rule.policy == PolicyKind::None) return {{}, false, "the rule has no policy"};
  return Ranker(candidates, rule).rank();
}

}  // namespace convpin
