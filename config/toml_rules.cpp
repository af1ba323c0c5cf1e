// [[rule]].
#include <algorithm>
#include <tuple>
#include <type_traits>

#include "config/toml_entry.hpp"
#include "config/values.hpp"
#include "shim/model/text.hpp"

namespace convpin {
namespace {

class RuleEntry : public Entry {
 public:
  RuleEntry(const Value& table, const std::string& file, Draft& draft) : Entry(table, file, "rule", draft) {}

  // One rule for each of its operations.
  std::vector<DraftRule> read() {
    check_keys({"algo", "allow", "match", "min_gain", "name", "on_unsupported", "operation", "policy", "problem", "require",
                "workspace_limit"});
    std::optional<Operations> operations = read_operation();
    DraftRule draft;
    Rule& rule = draft.rule;
    rule.source = source_;
    rule.name = one_line(string_of("name").value_or(""), 80);
    rule.problem = read_problem(operations);
    rule.match = read_match();
    rule.require = read_flags("require", FlagList::Require);
    rule.allow = read_flags("allow", FlagList::Allow);
    read_min_gain(rule);
    read_policy(rule);
    read_setting("on_unsupported", draft.on_unsupported);
    read_setting("workspace_limit", draft.workspace_limit);
    check_flags(rule);
    const char* asked = one_key_of({"algo", "policy"}, "algo and no policy: add algo = \"...\", or policy = \"...\"");
    std::vector<DraftRule> rules;
    for (const Operation operation : operations.value_or(Operations{Operation::Forward})) {
      rules.push_back(draft);
      rules.back().rule.operation = operation;
    }
    if (asked && asked == std::string_view("algo")) read_algorithms(rules);
    return rules;
  }

 private:
  void read_algorithms(std::vector<DraftRule>& rules) {
    Operations operations;
    for (const DraftRule& draft : rules) operations.push_back(draft.rule.operation);
    const auto values = values_of("algo");
    for (const Value* value : values) {
      if (!value->is_string() && !value->is_integer())
        return error(*value, "'algo' must be a number or a string, or a list of them, not " + type_name(*value));
      for (Request& request : requests_of(*value, scalar_text(*value), operations)) {
        if (request.kind == Request::Kind::FrameworkChoice && value != values.back())
          return error(*value, "-1 is always possible: what stands behind it would never be tried");
        const auto of = std::ranges::find(rules, request.operation, [](const DraftRule& d) { return d.rule.operation; });
        of->rule.requests.push_back(std::move(request));
      }
    }
    std::erase_if(rules, [](const DraftRule& draft) { return draft.rule.requests.empty(); });
  }

  void read_policy(Rule& rule) {
    const auto text = string_of("policy");
    if (!text) return;
    const std::string wanted = lower(trim(*text));
    if (wanted == "fastest") rule.policy = PolicyKind::Fastest;
    if (wanted == "least_memory") rule.policy = PolicyKind::LeastMemory;
    if (wanted == "least_energy")
      error(*get("policy"), quote(*text) + " can't be measured in a run: convpin tune --policy least_energy writes rules for it");
    else if (rule.policy == PolicyKind::None)
      error(*get("policy"), quote(*text) + " is not a policy: allowed are fastest, least_memory");
  }

  Flags read_flags(const char* key, FlagList list) {
    Flags flags;
    for (const Value* value : values_of(key)) {
      const auto flag = value->is_string() ? flag_from(list, scalar_text(*value)) : std::nullopt;
      if (flag) {
        flags.add(*flag);
      } else {
        error(*value, (value->is_string() ? quote(scalar_text(*value)) : "this") + " can't stand in '" + key + "': allowed are " + names_of(list, all_flags(list)));
      }
    }
    return flags;
  }

  void check_flags(const Rule& rule) {
    for (const char* key : {"allow", "min_gain"})
      if (get(key) && !get("policy"))
        error(*get(key), std::string("'") + key + "' is for a policy: an algorithm or engine that is named is taken as asked");
    if (rule.require.has(Flag::TensorCore) && rule.require.has(Flag::NoTensorCore))
      error(*get("require"), "tensor_core and no_tensor_core exclude each other");
    for (const auto& [required, allowed, words] :
         {std::tuple(Flag::Deterministic, Flag::Nondeterministic, "deterministic is required"),
          std::tuple(Flag::NoDownConvert, Flag::DownConvert, "no_down_convert is required")})
      if (rule.require.has(required) && rule.allow.has(allowed))
        error(*get("allow"), std::string("'allow' contradicts 'require': ") + words);
  }

  void read_min_gain(Rule& rule) {
    const Value* value = get("min_gain");
    if (!value) return;
    const double gain = value->is_floating()  ? value->as_floating(std::nothrow)
                        : value->is_integer() ? static_cast<double>(value->as_integer(std::nothrow))
                                              : -1;
    if (!(gain >= 0 && gain < 1)) return error(*value, "'min_gain' must be a number from 0 to below 1, such as 0.02 for 2 %");
    rule.min_gain = gain;
  }

  // Of the kind of a setting, which the rule's own comes before.
  template <typename T>
  void read_setting(const char* key, std::optional<T>& to) {
    const Value* value = get(key);
    if (!value) return;
    const bool number = std::is_same_v<T, std::int64_t> && value->is_integer();
    if (!number && !value->is_string())
      return error(*value, "'" + std::string(key) + "' must be a string" + (std::is_same_v<T, std::int64_t> ? " or a number" : "") +
                               ", not " + type_name(*value));
    Parsed<T> parsed = setting_from<T>(key, scalar_text(*value));
    if (!parsed) return error(*value, "'" + std::string(key) + "': " + parsed.error);
    to = std::move(*parsed.value);
  }
};

}  // namespace

void read_rules(const Value& tables, const std::string& file, Draft& draft) {
  Operations operations;
  each_table(tables, "rule", draft, [&](const Value& table) {
    for (DraftRule& rule : RuleEntry(table, file, draft).read()) {
      operations.push_back(rule.rule.operation);
      draft.rules.push_back(std::move(rule));
    }
  });
  draft.rules_of.emplace_back(file, std::move(operations));
}

}  // namespace convpin
