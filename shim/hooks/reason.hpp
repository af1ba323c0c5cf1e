// Why cuDNN refused a call of ours, in its own words, without the application noticing that we asked.
#pragma once

#include <cudnn.h>

#include <optional>
#include <string>
#include <string_view>

#include "shim/hooks/real.hpp"

namespace convpin {

// At its end nothing of ours is left in cudnnGetLastErrorString. Scopes may nest.
//
// While one that listens lives, cuDNN's warnings on this thread are collected too, through cudnnSetCallback, where neither
// the application nor the user's CUDNN_LOG*_DBG variables use it. That makes each later call of cuDNN in the process some
// 20 ns slower (measured on 9.19: a callback can be silenced, but not taken out without cuDNN printing to stderr), so
// listen only where a refusal is to be explained.
enum class Listen : bool { No, Yes };

class ReasonScope {
 public:
  explicit ReasonScope(const Library&, Listen = Listen::No);
  ~ReasonScope();
  ReasonScope(const ReasonScope&) = delete;
  ReasonScope& operator=(const ReasonScope&) = delete;
  // cuDNN's own sentence if it gave one ("'c' per group must be 1"), else the status in words
  // ("not supported: arch mismatch").
  std::string text(cudnnStatus_t) const;
  void forget() { collected_.clear(); }  // what was collected so far belongs to something else

 private:
  const Library& library_;
  std::string* outer_;
  std::string collected_;
  bool switched_on_ = false;
};

// The same of a status and what cudnnGetLastErrorString says of it.
std::string explained(const Library&, cudnnStatus_t, const std::string& last_error);
// The sentence that explains most in a block of cuDNN's log lines; empty if none says anything a person can use.
std::string best_reason(const std::string& lines);

// Our hooks of cudnnSetCallback, cudnnGetCallback and cudnnGetLastErrorString: the application sees its own.
cudnnStatus_t set_callback(const Library&, unsigned mask, void* data, cudnnCallback_t function) noexcept;
cudnnStatus_t get_callback(const Library&, unsigned* mask, void** data, cudnnCallback_t* function) noexcept;
void get_last_error(const Library&, char* message, std::size_t size) noexcept;
// cuDNN's text for the call that has just failed on this thread, out of cuDNN and whole: where calls of ours come before the
// program reads it, which empty it. It is put back after them where the program's call fails for that.
std::string take_last_error(const Library&);
void put_last_error_back(const std::string& text) noexcept;
// cuDNN's text for the program's call that has just failed on this thread. Reading it takes it out of cuDNN, so the next
// get_last_error gives it whole; here come its first 2047 bytes. Nothing where we failed the call ourselves (set_last_error),
// and cuDNN has no part in it.
std::optional<std::string> keep_last_error(const Library&) noexcept;
// What the next get_last_error on this thread gives, where cuDNN has no text of its own: for calls that we failed.
void set_last_error(std::string_view text) noexcept;
// After it: the call that is under way does not fail for that, so what fails next on this thread may be cuDNN's.
void goes_on() noexcept;

}  // namespace convpin
