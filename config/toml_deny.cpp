// [[deny]].
#include <algorithm>

#include "config/toml_entry.hpp"
#include "shim/model/text.hpp"

namespace convpin {
namespace {

class DenialEntry : public Entry {
 public:
  DenialEntry(const Value& table, const std::string& file, Draft& draft) : Entry(table, file, "denial", draft) {}

  // One denial for each of its operations.
  std::vector<Denial> read() {
    check_keys({"algo", "cudnn", "engine", "match", "operation", "problem", "reason", "tag"});
    std::optional<Operations> operations = read_operation();
    Denial denial;
    denial.source = source_;
    denial.reason = one_line(string_of("reason").value_or(""), 300);
    denial.problem = read_problem(operations);
    denial.match = read_match();
    read_cudnn(denial.match);
    if (!operations && !get("operation"))
      error(table_, "this denial has no operation, and a number means another thing in each: add operation = \"...\"");
    const char* key = one_key_of({"engine", "tag", "algo"}, "engine, tag or algo: add one of them, such as engine = 5");
    if (!key || !operations) return {};
    std::vector<Denial> denials;
    for (const Request& request : forbidden_by(key, *operations)) {
      denial.operation = request.operation;
      denial.algorithm = request.algorithm;
      denial.engine = request.engine;
      denials.push_back(denial);
    }
    return denials;
  }

 private:
  void read_cudnn(Match& match) {
    const Value* value = get("cudnn");
    if (!value) return;
    if (!match.cudnn.empty()) return error(*value, "cudnn stands here and in 'match': only one of them is allowed");
    match.cudnn = versions_from(*value, draft_.settings.errors);
  }

  std::vector<Request> forbidden_by(const std::string& key, const Operations& operations) {
    const Value& value = *get(key.c_str());
    const bool number = key == "engine", algorithm = key == "algo";
    const std::string allowed = number      ? "the number of an engine, such as 5"
                                : algorithm ? "the number or the name of an algorithm, such as \"FFT\""
                                            : "the tag of an engine, such as \"eng62_k2=5\"";
    const bool typed = (value.is_integer() && key != "tag" && value.as_integer(std::nothrow) >= 0) || (value.is_string() && !number);
    std::vector<Request> requests;
    if (typed) requests = requests_of(value, (number ? "eng" : "") + scalar_text(value), operations);
    const auto fits = [&](const Request& r) { return algorithm ? r.algorithm >= 0 : r.engine.engine >= 0; };
    if (!typed || !std::ranges::all_of(requests, fits)) error(value, "'" + key + "' must be " + allowed);
    return requests;
  }
};

}  // namespace

void read_denials(const Value& tables, const std::string& file, Draft& draft) {
  each_table(tables, "deny", draft, [&](const Value& table) {
    for (Denial& denial : DenialEntry(table, file, draft).read()) draft.settings.denials.push_back(std::move(denial));
  });
}

}  // namespace convpin
