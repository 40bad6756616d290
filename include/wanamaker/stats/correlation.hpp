// Correlation of paired values, linear and by ranks.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "wanamaker/stats/checks.hpp"
#include "wanamaker/stats/ranks.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

inline double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// The values less their mean (twice, since the first mean is rounded), scaled so that the largest
/// is 1 in magnitude and no square underflows; empty where all are equal.
inline std::vector<double> scaled_deviations(std::span<const double> values) {
  if (std::all_of(values.begin(), values.end(), [&](double v) { return v == values.front(); })) {
    return {};
  }
  std::vector<double> deviations(values.begin(), values.end());
  for (int pass = 0; pass < 2; ++pass) {
    const double mean = mean_of(deviations);
    for (double& deviation : deviations) deviation -= mean;
  }
  double largest = 0;
  for (const double deviation : deviations) largest = std::max(largest, std::abs(deviation));
  for (double& deviation : deviations) deviation /= largest;
  return deviations;
}

}  // namespace detail

/// Pearson's r = Σ(x−x̄)(y−ȳ) / √(Σ(x−x̄)² Σ(y−ȳ)²). Missing below two pairs and where one side is
/// constant. Throws ShapeError ("stats/length-mismatch"), DataError ("stats/non-finite").
inline std::optional<double> pearson_correlation(std::span<const double> x,
                                                 std::span<const double> y) {
  detail::check_same_length(x.size(), y.size(), "pearson_correlation(y)");
  detail::check_finite(x, "pearson_correlation(x)");
  detail::check_finite(y, "pearson_correlation(y)");
  const std::vector<double> dx = detail::scaled_deviations(x);
  const std::vector<double> dy = detail::scaled_deviations(y);
  if (dx.empty() || dy.empty()) return std::nullopt;
  double xx = 0;
  double yy = 0;
  double xy = 0;
  for (std::size_t i = 0; i < dx.size(); ++i) {
    xx += dx[i] * dx[i];
    yy += dy[i] * dy[i];
    xy += dx[i] * dy[i];
  }
  return std::clamp(xy / std::sqrt(xx * yy), -1.0, 1.0);
}

/// Spearman's ρ: Pearson's r of the average ranks (Spearman 1904). Missing and throwing as
/// pearson_correlation.
inline std::optional<double> spearman_correlation(std::span<const double> x,
                                                  std::span<const double> y) {
  detail::check_same_length(x.size(), y.size(), "spearman_correlation(y)");
  return pearson_correlation(average_ranks(x), average_ranks(y));
}

}  // namespace wanamaker::inline WANAMAKER_ABI
