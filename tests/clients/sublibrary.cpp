// A program that is linked to libcudnn_graph.so.9 and not to libcudnn.so.9, as cuDNN's own build notes allow.
// There is no libcudnn.so.9 in this process. It builds a plan for a GPU described in a file and runs nothing.
//
//   run: LD_LIBRARY_PATH=<the real cuDNN's folder> sublibrary <device properties>.json
#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/clients/one_conv.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: sublibrary DEVICE_JSON\n"), 2;
  std::ostringstream json;
  json << std::ifstream(argv[1]).rdbuf();
  convclient::Options options;
  options.device_json = json.str();
  const auto outcome = convclient::plan_graph(*convpin::parse_problem(clients::kProblem), options);
  if (!outcome) return std::fprintf(stderr, "sublibrary: %s\n", outcome.error.c_str()), 1;
  std::printf("sublibrary: plan %s\n", outcome->ran.c_str());
  return 0;
}
