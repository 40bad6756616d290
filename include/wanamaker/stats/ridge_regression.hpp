// Linear regression on a few standardised features, and what it explains of documents held out.
// (Surrogates of whole MLPs are another matter: surrogate/ridge.hpp.) Needs Eigen.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/backend/third_party/eigen_factorisations.hpp"
#include "wanamaker/stats/held_out.hpp"
#include "wanamaker/stats/running_moments.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// ŷ = intercept + Σ_j weight_j x_j in the features' own units.
struct RidgeRegression {
  std::vector<double> weights{};  ///< [d]; 0 for a constant feature
  double intercept = 0;

  /// x [n × d] → [n]. Throws ShapeError.
  std::vector<double> predict(ConstMatrixView<double> x) const {
    check_shape(x, x.rows, static_cast<Index>(weights.size()), "RidgeRegression::predict: x");
    std::vector<double> predicted(static_cast<std::size_t>(x.rows), intercept);
    for (Index i = 0; i < x.rows; ++i) {
      for (Index j = 0; j < x.cols; ++j) {
        predicted[static_cast<std::size_t>(i)] += weights[static_cast<std::size_t>(j)] * x(i, j);
      }
    }
    return predicted;
  }
};

namespace detail {

/// (x − mean)/standard deviation (divisor n) of every feature; 0 for a constant one.
struct FeatureScale {
  std::vector<double> means{};
  std::vector<double> inverse_deviations{};
};

inline FeatureScale feature_scale(ConstMatrixView<double> x) {
  FeatureScale scale;
  for (Index j = 0; j < x.cols; ++j) {
    RunningMoments moments;
    bool varies = false;
    for (Index i = 0; i < x.rows; ++i) {
      moments.add(x(i, j));
      varies = varies || x(i, j) != x(0, j);
    }
    const double n = static_cast<double>(x.rows);
    const double variance = moments.variance().value_or(0) * (n - 1) / n;
    scale.means.push_back(*moments.mean());
    scale.inverse_deviations.push_back(varies && variance > 0 ? 1 / std::sqrt(variance) : 0.0);
  }
  return scale;
}

inline EigenRowMajor<double> standardised(ConstMatrixView<double> x, const FeatureScale& scale) {
  EigenRowMajor<double> z(x.rows, x.cols);
  for (Index i = 0; i < x.rows; ++i) {
    for (Index j = 0; j < x.cols; ++j) {
      const std::size_t at = static_cast<std::size_t>(j);
      z(i, j) = (x(i, j) - scale.means[at]) * scale.inverse_deviations[at];
    }
  }
  return z;
}

inline void check_penalty(double penalty, const char* where) {
  if (penalty > 0 && std::isfinite(penalty)) return;
  throw DataError({.id = "stats/penalty",
                   .where = where,
                   .what = "unusable penalty",
                   .expected = "a finite number above 0",
                   .found = number_text(penalty),
                   .mend = "leave the default"});
}

}  // namespace detail

/// Minimises Σ(y − ŷ)² + penalty·‖w‖², w the weights of standardised features (divisor n), the
/// intercept free. Constant features get no weight. Throws ShapeError ("stats/length-mismatch"),
/// DataError ("stats/empty", "stats/non-finite", "stats/penalty").
inline RidgeRegression fit_ridge_regression(ConstMatrixView<double> x, std::span<const double> y,
                                            double penalty = 1) {
  detail::check_regression(x, y, "fit_ridge_regression");
  detail::check_penalty(penalty, "fit_ridge_regression(penalty)");
  const detail::FeatureScale scale = detail::feature_scale(x);
  const double mean = detail::mean_of(y);
  const EigenRowMajor<double> z = detail::standardised(x, scale);
  Eigen::VectorXd target(x.rows);
  for (Index i = 0; i < x.rows; ++i) target[i] = y[static_cast<std::size_t>(i)] - mean;
  Eigen::MatrixXd gram = z.transpose() * z;
  gram.diagonal().array() += penalty;
  const Eigen::VectorXd moments = z.transpose() * target;
  const Eigen::VectorXd solution = gram.llt().solve(moments);
  RidgeRegression result{.intercept = mean};
  for (Index j = 0; j < x.cols; ++j) {
    const std::size_t at = static_cast<std::size_t>(j);
    result.weights.push_back(solution[j] * scale.inverse_deviations[at]);
    result.intercept -= result.weights.back() * scale.means[at];
  }
  return result;
}

/// Out-of-fold predictions of ridge regression, standardised anew without each fold. Throws as
/// fit_ridge_regression.
inline HeldOutFit held_out_ridge(ConstMatrixView<double> x, std::span<const double> y,
                                 std::span<const Index> fold_of, Index folds, double penalty = 1) {
  detail::check_regression(x, y, "held_out_ridge");
  return held_out_fit(x, y, fold_of, folds, [&](Index fold) {
    const detail::Sample rest =
        detail::sample_of(x, y, fold_of, [fold](Index other) { return other != fold; });
    return fit_ridge_regression(rest.view(), rest.y, penalty);
  });
}

}  // namespace wanamaker::inline WANAMAKER_ABI
