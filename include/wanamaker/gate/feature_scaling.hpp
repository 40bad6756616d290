// Standardised features: mean 0 and standard deviation 1, as scikit-learn's StandardScaler.
#pragma once

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/core/error.hpp"
#include "wanamaker/core/matrix_view.hpp"
#include "wanamaker/gate/row_blocks.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// x̃_j = (x_j − mean_j)/scale_j; scale is the population's standard deviation (divisor n), 1 for a
/// feature that is constant.
struct FeatureScaling {
  std::vector<double> mean{};              ///< [d]
  std::vector<double> scale{};             ///< [d]
  std::vector<Index> constant_features{};  ///< those that carry no information

  Index width() const { return static_cast<Index>(mean.size()); }
};

/// x̃ = x.
inline FeatureScaling no_scaling(Index width) {
  const std::size_t d = static_cast<std::size_t>(width);
  return {std::vector<double>(d, 0.0), std::vector<double>(d, 1.0), {}};
}

namespace detail {

/// Deviations from a row near the mean, and their squares: one pass without cancellation.
template <class T>
struct AddDeviations {
  ConstMatrixView<T> x;
  const double* origin;

  WANAMAKER_KERNEL void operator()(Index begin, Index end, double* sums) const {
    double* squares = sums + x.cols;
    for (Index i = begin; i < end; ++i) {
      const T* row = x.row(i);
      for (Index j = 0; j < x.cols; ++j) {
        const double deviation = static_cast<double>(row[j]) - origin[j];
        sums[j] += deviation;
        squares[j] += deviation * deviation;
      }
    }
  }
};

/// As scikit-learn: no more variance than rounding of a constant would give.
inline bool is_constant(double variance, double mean, double n) {
  constexpr double eps = std::numeric_limits<double>::epsilon();
  const double rounding = n * mean * eps;
  return variance <= n * eps * variance + rounding * rounding;
}

[[noreturn]] inline void throw_unusable_features(const char* where, std::string what) {
  throw DataError({.id = "gate/features",
                   .where = where,
                   .what = std::move(what),
                   .expected = "at least one row of finite numbers",
                   .mend = "leave such rows out, or find which layer made them"});
}

}  // namespace detail

/// Means and standard deviations of the columns of x [n × d], host memory; sums in double. Throws
/// DataError ("gate/features") where there is no row, or a value is not finite.
template <class T>
FeatureScaling fit_feature_scaling(ConstMatrixView<T> x, const ExecutorRef& executor = {}) {
  if (x.rows == 0) detail::throw_unusable_features("fit_feature_scaling", "no rows");
  const std::size_t d = static_cast<std::size_t>(x.cols);
  const double n = static_cast<double>(x.rows);
  const T* middle = x.row(x.rows / 2);  // the first row is often an outlier: it starts a sequence
  FeatureScaling scaling{std::vector<double>(middle, middle + x.cols), std::vector<double>(d), {}};
  std::vector<double> sums(2 * d);
  detail::sum_over_rows(x.rows, executor, detail::AddDeviations<T>{x, scaling.mean.data()}, sums);
  for (std::size_t j = 0; j < d; ++j) {
    const double shift = sums[j] / n;
    const double variance = sums[d + j] / n - shift * shift;
    scaling.mean[j] += shift;
    if (!std::isfinite(variance)) {
      detail::throw_unusable_features("fit_feature_scaling",
                                      "feature " + std::to_string(j) + " is not finite");
    }
    const bool constant = detail::is_constant(variance, scaling.mean[j], n);
    scaling.scale[j] = constant ? 1.0 : std::sqrt(variance);
    if (constant) scaling.constant_features.push_back(static_cast<Index>(j));
  }
  return scaling;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
