// Quantiles, and how unevenly a quantity is spread over positions.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "wanamaker/core/index.hpp"
#include "wanamaker/stats/checks.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// The p-quantile of values in ascending order, by linear interpolation between order statistics:
/// at rank h = (n − 1) p it is x_⌊h⌋ + (h − ⌊h⌋)(x_⌊h⌋₊₁ − x_⌊h⌋). Type 7 of Hyndman and Fan
/// (1996), the default of NumPy and R. Throws DataError ("stats/empty", "stats/probability").
inline double sorted_quantile(std::span<const double> ascending, double p) {
  detail::check_not_empty(ascending.size(), "sorted_quantile(ascending)");
  detail::check_probability(p, "sorted_quantile(p)");
  const double rank = static_cast<double>(ascending.size() - 1) * p;
  const std::size_t below = static_cast<std::size_t>(rank);
  if (below + 1 >= ascending.size()) return ascending.back();
  const double fraction = rank - static_cast<double>(below);
  return ascending[below] + fraction * (ascending[below + 1] - ascending[below]);
}

/// A copy of the values in ascending order. Throws DataError ("stats/non-finite").
inline std::vector<double> sorted_copy(std::span<const double> values) {
  detail::check_finite(values, "sorted_copy(values)");
  std::vector<double> ascending(values.begin(), values.end());
  std::sort(ascending.begin(), ascending.end());
  return ascending;
}

/// The quantiles (type 7) at all the given probabilities, from one sort. Throws DataError
/// ("stats/empty", "stats/probability", "stats/non-finite").
inline std::vector<double> quantiles(std::span<const double> values,
                                     std::span<const double> probabilities) {
  const std::vector<double> ascending = sorted_copy(values);
  std::vector<double> result;
  result.reserve(probabilities.size());
  for (const double p : probabilities) result.push_back(sorted_quantile(ascending, p));
  return result;
}

/// The share of values with |x| < epsilon. Throws DataError ("stats/empty", "stats/non-finite").
inline double share_below(std::span<const double> values, double epsilon) {
  detail::check_not_empty(values.size(), "share_below(values)");
  detail::check_finite(values, "share_below(values)");
  const auto below = std::count_if(values.begin(), values.end(),
                                   [epsilon](double value) { return std::abs(value) < epsilon; });
  return static_cast<double>(below) / static_cast<double>(values.size());
}

/// The share of the positive sum Σ x⁺ held by the largest `fraction` of all n values: the sum of
/// the ⌊k⌋ largest x⁺ and (k − ⌊k⌋) of the next, k = fraction · n. Values spread evenly give
/// `fraction`; one value that holds everything gives 1. Missing where no value is positive. Throws
/// DataError ("stats/empty", "stats/probability", "stats/non-finite").
inline std::optional<double> top_share(std::span<const double> values, double fraction) {
  detail::check_not_empty(values.size(), "top_share(values)");
  detail::check_probability(fraction, "top_share(fraction)");
  std::vector<double> descending = sorted_copy(values);
  std::reverse(descending.begin(), descending.end());
  const double budget = fraction * static_cast<double>(values.size());
  double held = 0;
  double total = 0;
  for (std::size_t i = 0; i < descending.size() && descending[i] > 0; ++i) {
    held += descending[i] * std::clamp(budget - static_cast<double>(i), 0.0, 1.0);
    total += descending[i];
  }
  return total > 0 ? std::optional(held / total) : std::nullopt;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
