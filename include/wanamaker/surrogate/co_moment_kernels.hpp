// The kernels behind co-moments: column means and squares, shifting, folding of blocks. They run on
// hosts and devices; co_moments.hpp puts them together.
#pragma once

#include <cmath>

#include "wanamaker/core/matrix_view.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace kernels {

/// Rows that one piece of ColumnSums covers.
inline constexpr Index column_sum_rows = 64;

/// The first of the rows [first, end) that has a weight; the last where none has.
WANAMAKER_KERNEL Index first_weighted(ConstVectorView<double> weights, Index first, Index end) {
  if (weights.empty()) return first;
  while (first + 1 < end && !(weights[first] > 0)) ++first;
  return first;
}

/// Of the rows t of block b: Σ w_t, and for each column Σ w_t·v and Σ w_t·v², v the deviation from
/// the block's first weighted row: a constant column has exactly 0. No weights: all 1.
template <class T>
struct ColumnSums {
  ConstMatrixView<T> x;
  ConstVectorView<double> weights;
  VectorView<double> weight;  ///< [blocks]
  MatrixView<double> sum;     ///< [blocks × cols]
  MatrixView<double> square;  ///< [blocks × cols]

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index block, const RowTeam& team) const {
    const Index first = block * column_sum_rows;
    const Index end = x.rows - first < column_sum_rows ? x.rows : first + column_sum_rows;
    const T* pivot = x.row(first_weighted(weights, first, end));
    double* own_sum = sum.row(block);
    double* own_square = square.row(block);
    team.each(x.cols, [=](Index j) { own_sum[j] = own_square[j] = 0; });
    double total = 0;
    for (Index t = first; t < end; ++t) {
      const T* row = x.row(t);
      const double w = weights.empty() ? 1.0 : weights[t];
      total += w;
      team.each(x.cols, [=](Index j) {
        const double v = static_cast<double>(row[j]) - static_cast<double>(pivot[j]);
        own_sum[j] += w * v;
        own_square[j] += w * v * v;
      });
    }
    if (team.leader()) weight[block] = total;
  }
};

/// Per column, from the blocks of ColumnSums: the mean, Σ w(x − mean)², and the mean less the first
/// weighted row, which keeps the digits that the mean itself may lose. Blocks merge pairwise (Chan,
/// Golub & LeVeque 1983). A pivot that lies far out costs its block no more than roundings of the
/// square that this row itself adds to the result. Not finite where a value is not.
template <class T>
struct MergeColumns {
  ConstMatrixView<T> x;
  ConstVectorView<double> weights;
  ConstVectorView<double> weight;
  ConstMatrixView<double> sum;
  ConstMatrixView<double> square;
  VectorView<double> mean;
  VectorView<double> deviation;
  VectorView<double> total_square;

  WANAMAKER_KERNEL void operator()(Index j) const {
    const double origin = static_cast<double>(x(first_weighted(weights, 0, x.rows), j));
    double n = 0;
    double centre = 0;
    double squares = 0;
    for (Index b = 0; b < sum.rows; ++b) {
      const double own = weight[b];
      if (!(own > 0)) continue;
      const double inside = sum(b, j) / own;
      const Index pivot = first_weighted(weights, b * column_sum_rows, x.rows);
      const double step = static_cast<double>(x(pivot, j)) - origin + inside - centre;
      const double share = own / (n + own);
      const double left = square(b, j) - inside * sum(b, j);
      squares += (left < 0 ? 0.0 : left) + n * share * step * step;
      centre += share * step;
      n += own;
    }
    deviation[j] = centre;
    mean[j] = origin + centre;
    total_square[j] = squares;
  }
};

/// shift[j] = mean[j] rounded to T where the mean exceeds four standard deviations, else 0. Then
/// x − shift is exact in floating point nearly everywhere (x lies within a factor of two of the
/// shift, Sterbenz 1974, or the shift is 0), and |mean(x − shift)| <= 4 standard deviations, so
/// that centring the sums afterwards costs at most 16 roundings of a double. rest[j] is
/// mean(x − shift), from the deviations, since mean[j] − shift[j] may have no digits left.
template <class T>
struct ChooseShift {
  ConstMatrixView<T> x;
  ConstVectorView<double> weights;
  ConstVectorView<double> deviation;
  ConstVectorView<double> mean;
  ConstVectorView<double> square;
  double weight_sum;
  VectorView<T> shift;
  VectorView<double> rest;

  WANAMAKER_KERNEL void operator()(Index j) const {
    const bool is_far = mean[j] * mean[j] * weight_sum > 16.0 * square[j];
    shift[j] = is_far ? static_cast<T>(mean[j]) : T(0);
    const T pivot = x(first_weighted(weights, 0, x.rows), j);
    rest[j] = (static_cast<double>(pivot) - static_cast<double>(shift[j])) + deviation[j];
  }
};

/// y = √w·(x − shift) per row.
template <class T>
struct ShiftRow {
  ConstMatrixView<T> x;
  ConstVectorView<T> shift;
  ConstVectorView<double> weights;
  MatrixView<T> y;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const T* in = x.row(i);
    const T* s = shift.data;
    T* out = y.row(i);
    if (weights.empty()) {
      team.each(y.cols, [=](Index j) { out[j] = in[j] - s[j]; });
    } else {
      const T root = static_cast<T>(std::sqrt(weights[i]));
      team.each(y.cols, [=](Index j) { out[j] = root * (in[j] - s[j]); });
    }
  }
};

/// total += (block − n·r rᵀ) + f·δ δᵀ per row: a block's products about its shift, centred (r: the
/// block's means less the shift, n: its weight), and merged into running co-moments by the pairwise
/// formula (δ: difference of the means, f = n_a n_b/(n_a + n_b)). Chan, Golub & LeVeque 1983.
struct FoldRow {
  ConstMatrixView<double> block;
  ConstVectorView<double> row_rest;  ///< r of the rows' columns
  ConstVectorView<double> col_rest;
  double weight;
  ConstVectorView<double> row_step;  ///< δ of the rows' columns
  ConstVectorView<double> col_step;
  double factor;
  MatrixView<double> total;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index i, const RowTeam& team) const {
    const double* in = block.row(i);
    const double* rest = col_rest.data;
    const double* step = col_step.data;
    double* out = total.row(i);
    const double own_rest = row_rest[i];
    const double own_step = row_step[i];
    const double n = weight;
    const double f = factor;
    team.each(total.cols, [=](Index j) {
      const double centred = in[j] - n * (own_rest * rest[j]);
      out[j] += centred + f * (own_step * step[j]);
    });
  }
};

}  // namespace kernels
}  // namespace wanamaker::inline WANAMAKER_ABI
