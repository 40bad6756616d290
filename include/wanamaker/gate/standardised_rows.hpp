// Passes over rows of standardised features without ever making the standardised matrix.
#pragma once

#include <span>
#include <vector>

#include "wanamaker/backend/row_team.hpp"
#include "wanamaker/gate/feature_scaling.hpp"
#include "wanamaker/gate/linear_score.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// A row's part of an objective Σ_i φ_i(z_i), and its derivative φ_i'(z_i).
struct RowTerm {
  double value = 0;
  double slope = 0;
};

/// z_i = w·x_i + bias, then sums of slope_i·x_i [d], of slope_i and of value_i, while the row is in
/// cache.
template <class T, class Term>
struct AddRowTerm {
  ConstMatrixView<T> x;
  const double* weights;
  double bias;
  Term term;

  void operator()(Index i, double* sums) const {
    const T* row = x.row(i);
    const double* w = weights;
    const double product = SerialRowTeam{}.sum<double>(
        x.cols, [=](Index j) { return static_cast<double>(row[j]) * w[j]; });
    const RowTerm t = term(i, product + bias);
    for (Index j = 0; j < x.cols; ++j) sums[j] += t.slope * static_cast<double>(row[j]);
    sums[x.cols] += t.slope;
    sums[x.cols + 1] += t.value;
  }
};

template <class T>
struct ScoreRow {
  ConstMatrixView<T> x;
  const double* weights;
  double bias;
  double* scores;

  void operator()(Index i) const {
    const T* row = x.row(i);
    const double* w = weights;
    scores[i] = bias + SerialRowTeam{}.sum<double>(
                           x.cols, [=](Index j) { return static_cast<double>(row[j]) * w[j]; });
  }
};

}  // namespace detail

/// Rows x [n × d] in host memory, seen as standardised features and a constant 1. The scaling must
/// outlive it.
template <class T>
class StandardisedRows {
 public:
  StandardisedRows(ConstMatrixView<T> x, const FeatureScaling& scaling, ExecutorRef executor)
      : x_(x), scaling_(&scaling), executor_(executor) {}

  Index rows() const { return x_.rows; }
  Index width() const { return x_.cols; }
  const FeatureScaling& scaling() const { return *scaling_; }
  const ExecutorRef& executor() const { return executor_; }
  ConstMatrixView<T> raw() const { return x_; }

  /// Σ_i φ_i(z_i) with z = x̃·point[0 … d) + point[d], from one pass; gradient [d + 1] by point.
  /// term(i, z) gives φ_i and its derivative.
  template <class Term>
  double accumulate(std::span<const double> point, const Term& term,
                    std::span<double> gradient) const {
    const std::size_t d = static_cast<std::size_t>(width());
    const LinearScore raw_score = unstandardise(point.first(d), point[d], *scaling_);
    std::vector<double> sums(d + 2);
    detail::sum_over_rows(
        rows(), executor_,
        detail::AddRowTerm<T, Term>{x_, raw_score.weights.data(), raw_score.bias, term}, sums);
    for (std::size_t j = 0; j < d; ++j) {
      gradient[j] = (sums[j] - scaling_->mean[j] * sums[d]) / scaling_->scale[j];
    }
    gradient[d] = sums[d];
    return sums[d + 1];
  }

  /// z_i for all rows.
  std::vector<double> scores(std::span<const double> point) const {
    const std::size_t d = static_cast<std::size_t>(width());
    const LinearScore raw_score = unstandardise(point.first(d), point[d], *scaling_);
    std::vector<double> z(static_cast<std::size_t>(rows()));
    const detail::ScoreRow<T> score{x_, raw_score.weights.data(), raw_score.bias, z.data()};
    constexpr Index chunk = 256;
    executor_.run(blocks_of(rows(), chunk),
                  [&](Index c) { run_range(c * chunk, std::min(rows(), (c + 1) * chunk), score); });
    return z;
  }

 private:
  ConstMatrixView<T> x_;
  const FeatureScaling* scaling_;
  ExecutorRef executor_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
