// The kernels behind co-moments: column means and squares, shifting, folding of blocks. They run on
// hosts and devices; see co_moments.hpp for what they are put together to.
#pragma once

#include <cmath>

#include "wanamaker/core/matrix_view.hpp"

namespace wanamaker::inline WANAMAKER_ABI {
namespace kernels {

/// Columns that one piece of ColumnMeans and ColumnSquares covers.
inline constexpr Index column_panel = 16;

/// mean[j] = Σ_t w_t x(t, j)/Σ_t w_t for the columns of panel p. Deviations from the first row are
/// summed, so a constant column has exactly its value as mean; `deviation` is the mean less the
/// first row, which keeps the digits that adding them up would lose. No weights: all 1.
template <class T>
struct ColumnMeans {
  ConstMatrixView<T> x;
  ConstVectorView<double> weights;
  double weight_sum;
  VectorView<double> deviation;
  VectorView<double> mean;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index panel, const RowTeam& team) const {
    const Index first = panel * column_panel;
    const Index count = x.cols - first < column_panel ? x.cols - first : column_panel;
    const T* pivot = x.row(0) + first;
    double* sum = deviation.data + first;
    double* centre = mean.data + first;
    team.each(count, [=](Index j) { sum[j] = 0; });
    for (Index t = 0; t < x.rows; ++t) {
      const T* row = x.row(t) + first;
      const double w = weights.empty() ? 1.0 : weights[t];
      team.each(count, [=](Index j) {
        sum[j] += w * (static_cast<double>(row[j]) - static_cast<double>(pivot[j]));
      });
    }
    const double total = weight_sum;
    team.each(count, [=](Index j) {
      sum[j] /= total;
      centre[j] = static_cast<double>(pivot[j]) + sum[j];
    });
  }
};

/// square[j] = Σ_t w_t (x(t, j) − mean[j])² for the columns of panel p.
template <class T>
struct ColumnSquares {
  ConstMatrixView<T> x;
  ConstVectorView<double> weights;
  ConstVectorView<double> mean;
  VectorView<double> square;

  template <class RowTeam>
  WANAMAKER_KERNEL void operator()(Index panel, const RowTeam& team) const {
    const Index first = panel * column_panel;
    const Index count = x.cols - first < column_panel ? x.cols - first : column_panel;
    const double* centre = mean.data + first;
    double* sum = square.data + first;
    team.each(count, [=](Index j) { sum[j] = 0; });
    for (Index t = 0; t < x.rows; ++t) {
      const T* row = x.row(t) + first;
      const double w = weights.empty() ? 1.0 : weights[t];
      team.each(count, [=](Index j) {
        const double deviation = static_cast<double>(row[j]) - centre[j];
        sum[j] += w * deviation * deviation;
      });
    }
  }
};

/// shift[j] = mean[j] rounded to T where the mean exceeds four standard deviations, else 0. Then
/// x − shift is exact in floating point nearly everywhere (x lies within a factor of two of the
/// shift, Sterbenz 1974, or the shift is 0), and |mean(x − shift)| <= 4 standard deviations, so
/// that centring the sums afterwards costs at most 16 roundings of a double. rest[j] is
/// mean(x − shift), from the deviations, since mean[j] − shift[j] may have no digits left.
template <class T>
struct ChooseShift {
  ConstVectorView<T> pivot;
  ConstVectorView<double> deviation;
  ConstVectorView<double> mean;
  ConstVectorView<double> square;
  double weight_sum;
  VectorView<T> shift;
  VectorView<double> rest;

  WANAMAKER_KERNEL void operator()(Index j) const {
    const bool is_far = mean[j] * mean[j] * weight_sum > 16.0 * square[j];
    shift[j] = is_far ? static_cast<T>(mean[j]) : T(0);
    rest[j] = (static_cast<double>(pivot[j]) - static_cast<double>(shift[j])) + deviation[j];
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
