// The cost of a variant as a ratio of sums over documents, its standard error with documents as
// clusters, and the jackknife's acceleration.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>

#include "wanamaker/core/index.hpp"
#include "wanamaker/stats/distributions.hpp"
#include "wanamaker/stats/interval.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Δ = Σ d_i / Σ n_i over m documents.
struct RatioEstimate {
  Index documents = 0;
  double numerator = 0;               ///< Σ d_i
  double denominator = 0;             ///< Σ n_i
  double ratio = 0;                   ///< Δ
  double standard_error = 0;          ///< 0 for one document: then there is no interval
  double largest_variance_share = 0;  ///< share of Σ e_i² that one document holds
  /// Whether any document's own ratio differs from Δ by more than the rounding of its sum.
  bool varies = false;
};

/// Linearised: with e_i = d_i − Δ n_i, se² = m/(m − 1) · Σ e_i² / (Σ n_i)². This is the
/// cluster-robust variance of a ratio of means (Cochran 1977, chapter 6; Cameron and Miller
/// 2015). d and n: one element for each document, n > 0.
inline RatioEstimate estimate_ratio(std::span<const double> d, std::span<const double> n) {
  RatioEstimate estimate{.documents = static_cast<Index>(d.size())};
  for (std::size_t i = 0; i < d.size(); ++i) {
    estimate.numerator += d[i];
    estimate.denominator += n[i];
  }
  estimate.ratio = estimate.numerator / estimate.denominator;
  double squares = 0;
  double largest = 0;
  for (std::size_t i = 0; i < d.size(); ++i) {
    const double expected = estimate.ratio * n[i];
    const double residual = d[i] - expected;
    const double round_off =
        std::numeric_limits<double>::epsilon() * (8 + n[i]) * (std::abs(d[i]) + std::abs(expected));
    estimate.varies = estimate.varies || std::abs(residual) > round_off;
    squares += residual * residual;
    largest = std::max(largest, residual * residual);
  }
  estimate.varies = estimate.varies && squares > 0;
  if (squares > 0) estimate.largest_variance_share = largest / squares;
  const double m = static_cast<double>(d.size());
  if (m > 1) estimate.standard_error = std::sqrt(m / (m - 1) * squares) / estimate.denominator;
  return estimate;
}

/// Δ ± t · se, t the quantile of Student's t with m − 1 degrees of freedom; the unit of Δ. At least
/// two documents.
inline Interval cluster_t_interval(const RatioEstimate& estimate, double level) {
  const double degrees = static_cast<double>(estimate.documents - 1);
  const double reach = student_t_quantile(0.5 + 0.5 * level, degrees) * estimate.standard_error;
  return {estimate.ratio - reach, estimate.ratio + reach};
}

/// Efron's acceleration a = Σ u_i³ / (6 (Σ u_i²)^{3/2}), u_i = mean of Δ_(·) − Δ_(i), where Δ_(i)
/// leaves document i out (Efron 1987; Efron and Tibshirani 1993, section 14.3).
/// Missing where Δ_(i) does not vary. At least two documents, n > 0.
inline std::optional<double> jackknife_acceleration(const RatioEstimate& estimate,
                                                    std::span<const double> d,
                                                    std::span<const double> n) {
  const auto without = [&](std::size_t i) {
    return (estimate.numerator - d[i]) / (estimate.denominator - n[i]);
  };
  double mean = 0;
  for (std::size_t i = 0; i < d.size(); ++i) mean += without(i) / static_cast<double>(d.size());
  double largest = 0;
  for (std::size_t i = 0; i < d.size(); ++i)
    largest = std::max(largest, std::abs(mean - without(i)));
  if (largest == 0) return std::nullopt;
  double squares = 0;
  double cubes = 0;
  for (std::size_t i = 0; i < d.size(); ++i) {
    const double u = (mean - without(i)) / largest;
    squares += u * u;
    cubes += u * u * u;
  }
  return cubes / (6 * squares * std::sqrt(squares));
}

}  // namespace wanamaker::inline WANAMAKER_ABI
