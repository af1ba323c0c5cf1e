// The tensors of one problem on the device, and running something on them.
#pragma once

#include <cudnn.h>

#include <functional>
#include <string>

#include "shim/model/problem.hpp"
#include "tools/convclient/memory.hpp"
#include "tools/convclient/options.hpp"
#include "tools/convclient/reference.hpp"

namespace convclient {

class Workload {
 public:
  static convpin::Parsed<Workload> make(const convpin::Problem&, const Options&, const Device&);

  const convpin::Problem& problem() const { return problem_; }
  void* x() const { return x_.data(); }
  void* w() const { return w_.data(); }
  void* y() const { return y_.data(); }
  void* z() const { return z_.data(); }        // null without one
  void* bias() const { return bias_.data(); }  // null without one
  const Device& device() const { return *device_; }

  // The output as it was before the first execution. Without beta every byte is 0xff, a NaN, so that an
  // element that nobody writes is seen; but finite where bias and relu are fused, since the legacy call is
  // given y as its z too.
  std::string reset_output() const;

  // Runs `launch` options.repeat times; puts time, checksum and error into the outcome. Gives back what went
  // wrong, empty for nothing; `call` is launch's name for that.
  std::string run(const std::string& call, const std::function<cudnnStatus_t()>& launch, const Options&,
                  Outcome&) const;

 private:
  const Buffer& written() const;

  convpin::Problem problem_;
  Inputs host_;
  Buffer x_, w_, y_, z_, bias_;
  const Device* device_ = nullptr;
};

}  // namespace convclient
