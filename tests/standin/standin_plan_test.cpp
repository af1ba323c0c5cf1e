// The reading of a plan's own JSON text, on texts that cuDNN 9.19 wrote (tests/unit/data/plans: `convclient
// --device-json tests/standin/h200-deviceprop.json --print json "<the problem below>"`). Fails when a part of
// a problem is not read, or read in another's place.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/standin/graph.hpp"

namespace standin {
namespace {

std::string dims_of(const Tensor& tensor) {
  std::ostringstream text;
  for (std::size_t i = 0; i < tensor.rank; ++i) text << (i > 0 ? "," : "") << tensor.dim[i];
  return text.str();
}

std::string text_of(const Plan& plan) {
  std::ostringstream text;
  text << plan.pattern << " eng" << plan.engine;
  for (const Node& node : plan.graph.nodes) {
    if (node.kind != Node::Kind::Convolution) {
      text << " +" << static_cast<int>(node.kind);
      continue;
    }
    const Convolution& c = node.conv;
    text << ' ' << name_of(node.operation) << ' ' << dims_of(plan.graph.tensors[node.x]) << " * "
         << dims_of(plan.graph.tensors[node.b]) << " = " << dims_of(plan.graph.tensors[node.y]) << " pad "
         << c.pad_d << ',' << c.pad_h << ',' << c.pad_w << " stride " << c.stride_d << ',' << c.stride_h
         << ',' << c.stride_w << " dilation " << c.dilation_d << ',' << c.dilation_h << ',' << c.dilation_w
         << " groups " << c.groups << " turned " << c.flipped << " double " << plan.graph.in_double;
  }
  return text.str();
}

std::optional<Plan> plan_in(const std::string& file, std::string& reason) {
  std::ifstream in(STANDIN_TEST_DATA "/plans/" + file);
  return parse_plan({std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}, reason);
}

TEST(StandinPlan, ReadsWhatCudnnWrites) {
  struct Sample {
    const char *file, *problem, *expected;
  };
  const Sample samples[] = {
      {"forward.json", "forward x=[2,16,14,14] w=[32,16,3,3] half nhwc pad=1,1",
       "CONV_FORWARD eng45 forward 2,16,14,14 * 32,16,3,3 = 2,32,14,14 pad 0,1,1 stride 1,1,1 dilation 1,1,1 "
       "groups 1 turned 0 double 0"},
      {"backward_data.json",
       "backward_data x=[2,8,14,14] w=[12,2,3,5] float nchw pad=1,2 stride=2,2 groups=4",
       "CONV_BWD_DATA eng0 backward_data 12,2,3,5 * 2,12,7,7 = 2,8,14,14 pad 0,1,2 stride 1,2,2 dilation "
       "1,1,1 "
       "groups 4 turned 0 double 0"},
      {"backward_filter.json",
       "backward_filter x=[2,8,6,9,9] w=[8,8,3,3,3] bfloat16 ndhwc pad=2,1,1 dilation=2,1,1",
       "CONV_BWD_FILTER eng65 backward_filter 2,8,6,9,9 * 2,8,6,9,9 = 8,8,3,3,3 pad 2,1,1 stride 1,1,1 "
       "dilation "
       "2,1,1 groups 1 turned 0 double 0"},
      {"fused.json", "forward x=[2,16,14,14] w=[32,16,3,3] half nhwc pad=1,1 fused=add,relu",
       "CONV_ADD_BIAS_ACT eng10 forward 2,16,14,14 * 32,16,3,3 = 2,32,14,14 pad 0,1,1 stride 1,1,1 dilation "
       "1,1,1 groups 1 turned 0 double 0 +1 +3"},
      {"unequal_padding.json",
       "forward x=[2,16,14,14] w=[32,16,3,3] double nchw pad=1,1 postpad=0,2 mode=convolution",
       "CONV_FORWARD eng0 forward 2,16,14,14 * 32,16,3,3 = 2,32,13,15 pad 0,1,1 stride 1,1,1 dilation 1,1,1 "
       "groups 1 turned 1 double 1"}};
  for (const Sample& sample : samples) {
    std::string reason;
    const auto plan = plan_in(sample.file, reason);
    ASSERT_TRUE(plan) << sample.file << ": " << reason;
    EXPECT_EQ(text_of(*plan), sample.expected) << sample.problem;
  }
}

TEST(StandinPlan, SaysWhatItCantRead) {
  std::string reason;
  EXPECT_FALSE(parse_plan("{}", reason));
  EXPECT_NE(reason.find("operationGraph"), std::string::npos) << reason;
}

}  // namespace
}  // namespace standin
