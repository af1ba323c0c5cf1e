// cuDNN for the command: opened at run time, and only by the subcommands that ask it something.
#pragma once

#include <cudnn.h>

#include <memory>
#include <string>

#include "shim/graph/backend.hpp"
#include "shim/hooks/real.hpp"

namespace convpin::cli {

// One opened copy. Stays open.
struct Cudnn {
  Library library;                               // the shim's own table of functions, filled from this copy
  std::string path;                              // the file that it came from
  cudnnStatus_t (*create)(cudnnHandle_t*) = nullptr;
  cudnnStatus_t (*destroy)(cudnnHandle_t) = nullptr;
};
// `where`: a folder, a file, or empty for the loader's own search. Throws BadUse.
std::unique_ptr<Cudnn> open_cudnn(const std::string& where);

// What graphs are finalized for: a GPU, or a description of one.
class Device {
 public:
  static Device present(const Cudnn&);                                  // throws BadUse where there is no GPU
  static Device described(const Cudnn&, const std::string& json);       // throws BadUse where cuDNN doesn't take it
  Device(Device&&) noexcept;
  ~Device();
  graph::Target target() const { return {handle_, properties_.get()}; }
  bool is_present() const { return handle_ != nullptr; }
  std::string json() const;                                             // cuDNN's description; throws BadUse

 private:
  explicit Device(const Cudnn& cudnn) : cudnn_(&cudnn) {}
  const Cudnn* cudnn_;
  cudnnHandle_t handle_ = nullptr;
  graph::Descriptor properties_;
};

// The content of FILE, or of the description that is shipped under this name ("h200"). Throws BadUse.
std::string device_description(const std::string& name_or_file);
// The same GPU's, with another compute capability: 80, 86, 90, 100.
std::string with_sm(const std::string& json, int sm);
// Its deviceName, its deviceVer as 90; "" and 0 where it has none.
std::string name_in(const std::string& json);
int sm_in(const std::string& json);

}  // namespace convpin::cli
