// Algorithms and engines: the table, tags, and what a person may ask for.
#include "shim/model/algorithm.hpp"

#include <algorithm>

#include "shim/model/text.hpp"

namespace convpin {
namespace {

// Forward, cuDNN 9, read off the kernels that the legacy call and the engines launch (tests/gpu/algorithm_table.py on
// an H200 with cuDNN 9.19, four data types, two layouts, seven filters; every legacy call that ran launched the kernels of
// an engine). IMPLICIT_PRECOMP_GEMM is a family: the legacy call
// runs the heuristics' pick among the precompiled implicit-GEMM engines; engine 1 is the plain kernel, 57 its depthwise
// and 58 its 1x1 case. The run-time compiled engines (5, 71, 72, 80) belong to no algorithm: they are had by their tag.
constexpr int kImplicitGemm[] = {28};
constexpr int kImplicitPrecompGemm[] = {1, 22, 23, 27, 35, 38, 41, 45, 46, 47, 48, 57, 58, 62, 67, 70};
constexpr int kGemm[] = {2};
constexpr int kDirect[] = {0};
constexpr int kFft[] = {3};
constexpr int kFftTiling[] = {4};
constexpr int kWinograd[] = {12};
constexpr int kWinogradNonfused[] = {6};

constexpr Algorithm kForward[] = {
    {0, "IMPLICIT_GEMM", kImplicitGemm},
    {1, "IMPLICIT_PRECOMP_GEMM", kImplicitPrecompGemm},
    {2, "GEMM", kGemm},
    {3, "DIRECT", kDirect},
    {4, "FFT", kFft},
    {5, "FFT_TILING", kFftTiling},
    {6, "WINOGRAD", kWinograd},
    {7, "WINOGRAD_NONFUSED", kWinogradNonfused},
};

// Backward data, from the same measurement. 0 is the atomic kernel (NONDETERMINISTIC); 1 is a family as forward's: 1, 2 and
// 74 plain kernels, 62 its depthwise and 63 its 1x1 case, the rest tensor-core ones. For depthwise filters and NHWC the
// legacy calls of 0 and 1 may launch the direct kernel (engine 0) instead; here a number means its own kernels.
constexpr int kDataAlgo0[] = {25};
constexpr int kDataAlgo1[] = {1,  2,  22, 23, 24, 27, 28, 34, 40, 43, 46, 49, 53, 56,
                              57, 58, 59, 60, 62, 63, 64, 65, 67, 71, 73, 74, 76};
constexpr int kDataFft[] = {4};
constexpr int kDataFftTiling[] = {5, 50};
constexpr int kDataWinograd[] = {19};
constexpr int kDataWinogradNonfused[] = {7};

constexpr Algorithm kBackwardData[] = {
    {0, "ALGO_0", kDataAlgo0},
    {1, "ALGO_1", kDataAlgo1},
    {2, "FFT", kDataFft},
    {3, "FFT_TILING", kDataFftTiling},
    {4, "WINOGRAD", kDataWinograd},
    {5, "WINOGRAD_NONFUSED", kDataWinogradNonfused},
};

// Backward filter. 0 is the atomic kernel, and 3 launches it too (fp32, fp64; for half the legacy call of 3 launches 1's).
// 1 is a family without 24 and 47, which reduce in lower precision. No engine was found for 4 and 6: their legacy calls are
// NOT_SUPPORTED as well.
constexpr int kFilterAlgo0[] = {20};
constexpr int kFilterAlgo1[] = {1,  9,  10, 15, 22, 23, 25, 30, 33, 34, 37, 38, 39,
                                40, 45, 46, 48, 49, 50, 61, 62, 65, 67, 68};
constexpr int kFilterFft[] = {18};
constexpr int kFilterWinogradNonfused[] = {17};

constexpr Algorithm kBackwardFilter[] = {
    {0, "ALGO_0", kFilterAlgo0},
    {1, "ALGO_1", kFilterAlgo1},
    {2, "FFT", kFilterFft},
    {3, "ALGO_3", kFilterAlgo0},
    {4, "WINOGRAD", {}},
    {5, "WINOGRAD_NONFUSED", kFilterWinogradNonfused},
    {6, "FFT_TILING", {}},
};

// What belongs to an operation besides its algorithms. One row an operation.
struct Spelling {
  Operation operation;
  std::span<const Algorithm> algorithms;
  std::string_view enum_prefix;  // lower case, as all of what is compared here
  std::string_view tag_prefix;   // cudnn-frontend's
};
constexpr Spelling kSpellings[] = {
    {Operation::Forward, kForward, "cudnn_convolution_fwd_", "convfwd_"},
    {Operation::BackwardData, kBackwardData, "cudnn_convolution_bwd_data_", "convbwddata_"},
    {Operation::BackwardFilter, kBackwardFilter, "cudnn_convolution_bwd_filter_", "convbwdfilter_"},
};

const Spelling& spelling_of(Operation operation) {
  for (const Spelling& spelling : kSpellings)
    if (spelling.operation == operation) return spelling;
  return kSpellings[0];
}

// Removes `prefix` if it is there, and says whether it was.
bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// One "k2=1".
std::optional<Knob> knob_from(std::string_view text) {
  if (!take_prefix(text, "k")) return std::nullopt;
  const std::size_t equals = text.find('=');
  if (equals == text.npos) return std::nullopt;
  const auto type = integer_from<int>(text.substr(0, equals));
  const auto value = integer_from<std::int64_t>(text.substr(equals + 1));
  if (!type || *type < 0 || !value) return std::nullopt;
  return Knob{*type, *value};
}

// "eng38_k2=1_k13=0", in lower case.
std::optional<EngineConfig> config_from(std::string_view tag) {
  if (!take_prefix(tag, "eng")) return std::nullopt;
  const auto parts = split(tag, '_');
  const auto engine = integer_from<int>(parts.front());
  if (!engine || *engine < 0) return std::nullopt;
  EngineConfig config{*engine, {}};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto knob = knob_from(parts[i]);
    if (!knob) return std::nullopt;
    config.knobs.push_back(*knob);
  }
  std::ranges::sort(config.knobs);
  const bool twice = std::ranges::adjacent_find(config.knobs, {}, &Knob::type) != config.knobs.end();
  return twice ? std::nullopt : std::optional(config);
}

std::optional<Request> request_from(Operation operation, std::string_view text) {
  const Spelling& spelling = spelling_of(operation);
  Request request;
  request.operation = operation;
  const auto number = integer_from<int>(text);
  if (number == -1) return request;
  const std::string wanted = lower(text);
  std::string_view name = wanted;
  if (take_prefix(name, spelling.enum_prefix) && !name.starts_with("algo_")) name = {};
  take_prefix(name, "algo_");  // of the enum's names, ALGO_0 and the like hold no other word
  for (const Algorithm& algorithm : spelling.algorithms) {
    std::string known = lower(algorithm.name);
    if (known.starts_with("algo_")) known.erase(0, 5);
    if (number != algorithm.number && name != known) continue;
    request.kind = Request::Kind::Algorithm;
    request.algorithm = algorithm.number;
    return request;
  }
  std::string_view tag = wanted;
  take_prefix(tag, spelling.tag_prefix);
  const auto config = config_from(tag);
  if (!config) return std::nullopt;
  request.kind = config->knobs.empty() ? Request::Kind::Engine : Request::Kind::ExactEngine;
  request.engine = *config;
  return request;
}

std::string not_allowed(Operation operation, std::string_view text) {
  const auto all = spelling_of(operation).algorithms;
  std::string message = quote(text) + " is not a " + words_for(operation) + " algorithm: allowed are " +
                        std::to_string(all.front().number) + "-" + std::to_string(all.back().number);
  for (const Algorithm& algorithm : all) message += std::string(", ") + algorithm.name;
  return message + ", an engine tag (eng38, eng38_k2=1), or -1 for the framework's choice";
}

}  // namespace

// Measured on cuDNN 9.19 alone, and used for every version: none other has a table of its own yet.
std::span<const Algorithm> algorithms(Operation operation, std::size_t) {
  return spelling_of(operation).algorithms;
}

int algorithm_of_engine(Operation operation, std::size_t cudnn_version, int engine) {
  for (const Algorithm& algorithm : algorithms(operation, cudnn_version))
    if (std::ranges::find(algorithm.engines, engine) != algorithm.engines.end()) return algorithm.number;
  return -1;
}

const char* algorithm_name(Operation operation, int number) {
  for (const Algorithm& algorithm : spelling_of(operation).algorithms)
    if (algorithm.number == number) return algorithm.name;
  return "";
}

std::string to_tag(const EngineConfig& config) {
  std::string tag = "eng" + std::to_string(config.engine);
  for (const Knob& knob : config.knobs)
    tag += "_k" + std::to_string(knob.type) + "=" + std::to_string(knob.value);
  return tag;
}

std::string Request::to_text() const {
  switch (kind) {
    case Kind::FrameworkChoice:
      return "-1 (the framework's choice)";
    case Kind::Algorithm:
      return std::to_string(algorithm) + " (" + algorithm_name(operation, algorithm) + ")";
    case Kind::Engine:
    case Kind::ExactEngine:
      return to_tag(engine);
  }
  return {};
}

Parsed<Request> parse_request(Operation operation, std::string_view text) {
  auto request = request_from(operation, trim(text));
  if (!request) return Parsed<Request>::fail(not_allowed(operation, text));
  return Parsed<Request>::ok(std::move(*request));
}

Parsed<std::vector<Request>> parse_requests(Operation operation, std::string_view text) {
  std::vector<Request> requests;
  for (const std::string_view part : split(text, ',')) {
    if (!requests.empty() && requests.back().kind == Request::Kind::FrameworkChoice)
      return Parsed<std::vector<Request>>::fail(quote(text) + ": -1 is always possible: what stands behind it would never be tried");
    Parsed<Request> request = parse_request(operation, part);
    if (!request) return Parsed<std::vector<Request>>::fail(std::move(request.error));
    requests.push_back(std::move(*request.value));
  }
  return Parsed<std::vector<Request>>::ok(std::move(requests));
}

}  // namespace convpin
