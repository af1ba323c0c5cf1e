#include "tools/convpin/letters.hpp"

namespace convpin::cli {
namespace {

struct Letter {
  const char* name;
  std::int64_t Letters::*member;
  const char* what;
  bool needed;
};
// MIOpenDriver conv --help
constexpr Letter kLetters[] = {
    {"-n", &Letters::n, "batch size", true},          {"-c", &Letters::c, "channels of x", true},
    {"-H", &Letters::h, "height of x", true},         {"-W", &Letters::w, "width of x", true},
    {"-k", &Letters::k, "channels of y", true},       {"-y", &Letters::y, "height of the filter", true},
    {"-x", &Letters::x, "width of the filter", true}, {"-p", &Letters::p, "padding, height", false},
    {"-q", &Letters::q, "padding, width", false},     {"-u", &Letters::u, "stride, height", false},
    {"-v", &Letters::v, "stride, width", false},      {"-l", &Letters::l, "dilation, height", false},
    {"-j", &Letters::j, "dilation, width", false},    {"-g", &Letters::g, "groups", false},
};

std::string pair(const char* key, std::int64_t a, std::int64_t b) {
  return std::string(" ") + key + "=" + std::to_string(a) + "," + std::to_string(b);
}

}  // namespace

std::shared_ptr<Letters> declare_letters(CLI::App& app) {
  auto letters = std::make_shared<Letters>();
  CLI::Option_group* group = app.add_option_group("MIOpenDriver's letters");
  for (const Letter& letter : kLetters) {
    CLI::Option* option =
        group->add_option(letter.name, (*letters).*letter.member, letter.what)->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 30));
    if (!letter.needed) option->capture_default_str();
  }
  group->add_option("-F", letters->operations, "1 forward, 2 backward data, 4 backward filter, or their sum; 0: all")
      ->check(CLI::Range(0, 7))
      ->capture_default_str();
  group->add_option("--dtype", letters->dtype, "float, half, bfloat16, double, ...")->capture_default_str();
  group->add_option("--layout", letters->layout, "nchw or nhwc")->capture_default_str();
  return letters;
}

Parsed<std::vector<Problem>> problems_of(const Letters& f) {
  using Result = Parsed<std::vector<Problem>>;
  for (const Letter& letter : kLetters)
    if (letter.needed && f.*letter.member < 1) return Result::fail(std::string(letter.name) + " (" + letter.what + ") is missing");
  if (f.g < 1 || f.c % f.g != 0)
    return Result::fail("-g: the " + std::to_string(f.c) + " channels can't be divided into " + std::to_string(f.g) + " groups");
  const auto list = [](std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
    return "[" + std::to_string(a) + "," + std::to_string(b) + "," + std::to_string(c) + "," + std::to_string(d) + "]";
  };
  std::vector<Problem> problems;
  for (const Operation operation : kOperations) {
    const int bit = 1 << static_cast<int>(operation);
    if (f.operations != 0 && !(f.operations & bit)) continue;
    const auto problem = parse_problem(std::string(name_of(operation)) + " x=" + list(f.n, f.c, f.h, f.w) +
                                       " w=" + list(f.k, f.c / f.g, f.y, f.x) + " " + f.dtype + " " + f.layout + pair("pad", f.p, f.q) +
                                       pair("stride", f.u, f.v) + pair("dilation", f.l, f.j) + " groups=" + std::to_string(f.g));
    if (!problem) return Result::fail(problem.error);
    problems.push_back(*problem);
  }
  return Result::ok(std::move(problems));
}

std::string letters_of(const Problem& p) {
  Letters f;
  if (p.x.rank != 4) return {};
  f.n = p.x.dims[0], f.c = p.x.dims[1], f.h = p.x.dims[2], f.w = p.x.dims[3];
  f.k = p.w.dims[0], f.y = p.w.dims[2], f.x = p.w.dims[3];
  f.p = p.pad[0], f.q = p.pad[1], f.u = p.stride[0], f.v = p.stride[1], f.l = p.dilation[0], f.j = p.dilation[1], f.g = p.groups;
  f.operations = 1 << static_cast<int>(p.operation);
  f.dtype = name_of(p.x.type);
  f.layout = layout_name(layout_of(p.x), 4);
  const auto back = problems_of(f);
  if (!back || to_text(back->front()) != to_text(p)) return {};  // something that letters don't say
  std::string text;
  for (const Letter& letter : kLetters) text += std::string(text.empty() ? "" : " ") + letter.name + " " + std::to_string(f.*letter.member);
  return text + " -F " + std::to_string(f.operations) + " --dtype " + f.dtype + " --layout " + f.layout;
}

}  // namespace convpin::cli
