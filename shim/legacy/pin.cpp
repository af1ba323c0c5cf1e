#include "shim/legacy/pin.hpp"

#include "shim/hooks/reason.hpp"

namespace convpin::legacy {
namespace {

constexpr std::uint64_t kPinRefused = 1ull << 62;  // in ProblemState::pin_workspace

}  // namespace

const Request* request_of(const ProblemState& state) {
  return state.rule ? state.rule->request() : nullptr;
}

int pinned(const ProblemState& state) {
  const Request* request = request_of(state);
  return request && request->kind == Request::Kind::Algorithm ? request->algorithm : -1;
}

cudnnStatus_t workspace_of(const Library& library, const Descriptors& d, int algorithm, std::size_t* bytes) {
  const auto ask = [&](auto* real, auto... arguments) { return real ? real(arguments...) : library.not_supported(); };
  switch (d.operation) {
    case Operation::Forward:
      return ask(library.cudnnGetConvolutionForwardWorkspaceSize, d.handle, d.x, d.w, d.convolution, d.y,
                                                             static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), bytes);
    case Operation::BackwardData:
      return ask(library.cudnnGetConvolutionBackwardDataWorkspaceSize, d.handle, d.w, d.y, d.convolution, d.x,
                                                                  static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm), bytes);
    case Operation::BackwardFilter:
      return ask(library.cudnnGetConvolutionBackwardFilterWorkspaceSize, d.handle, d.x, d.y, d.convolution, d.w,
                                                                    static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm), bytes);
  }
  return library.not_supported();
}

int math_type(const Library& library, const Descriptors& d) {
  cudnnMathType_t type = CUDNN_DEFAULT_MATH;
  if (library.cudnnGetConvolutionMathType) library.cudnnGetConvolutionMathType(d.convolution, &type);
  return static_cast<int>(type);
}

std::optional<std::int64_t> needed(const Library& library, const Descriptors& d, int algorithm, std::string* reason) {
  const ReasonScope words(library, reason ? Listen::Yes : Listen::No);
  std::size_t bytes = 0;
  const auto status = workspace_of(library, d, algorithm, &bytes);
  if (status == CUDNN_STATUS_SUCCESS) return static_cast<std::int64_t>(bytes);
  if (reason) *reason = words.text(status);
  return std::nullopt;
}

bool within_limit(std::int64_t bytes) {
  const std::int64_t limit = runtime().settings.workspace_limit;
  return limit < 0 || bytes <= limit;
}

// Packed as known (1 bit), refused (1), math type (6), bytes (56).
std::optional<std::int64_t> needed_by_pin(const Library& library, const Descriptors& d, ProblemState& state) {
  constexpr std::uint64_t known = 1ull << 63, refused = kPinRefused, bytes_mask = (1ull << 56) - 1;
  const std::uint64_t key = known | static_cast<std::uint64_t>(math_type(library, d) & 63) << 56;
  const std::uint64_t cached = state.pin_workspace.load(std::memory_order_relaxed);
  if ((cached & ~refused & ~bytes_mask) == key)
    return cached & refused ? std::nullopt : std::optional(static_cast<std::int64_t>(cached & bytes_mask));
  std::string reason;
  auto bytes = needed(library, d, pinned(state), nullptr);
  if (!bytes) needed(library, d, pinned(state), &reason);  // again, to hear why
  if (bytes && !within_limit(*bytes)) {
    reason = "it needs a workspace of " + std::to_string(*bytes) + " bytes, more than the limit of " +
             std::to_string(runtime().settings.workspace_limit);
    bytes.reset();
  }
  if (!bytes) {
    std::lock_guard hold(state.lock);
    state.unsupported_reason = reason;
  }
  state.pin_workspace = key | (bytes ? static_cast<std::uint64_t>(*bytes) & bytes_mask : refused);
  return bytes;
}

void refuse_pin(ProblemState& state) { state.pin_workspace |= kPinRefused; }

}  // namespace convpin::legacy
