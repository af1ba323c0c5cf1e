// What a parser gives back: a value, or one sentence for the person who wrote the text.
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace convpin {

template <typename T>
struct Parsed {
  std::optional<T> value;
  std::string error;               // empty exactly where value is set; quotes the text, lists what is allowed

  static Parsed ok(T v) { return {std::move(v), {}}; }
  static Parsed fail(std::string why) { return {std::nullopt, std::move(why)}; }
  explicit operator bool() const { return value.has_value(); }
  const T& operator*() const { return *value; }
  const T* operator->() const { return &*value; }
};

}  // namespace convpin
