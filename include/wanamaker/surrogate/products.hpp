// Products of host matrices in double, by the Gram kernel.
#pragma once

#include <cstddef>
#include <vector>

#include "wanamaker/backend/gram.hpp"
#include "wanamaker/core/executor.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace detail {

inline std::vector<double> transposed_copy(ConstMatrixView<double> m) {
  std::vector<double> copy;
  copy.reserve(static_cast<std::size_t>(m.size()));
  for (Index j = 0; j < m.cols; ++j) {
    for (Index i = 0; i < m.rows; ++i) copy.push_back(m(i, j));
  }
  return copy;
}

/// aᵀ·b.
inline std::vector<double> transposed_product(ConstMatrixView<double> a, ConstMatrixView<double> b,
                                              const ExecutorRef& executor) {
  std::vector<double> c(static_cast<std::size_t>(a.cols * b.cols));
  add_gram<double, double>(executor, a, b, 1.0, {c.data(), a.cols, b.cols});
  return c;
}

/// a·b.
inline std::vector<double> product(ConstMatrixView<double> a, ConstMatrixView<double> b,
                                   const ExecutorRef& executor) {
  const std::vector<double> at = transposed_copy(a);
  return transposed_product(ConstMatrixView<double>(at.data(), a.cols, a.rows), b, executor);
}

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
