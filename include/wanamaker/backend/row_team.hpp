// Who works on one row: on the host a single thread, on a device a group of threads. Kernels are
// written against this interface and run on both.
#pragma once

#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// The host's team of one. `each` visits 0 … n − 1; `sum` and `max` reduce term(j) over them. The
/// sum runs in 16 interleaved partial sums, so that compilers vectorise it and its order (hence its
/// result) is the same for every vector width.
struct SerialRowTeam {
  template <class F>
  WANAMAKER_KERNEL void each(Index n, F f) const {
    for (Index j = 0; j < n; ++j) f(j);
  }

  template <class T, class F>
  WANAMAKER_KERNEL T sum(Index n, F term) const {
    T partial[lanes] = {};
    Index j = 0;
    for (; j + lanes <= n; j += lanes) {
      for (Index k = 0; k < lanes; ++k) partial[k] += static_cast<T>(term(j + k));
    }
    for (Index k = 0; j + k < n; ++k) partial[k] += static_cast<T>(term(j + k));
    for (Index width = lanes / 2; width > 0; width /= 2) {
      for (Index k = 0; k < width; ++k) partial[k] += partial[k + width];
    }
    return partial[0];
  }

  template <class T, class F>
  WANAMAKER_KERNEL T max(Index n, T lowest, F term) const {
    constexpr Index lanes_of_max = 2 * lanes;  // no order to keep, and twice as quick
    T partial[lanes_of_max];
    for (Index k = 0; k < lanes_of_max; ++k) partial[k] = lowest;
    Index j = 0;
    for (; j + lanes_of_max <= n; j += lanes_of_max) {
      for (Index k = 0; k < lanes_of_max; ++k) partial[k] = larger(partial[k], term(j + k));
    }
    for (Index k = 0; j + k < n; ++k) partial[k] = larger(partial[k], term(j + k));
    for (Index width = lanes_of_max / 2; width > 0; width /= 2) {
      for (Index k = 0; k < width; ++k) partial[k] = larger(partial[k], partial[k + width]);
    }
    return partial[0];
  }

  /// Is this the member that writes the row's single results?
  WANAMAKER_KERNEL bool leader() const { return true; }

 private:
  static constexpr Index lanes = 16;

  template <class T>
  WANAMAKER_KERNEL static T larger(T a, T b) {
    return a < b ? b : a;
  }
};

}  // namespace wanamaker::inline WANAMAKER_ABI
