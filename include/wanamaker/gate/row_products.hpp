// Four rows at a time: their products with a vector, and sums of them, in double. Reading a vector
// once for four rows, and fetching the next four while these are in cache, is what makes a pass
// over many rows as quick as memory allows.
#pragma once

#include <algorithm>
#include <array>

#include "wanamaker/core/matrix_view.hpp"

namespace wanamaker::inline WANAMAKER_ABI::detail {

/// Up to four neighbouring rows of a matrix; `count` is known at compile time.
template <class T, Index Count>
struct RowGroup {
  static constexpr Index count = Count;
  static constexpr Index lanes = 16;  // of a partial sum: the order of sums is the same everywhere
  using Values = std::array<double, static_cast<std::size_t>(Count)>;

  const T* first;
  const T* next;  // the rows to fetch meanwhile
  Index stride;
  Index width;

  WANAMAKER_KERNEL RowGroup(const ConstMatrixView<T>& x, Index i)
      : first(x.row(i)),
        next(x.row(std::min(i + Count, x.rows - Count))),
        stride(x.stride),
        width(x.cols) {}

  WANAMAKER_KERNEL double at(Index r, Index j) const {
    return static_cast<double>(first[r * stride + j]);
  }

  /// The rows' products with a vector.
  WANAMAKER_KERNEL Values times(const double* vector) const {
    double partial[static_cast<std::size_t>(Count)][static_cast<std::size_t>(lanes)] = {};
    Index j = 0;
    for (; j + lanes <= width; j += lanes) {
      for (Index k = 0; k < lanes; ++k) {
        for (Index r = 0; r < Count; ++r) partial[r][k] += at(r, j + k) * vector[j + k];
      }
    }
    for (Index k = 0; k < width - j; ++k) {
      for (Index r = 0; r < Count; ++r) partial[r][k] += at(r, j + k) * vector[j + k];
    }
    Values products{};
    for (Index k = 0; k < lanes; ++k) {
      for (Index r = 0; r < Count; ++r) products[static_cast<std::size_t>(r)] += partial[r][k];
    }
    return products;
  }

  /// sums += Σ_r factor_r·row_r.
  WANAMAKER_KERNEL void add_to(double* sums, const Values& factors) const {
    Index j = 0;
    for (; j + lanes <= width; j += lanes) {
      fetch(j);
      for (Index k = 0; k < lanes; ++k) add_element(sums, factors, j + k);
    }
    for (; j < width; ++j) add_element(sums, factors, j);
  }

 private:
  WANAMAKER_KERNEL void add_element(double* sums, const Values& factors, Index j) const {
    double sum = sums[j];
    for (Index r = 0; r < Count; ++r) sum += factors[static_cast<std::size_t>(r)] * at(r, j);
    sums[j] = sum;
  }

  WANAMAKER_KERNEL void fetch([[maybe_unused]] Index j) const {
#if defined(__GNUC__)
    for (Index r = 0; r < Count; ++r) __builtin_prefetch(next + r * stride + j);
#endif
  }
};

/// kernel.add_group(i, RowGroup of the rows from i, result) for all rows of [begin, end), in fours
/// and then one by one. A member, not a lambda: it must be inlined to be compiled for the widest
/// instructions.
template <class T, class Kernel>
WANAMAKER_KERNEL void for_each_row_group(const ConstMatrixView<T>& x, Index begin, Index end,
                                         const Kernel& kernel, double* result) {
  Index i = begin;
  for (; i + 4 <= end; i += 4) kernel.add_group(i, RowGroup<T, 4>(x, i), result);
  for (; i < end; ++i) kernel.add_group(i, RowGroup<T, 1>(x, i), result);
}

}  // namespace wanamaker::inline WANAMAKER_ABI::detail
