// Intervals and p-values from the sorted replicates of a bootstrap, whatever the statistic.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "wanamaker/stats/distributions.hpp"
#include "wanamaker/stats/interval.hpp"
#include "wanamaker/stats/quantiles.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// What is corrected for when an interval is read from replicates. As it stands: nothing, which is
/// the percentile interval (Efron 1979).
struct BootstrapCorrection {
  double bias = 0;          ///< BCa's z₀ = Φ⁻¹(share of replicates below the estimate)
  double acceleration = 0;  ///< BCa's a: skewness of the estimate's influence values, over 6
  /// Resampling m units understates the spread as the variance with divisor m and normal quantiles
  /// would. With m − 1 here, z is replaced by √(m / (m − 1)) · t_{m−1}: Hesterberg's expansion
  /// (Hesterberg 2015). Infinite: no expansion.
  double degrees = std::numeric_limits<double>::infinity();
};

/// z₀ and a (Efron 1987); replicates equal to the estimate count half. Missing where all replicates
/// are on one side of the estimate.
inline std::optional<BootstrapCorrection> bca_correction(
    std::span<const double> ascending_replicates, double estimate, double acceleration) {
  const auto [first_equal, first_above] =
      std::equal_range(ascending_replicates.begin(), ascending_replicates.end(), estimate);
  const double below = static_cast<double>(first_equal - ascending_replicates.begin());
  const double equal = static_cast<double>(first_above - first_equal);
  const double share = (below + 0.5 * equal) / static_cast<double>(ascending_replicates.size());
  if (share <= 0 || share >= 1) return std::nullopt;
  return BootstrapCorrection{.bias = normal_quantile(share), .acceleration = acceleration};
}

namespace detail {

/// Which quantile of the replicates is the end of a one-sided interval at `level`:
/// Φ(z₀ + u / (1 − a u)), u = z₀ + z. Where the denominator is not positive the correction is
/// beyond its range: the extreme replicate.
inline double bootstrap_quantile(const BootstrapCorrection& correction, double level) {
  const double z =
      std::sqrt(1 + 1 / correction.degrees) * student_t_quantile(level, correction.degrees);
  const double u = correction.bias + z;
  const double denominator = 1 - correction.acceleration * u;
  if (denominator <= 0) return u > 0 ? 1 : 0;
  return normal_cdf(correction.bias + u / denominator);
}

/// The inverse of bootstrap_quantile: the level at which the end is the q-quantile.
inline double bootstrap_level(const BootstrapCorrection& correction, double q) {
  if (q >= 1) return 1;
  const double w = normal_quantile(q) - correction.bias;
  const double denominator = 1 + correction.acceleration * w;
  if (denominator <= 0) return w > 0 ? 1 : 0;
  const double z = w / denominator - correction.bias;
  return student_t_cdf(z / std::sqrt(1 + 1 / correction.degrees), correction.degrees);
}

}  // namespace detail

/// The two-sided interval: the quantiles of the replicates at Φ(z₀ + (z₀ ± z) / (1 − a (z₀ ± z))).
/// With z₀ and a it is BCa, second-order accurate (Efron 1987); without, the percentile interval.
inline Interval bootstrap_interval(std::span<const double> ascending_replicates,
                                   const BootstrapCorrection& correction, double level) {
  const double low = detail::bootstrap_quantile(correction, 0.5 - 0.5 * level);
  const double high = detail::bootstrap_quantile(correction, 0.5 + 0.5 * level);
  return {sorted_quantile(ascending_replicates, low), sorted_quantile(ascending_replicates, high)};
}

/// One-sided p-values for an estimate against `null`.
struct OneSidedPValues {
  double greater = 1;  ///< small where the quantity is above null
  double less = 1;     ///< small where it is below
};

/// p for either side: min(1, 2 min(less, greater)).
inline double two_sided(const OneSidedPValues& p) {
  return std::min(1.0, 2 * std::min(p.less, p.greater));
}

/// p-values by inverting the interval: `greater` is the one-sided level at which the lower end
/// reaches `null`. With B replicates θ* the shares are (1 + #{θ* ≤ null}) / (B + 1) and
/// (1 + #{θ* ≥ null}) / (B + 1) (Davison and Hinkley 1997, chapter 4), mapped by the inverse of
/// the correction; no p-value is below 1 / (B + 1), since B resamples cannot show more. So the
/// two-sided p is below 1 − level where the interval excludes null, but for about one replicate.
inline OneSidedPValues bootstrap_p_values(std::span<const double> ascending_replicates,
                                          const BootstrapCorrection& correction, double null) {
  const auto [first_equal, first_above] =
      std::equal_range(ascending_replicates.begin(), ascending_replicates.end(), null);
  const double trials = static_cast<double>(ascending_replicates.size()) + 1;
  const double at_most = static_cast<double>(first_above - ascending_replicates.begin()) + 1;
  const double at_least = static_cast<double>(ascending_replicates.end() - first_equal) + 1;
  const BootstrapCorrection mirrored{-correction.bias, -correction.acceleration,
                                     correction.degrees};
  const auto p_value = [trials](const BootstrapCorrection& c, double replicates) {
    return std::max(1 / trials, detail::bootstrap_level(c, std::min(1.0, replicates / trials)));
  };
  return {.greater = p_value(correction, at_most), .less = p_value(mirrored, at_least)};
}

}  // namespace wanamaker::inline WANAMAKER_ABI
