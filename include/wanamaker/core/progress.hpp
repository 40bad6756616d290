// Progress and cancellation, as values that the caller hands in; the library prints nothing.
#pragma once

#include <functional>
#include <string_view>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Called between pieces of work. Returning false asks for cancellation.
struct Progress {
  /// (stage, done, total) → go on? Empty: silent, never cancelled. An empty stage reports nothing
  /// and only asks whether to go on.
  std::function<bool(std::string_view stage, Index done, Index total)> report;

  /// Reports, and throws Cancelled when the caller asked to stop.
  void operator()(std::string_view stage, Index done, Index total) const {
    if (report && !report(stage, done, total)) throw Cancelled();
  }

  /// Throws Cancelled when the caller asked to stop.
  void poll() const { (*this)("", 0, 0); }
};

}  // namespace wanamaker::inline WANAMAKER_ABI
