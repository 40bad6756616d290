// From δ, what a surrogate cost at each position, to the labels that a gate is fitted to.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/stats/quantiles.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Label 1: the surrogate suffices, δ ≤ threshold.
struct DeltaLabels {
  std::vector<std::uint8_t> labels{};
  double threshold = 0;             ///< nats
  double positive_share = 0;        ///< share of label 1
  double negative_delta_share = 0;  ///< share of positions where the surrogate helps, δ < 0

  bool one_class() const { return positive_share <= 0 || positive_share >= 1; }
};

namespace detail {

/// Throws DataError ("gate/non-finite-delta", "gate/no-positions").
inline void check_deltas(std::span<const double> delta, const char* where) {
  if (delta.empty()) {
    throw DataError({.id = "gate/no-positions",
                     .where = where,
                     .what = "no position to learn from",
                     .mend = "pass at least one document to the gate split"});
  }
  for (std::size_t i = 0; i < delta.size(); ++i) {
    if (std::abs(delta[i]) <= largest_value) continue;
    throw DataError({.id = "gate/non-finite-delta",
                     .where = std::string(where) + ", position " + std::to_string(i),
                     .what = "the loss with or without the surrogate is not finite",
                     .expected = "a finite difference of losses in nats",
                     .found = number_text(delta[i]),
                     .mend = "raise the surrogate's ridge penalty, or leave the layer out"});
  }
}

inline double share_of(double count, std::size_t total) {
  return count / static_cast<double>(total);
}

}  // namespace detail

/// Label 1 where δ ≤ threshold; 0 asks whether the surrogate does no harm. Throws DataError
/// ("gate/non-finite-delta", "gate/no-positions").
inline DeltaLabels labels_at_most(std::span<const double> delta, double threshold = 0) {
  detail::check_deltas(delta, "labels_at_most(delta)");
  DeltaLabels result{.labels = {}, .threshold = threshold};
  result.labels.reserve(delta.size());
  double positives = 0;
  double negative = 0;
  for (const double value : delta) {
    result.labels.push_back(value <= threshold ? 1 : 0);
    positives += value <= threshold ? 1 : 0;
    negative += value < 0 ? 1 : 0;
  }
  result.positive_share = detail::share_of(positives, delta.size());
  result.negative_delta_share = detail::share_of(negative, delta.size());
  return result;
}

/// The published study's labels: δ ≤ median, or ≤ the 25th percentile where fewer than 5 % of the
/// positions have δ < 0. Throws as labels_at_most.
inline DeltaLabels published_labels(std::span<const double> delta) {
  detail::check_deltas(delta, "published_labels(delta)");
  const double negative = static_cast<double>(
      std::count_if(delta.begin(), delta.end(), [](double value) { return value < 0; }));
  const double p = detail::share_of(100 * negative, delta.size()) < 5 ? 0.25 : 0.5;
  return labels_at_most(delta, sorted_quantile(sorted_copy(delta), p));
}

/// |δ|, scaled to mean 1 so that a penalty keeps its meaning: what a wrong decision costs. All zero
/// where every δ is. Throws as labels_at_most.
inline std::vector<double> cost_weights(std::span<const double> delta) {
  detail::check_deltas(delta, "cost_weights(delta)");
  std::vector<double> weights(delta.begin(), delta.end());
  double total = 0;
  for (double& weight : weights) {
    weight = std::abs(weight);
    total += weight;
  }
  const double mean = total / static_cast<double>(weights.size());
  for (double& weight : weights) weight = mean > 0 ? weight / mean : 0.0;
  return weights;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
