// Predictions of rows by models that saw no row of their fold, and what those explain.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/core/matrix_view.hpp"
#include "wanamaker/stats/correlation.hpp"
#include "wanamaker/stats/folds.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// 1 − Σ(y − ŷ)²/Σ(y − ȳ)²: at most 1, 0 for ŷ = ȳ, below 0 for predictions that are worse than the
/// mean. Missing where y is constant. Throws ShapeError ("stats/length-mismatch"), DataError
/// ("stats/non-finite").
inline std::optional<double> r_squared(std::span<const double> y,
                                       std::span<const double> predicted) {
  detail::check_same_length(y.size(), predicted.size(), "r_squared(predicted)");
  detail::check_finite(y, "r_squared(y)");
  detail::check_finite(predicted, "r_squared(predicted)");
  if (detail::scaled_deviations(y).empty()) return std::nullopt;
  const double mean = detail::mean_of(y);
  double errors = 0;
  double squares = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    errors += (y[i] - predicted[i]) * (y[i] - predicted[i]);
    squares += (y[i] - mean) * (y[i] - mean);
  }
  if (!(squares > 0)) return std::nullopt;
  return 1 - errors / squares;
}

/// What a regression explains of documents that it did not see.
struct HeldOutFit {
  std::vector<double> predictions{};  ///< [n], each by a model without the row's fold
  std::optional<double> r2{};         ///< of them; missing where y is constant
  std::optional<double> spearman{};   ///< of them with y; missing where either is constant
};

namespace detail {

/// Some rows of a design, copied.
struct Sample {
  std::vector<double> x{};  ///< [rows × width]
  std::vector<double> y{};
  Index width = 0;

  ConstMatrixView<double> view() const { return {x.data(), static_cast<Index>(y.size()), width}; }
};

/// The rows whose fold satisfies `wanted`.
template <class Wanted>
Sample sample_of(ConstMatrixView<double> x, std::span<const double> y,
                 std::span<const Index> fold_of, const Wanted& wanted) {
  Sample sample{.width = x.cols};
  for (Index i = 0; i < x.rows; ++i) {
    const std::size_t at = static_cast<std::size_t>(i);
    if (!wanted(fold_of[at])) continue;
    sample.x.insert(sample.x.end(), x.row(i), x.row(i) + x.cols);
    sample.y.push_back(y[at]);
  }
  return sample;
}

/// Throws ShapeError, DataError unless x [n × d] and y [n] can be regressed.
inline void check_regression(ConstMatrixView<double> x, std::span<const double> y,
                             const char* where) {
  check_same_length(static_cast<std::size_t>(x.rows), y.size(), where);
  check_not_empty(y.size(), where);
  check_finite(y, where);
  for (Index i = 0; i < x.rows; ++i) {
    check_finite({x.row(i), static_cast<std::size_t>(x.cols)}, where);
  }
}

}  // namespace detail

/// Predictions out of fold: `fit(fold)` gives a model with predict(x) → [n] that saw no row of the
/// fold. Folds are 0 … folds − 1.
template <class Fit>
HeldOutFit held_out_fit(ConstMatrixView<double> x, std::span<const double> y,
                        std::span<const Index> fold_of, Index folds, Fit&& fit) {
  detail::check_same_length(y.size(), fold_of.size(), "held_out_fit(fold_of)");
  HeldOutFit result{.predictions = std::vector<double>(y.size())};
  for (Index fold = 0; fold < folds; ++fold) {
    const auto model = fit(fold);
    const detail::Sample own =
        detail::sample_of(x, y, fold_of, [fold](Index other) { return other == fold; });
    const std::vector<double> predicted = model.predict(own.view());
    std::size_t next = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (fold_of[i] == fold) result.predictions[i] = predicted[next++];
    }
  }
  result.r2 = r_squared(y, result.predictions);
  result.spearman = spearman_correlation(y, result.predictions);
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
