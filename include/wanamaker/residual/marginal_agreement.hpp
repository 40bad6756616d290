// How well one estimate of marginal δ agrees with another: first order with exact patches.
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "wanamaker/stats/correlation.hpp"
#include "wanamaker/stats/quantiles.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Agreement over positions; "large" are those whose exact |δ| is above its median.
struct MarginalAgreement {
  Index positions = 0;
  std::optional<double> spearman{};  ///< missing where a side is constant
  std::optional<double> pearson{};
  Index large = 0;
  std::optional<double> large_same_sign{};  ///< share of the large with equal signs
  std::optional<double> same_sign{};        ///< share of all with equal signs
  std::optional<double> slope{};  ///< Σ estimate·exact/Σ exact²: 1 where nothing is lost
};

namespace detail {

inline int sign_of(double value) {
  return value > 0 ? 1 : value < 0 ? -1 : 0;
}

inline std::optional<double> share_of_count(Index part, Index whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace detail

/// Throws ShapeError ("stats/length-mismatch"), DataError ("stats/non-finite").
inline MarginalAgreement marginal_agreement(std::span<const double> estimate,
                                            std::span<const double> exact) {
  MarginalAgreement result{.positions = static_cast<Index>(exact.size())};
  result.spearman = spearman_correlation(estimate, exact);
  result.pearson = pearson_correlation(estimate, exact);
  if (exact.empty()) return result;
  std::vector<double> sizes;
  for (const double d : exact) sizes.push_back(std::abs(d));
  const double median = sorted_quantile(sorted_copy(sizes), 0.5);
  Index same = 0;
  Index large_same = 0;
  double product = 0;
  double square = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const bool agrees = detail::sign_of(estimate[i]) == detail::sign_of(exact[i]);
    const bool is_large = sizes[i] > median;
    same += agrees ? 1 : 0;
    result.large += is_large ? 1 : 0;
    large_same += agrees && is_large ? 1 : 0;
    product += estimate[i] * exact[i];
    square += exact[i] * exact[i];
  }
  result.same_sign = detail::share_of_count(same, result.positions);
  result.large_same_sign = detail::share_of_count(large_same, result.large);
  if (square > 0) result.slope = product / square;
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
