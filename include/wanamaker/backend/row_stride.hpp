// How far apart rows of scratch matrices lie.
#pragma once

#include "wanamaker/core/index.hpp"

namespace wanamaker::inline WANAMAKER_ABI::detail {

/// Elements of T from row to row. Rows of 1 KB and more begin an odd number of cache lines of 64
/// bytes apart: with powers of two between them the rows of a column would share a few sets of the
/// cache, and products that read by columns, as every weight's gradient does, would take up to
/// twice as long.
template <class T>
constexpr Index padded_row_stride(Index cols) {
  constexpr Index line = 64 / Index{sizeof(T)};
  if (cols < 16 * line) return cols;
  const Index lines = (cols + line - 1) / line;
  return (lines % 2 == 0 ? lines + 1 : lines) * line;
}

/// Would rows so far apart share a few sets of the cache?
template <class T>
constexpr bool rows_share_sets(Index stride) {
  return stride * Index{sizeof(T)} % 4096 == 0;
}

}  // namespace wanamaker::inline WANAMAKER_ABI::detail
