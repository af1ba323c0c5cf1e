#include "tools/convclient/workload.hpp"

#include <algorithm>

#include "tools/convclient/status.hpp"

namespace convclient {

using convpin::Parsed;
using convpin::Problem;

namespace {
// Elements of the output that are compared with the reference: fewer where each sums very many products.
std::size_t checked_elements(const Problem& p) {
  return static_cast<std::size_t>(std::clamp(3e7 / products_of(p), 64.0, 4096.0));
}
}  // namespace

Parsed<Workload> Workload::make(const Problem& p, const Options& options, const Device& device) {
  for (auto type : {p.x.type, p.w.type, p.y.type, convpin::result_type(p)})
    if (!can_hold(type))
      return Parsed<Workload>::fail("this client has no data of type " + convpin::name_of(type));

  const Problem in = convpin::in_memory(p);
  Workload load;
  load.problem_ = p;
  load.device_ = &device;
  load.host_.beta = options.beta;
  load.host_.x = random_bytes(in.x, options.seed);
  load.host_.w = random_bytes(in.w, options.seed + 1);
  load.host_.y = random_bytes(in.y, options.seed + 2);
  if (options.beta == 0 && p.fused_count == 0)
    load.host_.written(p).assign(load.host_.written(p).size(), std::byte{0xff});
  if (p.fused_count > 0) {
    convpin::Tensor bias = in.y;
    bias.rank = 1;
    bias.dims[0] = in.y.dims[1];
    bias.strides[0] = 1;
    load.host_.bias = random_bytes(bias, options.seed + 3);
  }
  if (p.fused_count > 2) load.host_.z = random_bytes(in.y, options.seed + 4);

  std::string error;
  const auto put = [&](Buffer& to, const Bytes& from) {
    if (!error.empty() || from.empty()) return;
    auto buffer = device.allocate(from.size());
    if (!buffer) {
      error = buffer.error;
      return;
    }
    to = std::move(*buffer.value);
    error = device.upload(to, from.data(), from.size());
  };
  put(load.x_, load.host_.x);
  put(load.w_, load.host_.w);
  put(load.y_, load.host_.y);
  put(load.z_, load.host_.z);
  put(load.bias_, load.host_.bias);
  if (!error.empty()) return Parsed<Workload>::fail(error);
  return Parsed<Workload>::ok(std::move(load));
}

const Buffer& Workload::written() const {
  const bool forward = problem_.operation == convpin::Operation::Forward;
  return forward ? y_ : problem_.operation == convpin::Operation::BackwardData ? x_ : w_;
}

std::string Workload::reset_output() const {
  const Bytes& before = host_.written(problem_);
  return device_->upload(written(), before.data(), before.size());
}

std::string Workload::run(const std::string& call, const std::function<cudnnStatus_t()>& launch,
                          const Options& options, Outcome& outcome) const {
  std::vector<double> times;
  cudnnStatus_t last = CUDNN_STATUS_SUCCESS;
  const auto once = [&] { return (last = launch()) == CUDNN_STATUS_SUCCESS; };
  if (options.in_a_row) {
    if (!once()) return failure(call, last);
    const auto all = device_->time_ms([&] {
      for (int i = 0; i < options.repeat; ++i)
        if (!once()) return false;
      return true;
    });
    if (last != CUDNN_STATUS_SUCCESS) return failure(call, last);
    if (!all) return call + ": the GPU reported an error";
    times.push_back(*all / options.repeat);
  }
  for (int i = 0; i < options.repeat && !options.in_a_row; ++i) {
    if (i == 0 || options.beta != 0)
      if (std::string error = reset_output(); !error.empty()) return error;
    const auto time = device_->time_ms(once);
    if (last != CUDNN_STATUS_SUCCESS) return failure(call, last);
    if (!time) return call + ": the GPU reported an error";
    times.push_back(*time);
  }
  if (std::string error = device_->synchronize(); !error.empty()) return call + ": " + error;
  if (options.time) {
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                     times.end());
    outcome.time_ms = times[times.size() / 2];
  }

  const convpin::Tensor output = convpin::written(convpin::in_memory(problem_));
  Bytes out(bytes_of(output));
  if (std::string error = device_->download(out.data(), written(), out.size()); !error.empty()) return error;
  outcome.checksum = fnv1a(out);
  if (options.check) {
    const auto elements = elements_to_check(elements_of(output), checked_elements(problem_), options.seed);
    const bool tf32 = !(std::count(options.denied_notes.begin(), options.denied_notes.end(),
                                   CUDNN_NUMERICAL_NOTE_TENSOR_CORE) ||
                        options.math == CUDNN_FMA_MATH);
    outcome.error = relative_error(problem_, host_, out, elements);
    outcome.bound = error_bound(problem_, tf32);
  }
  return {};
}

}  // namespace convclient
