// convclient: runs a list of convolutions, forward or backward, through cuDNN's graph or legacy API.
//
//   convclient "x=[32,64,56,56] w=[64,64,3,3] float nchw pad=1,1"
//   convclient "backward_filter x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1,1"
//   convclient --api legacy --benchmark --check --problems resnet50.txt
//
// One line a problem on stdout: what ran, its workspace and notes, a checksum of the output, its error. What
// fails is said on stderr. Exit status: 0 where every problem ran (and with --check is within its bound),
// else 1.

#include <cudnn.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

#include "tools/convclient/run.hpp"
#include "tools/convclient/status.hpp"

namespace {

using convclient::Api;
using convclient::Options;
using convclient::Outcome;
using convpin::Parsed;
using convpin::Problem;

struct CommandLine {
  Options options;
  std::vector<std::string> texts;  // problems as given
  std::string problems_file, device_file, plan_file;
  bool bias_relu = false;
  int threads = 1;
  std::vector<std::string> print;
};

const std::vector<std::string> kFields{"problem",  "engine", "workspace", "notes",
                                       "checksum", "error",  "time",      "json"};

void declare(CLI::App& app, CommandLine& c) {
  Options& o = c.options;
  const std::map<std::string, Api> apis{{"graph", Api::Graph}, {"legacy", Api::Legacy}};
  const std::map<std::string, int> notes{{"tensor_core", CUDNN_NUMERICAL_NOTE_TENSOR_CORE},
                                         {"nondeterministic", CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC},
                                         {"down_convert_inputs", CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}};
  const std::map<std::string, int> maths{
      {"default", CUDNN_DEFAULT_MATH}, {"tensor_op", CUDNN_TENSOR_OP_MATH}, {"fma", CUDNN_FMA_MATH}};

  app.add_option(
      "problem", c.texts,
      "a convolution, e.g. \"x=[32,64,56,56] w=[64,64,3,3] half nhwc pad=1,1\"; \"backward_data ...\" and "
      "\"backward_filter ...\" compute dx and dw for the same x, w and y");
  app.add_option("--problems", c.problems_file, "file with one problem a line; # begins a comment")
      ->check(CLI::ExistingFile);
  app.add_option("--api", o.api, "graph (default) or legacy")->transform(CLI::CheckedTransformer(apis));
  app.add_flag("--benchmark", o.benchmark, "time what there is and take the fastest");
  app.add_option("--fixed", o.fixed, "legacy: this algorithm, without asking cuDNN for one")
      ->check(CLI::Range(0, 7));
  app.add_option("--repeat", o.repeat, "executions of each problem")->check(CLI::PositiveNumber);
  app.add_flag(
      "--own-config", o.own_config,
      "graph: build the engine configuration anew from the engine's number and its knobs, as XLA does");
  app.add_flag("--from-json", o.from_json, "graph: destroy the plan and restore it from its own JSON text");
  app.add_option("--plan", c.plan_file,
                 "graph: the plan is restored from this file, which --print json wrote for the same problem")
      ->check(CLI::ExistingFile);
  app.add_flag("--cuda-graph-api", o.cuda_graph,
               "graph: put the plan into a CUDA graph (cudnnBackendPopulateCudaGraph) and launch that");
  app.add_option(
         "--deny-note", o.denied_notes,
         "drop what has this numerical note: tensor_core, nondeterministic, down_convert_inputs (repeatable; "
         "legacy: nondeterministic only)")
      ->transform(CLI::CheckedTransformer(notes))
      ->allow_extra_args(false);
  app.add_option("--max-workspace", o.max_workspace, "bytes; drop what needs more")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--math", o.math, "legacy: default, tensor_op or fma")
      ->transform(CLI::CheckedTransformer(maths));
  app.add_flag("--bias-relu", c.bias_relu, "y = relu(conv(x, w) + bias) instead of y = conv(x, w)");
  app.add_option("--threads", c.threads,
                 "threads that each run all problems on a handle and stream of their own")
      ->check(CLI::PositiveNumber);
  app.add_option("--beta", o.beta, "y = conv(x, w) + beta * y; for dx and dw likewise");
  app.add_option("--seed", o.seed, "of the data");
  app.add_option("--device-json", c.device_file,
                 "graph: build the plan for the GPU described in this file and run nothing; needs no GPU")
      ->check(CLI::ExistingFile);
  app.add_flag("--check", o.check, "compare with a float64 reference (4096 elements of a large output)");
  app.add_flag("--time", o.time, "print the median time of the executions");
  app.add_option("--print", c.print,
                 "only the values of these, comma-separated: " + CLI::detail::join(kFields, ", ") +
                     " (the plan's, graph)")
      ->delimiter(',')
      ->check(CLI::IsMember(kFields))
      ->allow_extra_args(false);
}

std::string contradiction(const CommandLine& c) {
  const Options& o = c.options;
  const bool legacy = o.api == Api::Legacy;
  if (o.fixed && !legacy) return "--fixed belongs to --api legacy";
  if (o.fixed && o.benchmark) return "--fixed and --benchmark exclude each other";
  if (o.math != CUDNN_DEFAULT_MATH && !legacy)
    return "--math belongs to --api legacy; here --deny-note tensor_core";
  for (int note : o.denied_notes)
    if (legacy && note != CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)
      return "the legacy API reports no such note: --math fma keeps it off the tensor cores";
  if (legacy && (o.own_config || o.from_json || o.cuda_graph || !c.plan_file.empty()))
    return "--own-config, --from-json, --plan and --cuda-graph-api belong to the graph API";
  if (!c.plan_file.empty() && (o.own_config || o.from_json || o.benchmark || !c.device_file.empty()))
    return "--plan leaves nothing for --own-config, --from-json, --benchmark and --device-json";
  if (!c.device_file.empty() && (legacy || o.cuda_graph || o.benchmark || o.check || o.time))
    return "--device-json runs nothing: graph API, no --benchmark, --check, --time or --cuda-graph-api";
  return {};
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

// What may be fused here is bias and relu, behind a z or not; a text with it ("fused=add,relu") asks for it too.
Parsed<Problem> read_problem(const std::string& text, const CommandLine& c) {
  Parsed<Problem> parsed = convpin::parse_problem(text);
  if (!parsed) return parsed;
  Problem& p = *parsed.value;
  if (p.fused_count == 0 && c.bias_relu) {
    p.fused_count = 2;
    p.fused[0] = CUDNN_POINTWISE_ADD;
    p.fused[1] = CUDNN_POINTWISE_RELU_FWD;
    p.otype = p.y.type;
    p.y.type = p.compute;  // nothing is rounded before the end
    p = convpin::canonical(p);
  }
  if (p.fused_count != 0 && p.operation != convpin::Operation::Forward)
    return Parsed<Problem>::fail("\"" + text +
                                 "\": this client fuses bias and relu to a forward convolution only");
  if (!convclient::knows_fused(p))
    return Parsed<Problem>::fail("\"" + text + "\": this client fuses nothing but add,relu and add,add,relu");
  if (p.fused_count != 0 && c.options.beta != 0)
    return Parsed<Problem>::fail("\"" + text + "\": --beta and a fused bias and relu exclude each other");
  return parsed;
}

using Outcomes = std::vector<Parsed<Outcome>>;

// All problems, on the calling thread with a handle and a stream of its own.
Outcomes run_all(const std::vector<Problem>& problems, const Options& options) {
  Outcomes outcomes;
  if (!options.device_json.empty()) {
    for (const Problem& p : problems) outcomes.push_back(convclient::plan_graph(p, options));
    return outcomes;
  }
  const auto all_fail = [&](const std::string& why) {
    return Outcomes(problems.size(), Parsed<Outcome>::fail(why));
  };
  const auto device = convclient::Device::open();
  if (!device) return all_fail(device.error);
  cudnnHandle_t handle = nullptr;
  if (auto status = cudnnCreate(&handle); status != CUDNN_STATUS_SUCCESS)
    return all_fail(convclient::failure("cudnnCreate", status));
  if (auto status = cudnnSetStream(handle, device->stream()); status != CUDNN_STATUS_SUCCESS)
    outcomes = all_fail(convclient::failure("cudnnSetStream", status));

  for (const Problem& p : problems) {
    if (outcomes.size() == problems.size()) break;
    auto load = convclient::Workload::make(p, options, *device);
    outcomes.push_back(!load                       ? Parsed<Outcome>::fail(load.error)
                       : options.api == Api::Graph ? convclient::run_graph(*load, options, handle)
                                                   : convclient::run_legacy(*load, options, handle));
  }
  cudnnDestroy(handle);
  return outcomes;
}

std::string value_of(const std::string& field, const Problem& p, const Outcome& o) {
  char text[64] = "";
  if (field == "problem") return convpin::to_text(p);
  if (field == "engine") return o.ran;
  if (field == "workspace") return std::to_string(o.workspace);
  if (field == "notes") return CLI::detail::join(o.notes, ",");
  if (field == "checksum" && o.checksum)
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(*o.checksum));
  if (field == "error" && o.error) std::snprintf(text, sizeof text, "%.3g", *o.error);
  if (field == "json") return o.json;
  if (field == "time" && o.time_ms) std::snprintf(text, sizeof text, "%.4f", *o.time_ms);
  return text;
}

std::string line_of(const Problem& p, const Outcome& o, const CommandLine& c, int thread) {
  std::string line;
  for (const std::string& field : c.print) line += (line.empty() ? "" : "\t") + value_of(field, p, o);
  if (!c.print.empty()) return line;
  line = convpin::to_text(p) + ": " + o.ran;
  for (const std::string& field : kFields) {
    if (field == "problem" || field == "engine") continue;
    const std::string value = value_of(field, p, o);
    if (!value.empty()) line += " " + (field == "time" ? "time_ms" : field) + "=" + value;
  }
  if (c.threads > 1) line += " thread=" + std::to_string(thread);
  return line;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs convolutions through cuDNN, by its graph or its legacy API.", "convclient");
  CommandLine c;
  declare(app, c);
  CLI11_PARSE(app, argc, argv);
  const auto complain = [](const std::string& what) {
    std::cerr << "convclient: " << what << '\n';
    return 1;
  };
  if (std::string why = contradiction(c); !why.empty()) return complain(why);
  if (!c.problems_file.empty())
    for (std::string& line : lines_of(c.problems_file)) c.texts.push_back(std::move(line));
  c.options.json = std::ranges::count(c.print, "json") > 0;
  if (c.texts.empty()) return complain("no problem given; --help shows how");
  if (!c.device_file.empty()) c.options.device_json = text_of(c.device_file);
  if (!c.plan_file.empty()) c.options.plan_json = text_of(c.plan_file);

  std::vector<Problem> problems;
  for (const std::string& text : c.texts) {
    const auto problem = read_problem(text, c);
    if (!problem) return complain(problem.error);
    problems.push_back(*problem);
  }

  std::vector<Outcomes> outcomes(static_cast<std::size_t>(c.threads));
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < outcomes.size(); ++t)
    others.emplace_back([&, t] { outcomes[t] = run_all(problems, c.options); });
  outcomes[0] = run_all(problems, c.options);
  for (std::thread& thread : others) thread.join();

  int exit_status = 0;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    for (std::size_t t = 0; t < outcomes.size(); ++t) {
      const auto& outcome = outcomes[t][i];
      if (!outcome) {
        exit_status = complain(convpin::to_text(problems[i]) + ": " + outcome.error);
        continue;
      }
      std::cout << line_of(problems[i], *outcome, c, static_cast<int>(t)) << std::endl;
      if (outcome->error && !(*outcome->error <= *outcome->bound))
        exit_status = complain(convpin::to_text(problems[i]) + ": the error is over its bound of " +
                               std::to_string(*outcome->bound));
    }
  }
  return exit_status;
}
