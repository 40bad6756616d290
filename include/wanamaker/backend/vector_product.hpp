// A row vector times a matrix, on the host: the product of decoding one token. It takes as long as
// reading the matrix, so both loops go along the matrix's rows.
#pragma once

#include <algorithm>

#include "wanamaker/backend/backend.hpp"
#include "wanamaker/backend/instruction_set.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace detail {

// Σ_k x[k]·y[k], in lanes that a vector register can hold; the order of sums is fixed.
template <class T>
WANAMAKER_KERNEL T dot_product(const T* x, const T* y, Index n) {
  constexpr Index lanes = 32;
  T sums[lanes] = {};
  Index k = 0;
  for (; k + lanes <= n; k += lanes) {
    for (Index l = 0; l < lanes; ++l) sums[l] += x[k + l] * y[k + l];
  }
  for (Index l = 0; k < n; ++k, ++l) sums[l] += x[k] * y[k];
  for (Index half = lanes / 2; half > 0; half /= 2) {
    for (Index l = 0; l < half; ++l) sums[l] += sums[l + half];
  }
  return sums[0];
}

// Columns [first, first + count) of x·B, count at most `columns_at_a_time`, added to y.
inline constexpr Index columns_at_a_time = 512;
template <class T>
WANAMAKER_KERNEL void add_columns(const T* x, ConstMatrixView<T> b, T alpha, Index first,
                                  Index count, T* y) {
  T sums[columns_at_a_time] = {};
  for (Index k = 0; k < b.rows; ++k) {
    const T* row = b.row(k) + first;
    for (Index l = 0; l < count; ++l) sums[l] += x[k] * row[l];
  }
  for (Index l = 0; l < count; ++l) y[first + l] += alpha * sums[l];
}

}  // namespace detail

/// y ← y + α·x·op(B) with x [k] and y [n] contiguous, op(B) [k × n]; serial.
template <class T>
void add_vector_product(const T* x, Operand<T> b, T alpha, T* y) {
  const ConstMatrixView<T> matrix = b.matrix;
  if (b.is_transposed) {
    run_range(0, matrix.rows,
              [=](Index j) { y[j] += alpha * detail::dot_product(x, matrix.row(j), matrix.cols); });
    return;
  }
  run_range(0, blocks_of(matrix.cols, detail::columns_at_a_time), [=](Index block) {
    const Index first = block * detail::columns_at_a_time;
    detail::add_columns(x, matrix, alpha, first,
                        std::min(detail::columns_at_a_time, matrix.cols - first), y);
  });
}

}  // namespace wanamaker::inline WANAMAKER_ABI
