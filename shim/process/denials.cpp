#include "shim/process/denials.hpp"

#include <algorithm>

#include "shim/hooks/reason.hpp"
#include "shim/model/text.hpp"
#include "shim/process/rules.hpp"

namespace convpin {

const Denial* denied(const ProblemState& state, const EngineConfig& config) {
  return denied(runtime().settings.denials, state.problem, state.place, config);
}

const Denial* denied_algorithm(const ProblemState& state, int algorithm) {
  return denied_algorithm(runtime().settings.denials, state.problem, state.place, algorithm);
}

void note_list(ProblemState& state, const std::vector<Offer>& list) {
  std::lock_guard hold(state.lock);
  for (const Offer& offer : list)
    if (std::ranges::find(state.lists, offer.what, &Offer::what) == state.lists.end()) state.lists.push_back(offer);
}

std::string denied_before(ProblemState& state, const std::string& ran) {
  std::lock_guard hold(state.lock);
  const auto at = std::ranges::find(state.lists, ran, &Offer::what);
  if (at == state.lists.end()) return {};
  const std::string by = denials_text({state.lists.begin(), at});
  return by.empty() ? "" : "before it in cuDNN's list: " + by;
}

void say_all_denied(ProblemState& state, const std::vector<Offer>& list) noexcept {
  try {
    const std::string by = denials_text(list), why = "all that cuDNN's list offers is denied";
    set_last_error("convpin: " + why + ": " + by);
    goes_on();  // the program is given an empty list, and makes of it what it likes
    std::string unmet;
    {
      std::lock_guard hold(state.lock);
      if (std::ranges::any_of(state.lists, [](const Offer& offer) { return !offer.denial; })) return;
      unmet = state.unsupported_reason;
    }
    const Rule* rule = rule_of(state);
    if (rule && rule->asks()) state.choice = ChoiceKind::Unsupported;
    if (state.denial_said.exchange(true)) return;
    say("convpin: warning: " + to_text(state.problem) + ": " + why + ", so the program is given nothing of it: " + by + "\n");
    log_failure(state, joined(unmet, why + ": " + by), true);
  } catch (...) {
  }
}

}  // namespace convpin
