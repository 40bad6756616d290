// Passes over rows of standardised features without ever making the standardised matrix.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "wanamaker/gate/feature_scaling.hpp"
#include "wanamaker/gate/linear_score.hpp"
#include "wanamaker/gate/row_products.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

/// A row's part of an objective Σ_i φ_i(z_i), and its derivative φ_i'(z_i).
struct RowTerm {
  double value = 0;
  double slope = 0;
};

/// z_i = w·x_i + bias, then sums of slope_i·x_i [d], of slope_i and of value_i, while the rows are
/// in cache.
template <class T, class Term>
struct AddRowTerms {
  ConstMatrixView<T> x;
  const double* weights;
  double bias;
  Term term;

  WANAMAKER_KERNEL void operator()(Index begin, Index end, double* sums) const {
    for_each_row_group(x, begin, end, *this, sums);
  }

  template <class Group>
  WANAMAKER_KERNEL void add_group(Index i, const Group& group, double* sums) const {
    typename Group::Values values = group.times(weights);
    for (double& value : values) {
      const RowTerm t = term(i++, value + bias);
      sums[x.cols] += t.slope;
      sums[x.cols + 1] += t.value;
      value = t.slope;
    }
    group.add_to(sums, values);
  }
};

/// z_i = w·x_i + bias.
template <class T>
struct ScoreRows {
  ConstMatrixView<T> x;
  const double* weights;
  double bias;

  WANAMAKER_KERNEL void operator()(Index begin, Index end, double* scores) const {
    for_each_row_group(x, begin, end, *this, scores);
  }

  template <class Group>
  WANAMAKER_KERNEL void add_group(Index i, const Group& group, double* scores) const {
    for (const double value : group.times(weights)) scores[i++] = value + bias;
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
        detail::AddRowTerms<T, Term>{x_, raw_score.weights.data(), raw_score.bias, term}, sums);
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
    const detail::ScoreRows<T> score{x_, raw_score.weights.data(), raw_score.bias};
    constexpr Index chunk = 256;
    executor_.run(blocks_of(rows(), chunk), [&](Index c) {
      const Index first = c * chunk;
      const Index end = std::min(rows(), first + chunk);
      run_range(0, 1, [score, first, end, &z](Index) { score(first, end, z.data()); });
    });
    return z;
  }

 private:
  ConstMatrixView<T> x_;
  const FeatureScaling* scaling_;
  ExecutorRef executor_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
