// Files of cudnn-frontend's errata (CUDNN_ERRATA_JSON_FILE), read as denials:
//   {"version": 1, "rules": [{"rule_id": "..", "operation": "ConvFwd", "engine": 5, "knob": ["k2=1"],
//     "cudnn_version_start": 8000, "cudnn_version_end": -1, "shape_format": "NCHW", "input_shape": [-1, 3, 224, 224],
//     "filter_shape": [64, 3, 7, 7]}]}
// as cudnn_frontend_Errata.h reads them: the end of the versions is not included, -1 is any; a shape has four numbers,
// the input's in shape_format's order, the filter's as K C R S; an operation's name is that of the whole graph. That
// file takes its shapes' numbers from a fixed place and lets a -1 undo what stood before it; here all of them must agree.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "config/draft.hpp"
#include "shim/model/text.hpp"

namespace convpin {
namespace {

using Json = nlohmann::json;

constexpr std::pair<const char*, Operation> kGraphs[] = {{"convfwd", Operation::Forward},
                                                         {"convbwddata", Operation::BackwardData},
                                                         {"convbwdfilter", Operation::BackwardFilter}};
const std::set<std::string> kFields = {"rule_id", "operation", "engine", "knob", "cudnn_version_start", "cudnn_version_end",
                                       "shape_format", "input_shape", "filter_shape"};

class Erratum {
 public:
  Erratum(const Json& rule, const std::string& where, Draft& draft) : rule_(rule), where_(where), draft_(draft) {}

  void read() {
    if (!rule_.is_object()) return error("a rule must be an object");
    denial_.source = where_;
    if (const std::string id = id_text(get("rule_id")); !id.empty()) denial_.source += " (" + one_line(id, 80) + ")";
    for (const auto& [key, value] : rule_.items())
      if (!kFields.contains(key))
        notice("its field " + quote(key) + " is not known, and not looked at (nor does cudnn-frontend)");
    const std::string graph = string_of("operation");
    const auto engine = number_of("engine");
    if (!engine || *engine < 0 || *engine > 100000) return error("'engine' must be a number from 0");
    if (!read_operation(graph)) return;
    read_engine(std::to_string(*engine));
    read_versions();
    read_shape("filter_shape", "NCHW", denial_.match.w);
    if (get("input_shape")) read_shape("input_shape", string_of("shape_format"), denial_.match.x);
    if (!failed_) draft_.settings.denials.push_back(std::move(denial_));
  }

 private:
  void error(const std::string& what) {
    failed_ = true;
    draft_.settings.errors.push_back(where_ + ": " + what);
  }
  void notice(const std::string& what) { draft_.notices.push_back("convpin: " + denial_.source + ": " + what); }

  const Json* get(const char* key) const {
    const auto found = rule_.find(key);
    return found == rule_.end() ? nullptr : &*found;
  }
  // Of what nests, nothing: writing it would recurse.
  static std::string id_text(const Json* id) {
    if (id && id->is_string()) return id->get<std::string>();
    return id && id->is_number() ? id->dump() : "";
  }
  std::string string_of(const char* key) {
    const Json* value = get(key);
    if (value && value->is_string()) return value->get<std::string>();
    error(std::string("'") + key + "' must be a string");
    return {};
  }
  std::optional<std::int64_t> number_of(const char* key) const {
    const Json* value = get(key);
    return value && value->is_number_integer() ? std::optional(value->get<std::int64_t>()) : std::nullopt;
  }

  // "ConvFwd", or "ConvFwd_ADD_RELU_FWD" for a graph with operations fused behind it.
  bool read_operation(const std::string& graph) {
    const auto words = split(graph, '_');
    const std::string first = lower(words.front());
    for (const auto& [name, operation] : kGraphs) {
      if (first != name) continue;
      denial_.operation = operation;
      denial_.problem.fused = "";
      for (std::size_t at = 1; at < words.size();) {
        const std::string pointwise = next_pointwise(words, at);
        if (pointwise.empty()) {
          notice("it is not taken over: " + quote(graph) + " holds an operation that is not known");
          return false;
        }
        *denial_.problem.fused += (denial_.problem.fused->empty() ? "" : ",") + pointwise;
      }
      return true;
    }
    if (!graph.empty()) notice("it is not taken over: " + quote(graph) + " is no convolution");
    return false;
  }

  // The longest name of a pointwise operation that begins at words[at], which is moved behind it; empty for none.
  static std::string next_pointwise(const std::vector<std::string_view>& words, std::size_t& at) {
    for (std::size_t end = words.size(); end > at; --end) {
      std::string name;
      for (std::size_t i = at; i < end; ++i) name += (i == at ? "" : "_") + lower(words[i]);
      if (name.ends_with("fwd")) name.resize(name.find_last_not_of('_', name.size() - 4) + 1);  // "relu_fwd", "relufwd"
      if (const auto mode = fused_from(name)) {
        at = end;
        return fused_name(*mode);
      }
    }
    return {};
  }

  void read_engine(std::string tag) {
    tag.insert(0, "eng");
    if (const Json* knobs = get("knob")) {
      if (!knobs->is_array()) return error("'knob' must be a list of strings such as \"k2=1\"");
      for (const Json& knob : *knobs) tag += "_" + (knob.is_string() ? knob.get<std::string>() : "?");
    }
    const Parsed<Request> request = parse_request(denial_.operation, tag);
    if (!request) return error("'knob' must be a list of strings such as \"k2=1\", each knob once");
    denial_.engine = request->engine;
  }

  void read_versions() {
    Range range;
    const auto start = number_of("cudnn_version_start"), end = number_of("cudnn_version_end");
    if ((get("cudnn_version_start") && (!start || *start < 0)) || (get("cudnn_version_end") && !end))
      return error("'cudnn_version_start' and 'cudnn_version_end' must be numbers such as 8907 or 91900");
    if (start) range.low = comparable_version(static_cast<std::size_t>(*start));
    if (end && *end >= 0) range.high = comparable_version(static_cast<std::size_t>(*end)) - 1;
    if (!start && !end) return;
    const std::string from = start ? "from " + version_text(static_cast<std::size_t>(*start)) : "";
    const std::string to = end && *end >= 0 ? "before " + version_text(static_cast<std::size_t>(*end)) : "";
    denial_.match.cudnn.push_back({range, from + (from.empty() || to.empty() ? "" : " and ") + to});
  }

  void read_shape(const char* key, const std::string& format, std::optional<Ranges>& to) {
    const Json* shape = get(key);
    if (!shape) return;
    // Where N, C, H and W stand.
    const std::array<std::size_t, 4> nchw = {0, 1, 2, 3}, nhwc = {0, 3, 1, 2};
    if (failed_) return;
    if (format != "NCHW" && format != "NHWC") return error("'shape_format' must be NCHW or NHWC");
    const auto number = [](const Json& n) { return n.is_number_integer() && n.get<std::int64_t>() >= -1; };
    if (!shape->is_array() || shape->size() != 4 || !std::all_of(shape->begin(), shape->end(), number))
      return error(std::string("'") + key + "' must be a list of four numbers, -1 for any");
    to.emplace();
    for (const std::size_t place : format == "NCHW" ? nchw : nhwc) {
      const auto n = (*shape)[place].get<std::int64_t>();
      to->push_back(n < 0 ? Range{} : Range{n, n});
    }
  }

  const Json& rule_;
  const std::string where_;
  Draft& draft_;
  Denial denial_;
  bool failed_ = false;
};

}  // namespace

void read_errata(const std::string& name, const std::string& path, Draft& draft) {
  const auto error = [&](const std::string& what) { draft.settings.errors.push_back("errata: " + quote(name) + what); };
  const auto text = contents_of(path);
  if (!text) return error(" can't be read (as " + one_line(path, 300) + ")");
  try {
    const Json file = Json::parse(*text);
    const auto rules = file.find("rules");
    if (!file.is_object() || rules == file.end() || !rules->is_array())
      return error(" holds no errata: {\"version\": 1, \"rules\": [...]} is expected");
    if (const auto version = file.find("version"); version != file.end() && *version != 1)
      return error(" has a version that is not known: \"version\": 1 is");
    for (std::size_t i = 0; i < rules->size(); ++i)
      Erratum((*rules)[i], name + ": rule " + std::to_string(i + 1), draft).read();
  } catch (const Json::exception& e) {
    error(std::string(": ") + one_line(e.what(), 200));
  }
}

}  // namespace convpin
