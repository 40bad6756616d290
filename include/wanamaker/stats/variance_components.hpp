// Variance between types against variance within them, and what that allows lists of type means to
// show: reliability, attainable and disattenuated correlation.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "wanamaker/stats/cluster_quality.hpp"
#include "wanamaker/stats/distributions.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A one-way random-effects layout: y = μ + type effect + rest.
struct VarianceComponents {
  Index types = 0;
  Index observations = 0;
  double between = 0;   ///< variance of the types' true means, at least 0
  double within = 0;    ///< variance around them
  double estimate = 0;  ///< of `between` before it was cut at 0: below 0 by chance where it is 0
  double mean_inverse_count = 0;  ///< mean over types of 1/n, n a type's observations
  std::optional<double> f{};      ///< mean square between / within; missing where within is 0
  double p_value = 1;             ///< of no variance between, by the F test

  /// Share of one observation's variance that its type explains, between/(between + within).
  double intraclass() const { return reliability(1); }
  /// Of a mean of n observations: the share of its variance that is the type's, between/(between +
  /// within/n); 0 where there is no variance between.
  double reliability(double n) const { return ratio(1 / n); }
  /// Of the list of these types' means, each from its own number of observations: the share of the
  /// list's variance that is true, and so the squared correlation of the list with the truth.
  double list_reliability() const { return ratio(mean_inverse_count); }

 private:
  double ratio(double inverse_count) const {
    return between > 0 ? between / (between + within * inverse_count) : 0.0;
  }
};

/// Moment estimates for types of unequal counts (Searle, Casella & McCulloch 1992, section 3.6):
/// within = MSW, between = (MSB − MSW)/n₀, n₀ = (N − Σn²/N)/(g − 1); for equal counts these are the
/// restricted maximum likelihood estimates where between ≥ 0. Types are named 0 … g − 1; numbers
/// without observations do not count. Observations of a type are taken for independent: those of
/// one document are not, and make `between` too large where types keep to documents. Missing below
/// two types, where no type repeats and where all values are equal. Throws DataError
/// ("stats/group", "stats/non-finite"), ShapeError ("stats/length-mismatch").
inline std::optional<VarianceComponents> variance_components(std::span<const Index> types,
                                                             std::span<const double> values) {
  const std::vector<RunningMoments> moments =
      detail::moments_by_group(types, values, "variance_components");
  const detail::OneWaySums sums = detail::one_way_sums(moments);
  if (sums.groups < 2 || sums.n <= sums.groups) return std::nullopt;
  if (detail::is_round_off(sums.total(), moments)) return std::nullopt;
  const double between_degrees = sums.groups - 1;
  const double within_degrees = sums.n - sums.groups;
  const double mean_square = sums.between / between_degrees;
  VarianceComponents result{.types = static_cast<Index>(sums.groups),
                            .observations = static_cast<Index>(sums.n),
                            .within = sums.within / within_degrees,
                            .mean_inverse_count = sums.inverse_counts / sums.groups};
  const double effective = (sums.n - sums.square_counts / sums.n) / between_degrees;
  result.estimate = (mean_square - result.within) / effective;
  result.between = std::max(result.estimate, 0.0);
  if (result.within > 0) {
    result.f = mean_square / result.within;
    result.p_value = f_upper_tail(*result.f, between_degrees, within_degrees);
  } else {
    result.p_value = 0;
  }
  return result;
}

/// A correlation of two noisy lists, and what it says of what they measure.
struct Attenuation {
  double attainable = 0;  ///< √(reliability · reliability): what a true correlation of 1 would show
  std::optional<double> disattenuated{};  ///< observed/attainable; missing where nothing is
                                          ///< attainable. Beyond ±1 by chance; not cut.
};

/// Spearman's (1904) correction for attenuation; reliabilities from 0 to 1. Throws DataError
/// ("stats/probability").
inline Attenuation attenuation(double observed, double reliability_a, double reliability_b) {
  detail::check_probability(reliability_a, "attenuation(reliability_a)");
  detail::check_probability(reliability_b, "attenuation(reliability_b)");
  Attenuation result{.attainable = std::sqrt(reliability_a * reliability_b)};
  if (result.attainable > 0) result.disattenuated = observed / result.attainable;
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
