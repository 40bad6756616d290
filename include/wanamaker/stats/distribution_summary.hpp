// What a table says of one distribution, for example of δ over positions: is it concentrated near
// zero, and do few positions carry the cost?
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "wanamaker/core/index.hpp"
#include "wanamaker/stats/quantiles.hpp"
#include "wanamaker/stats/running_moments.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Which quantiles and shares a summary reports.
struct SummaryPoints {
  std::vector<double> quantiles{0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99};
  std::vector<double> epsilons{0.01, 0.05, 0.1, 0.5};  ///< nats, for δ
  std::vector<double> top_fractions{0.01, 0.05, 0.1};
};

/// A value of the summary and where it was taken.
struct SummaryValue {
  double at = 0;                  ///< probability, epsilon or fraction
  std::optional<double> value{};  ///< missing where undefined
};

/// Moments, quantiles, share |x| < ε and share of Σ x⁺ held by the largest values.
struct DistributionSummary {
  Index count = 0;
  double mean = 0;
  std::optional<double> standard_deviation{};  ///< missing below two values
  std::vector<SummaryValue> quantiles{};
  std::vector<SummaryValue> share_below{};
  std::vector<SummaryValue> top_share{};  ///< missing where no value is positive
};

/// Throws DataError ("stats/empty", "stats/non-finite", "stats/probability").
inline DistributionSummary summarise_distribution(std::span<const double> values,
                                                  const SummaryPoints& points = {}) {
  detail::check_not_empty(values.size(), "summarise_distribution(values)");
  const std::vector<double> ascending = sorted_copy(values);
  RunningMoments moments;
  for (const double value : values) moments.add(value);
  DistributionSummary summary{.count = moments.count(),
                              .mean = *moments.mean(),
                              .standard_deviation = moments.standard_deviation()};
  for (const double p : points.quantiles) {
    summary.quantiles.push_back({p, sorted_quantile(ascending, p)});
  }
  for (const double epsilon : points.epsilons) {
    summary.share_below.push_back({epsilon, share_below(ascending, epsilon)});
  }
  for (const double fraction : points.top_fractions) {
    summary.top_share.push_back({fraction, top_share(ascending, fraction)});
  }
  return summary;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
