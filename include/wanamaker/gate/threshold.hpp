// Where to cut a gate's scores: thresholds chosen on the select split, by fraction or by budget.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "wanamaker/gate/cost_model.hpp"
#include "wanamaker/stats/quantiles.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Rows with score > threshold go to the surrogate; `fraction` of the scores it was chosen on do.
struct GateThreshold {
  double threshold = 0.5;
  double fraction = 0;
};

namespace detail {

/// The threshold that routes exactly the `count` largest of the ascending scores; scores[n − count]
/// and the one before it must differ. The ends route nothing, or everything, of any other scores
/// too.
inline GateThreshold cut_at(std::span<const double> ascending, std::size_t count) {
  const std::size_t n = ascending.size();
  const double fraction = static_cast<double>(count) / static_cast<double>(n);
  if (count == 0) return {std::numeric_limits<double>::max(), 0};
  if (count == n) return {std::numeric_limits<double>::lowest(), 1};
  return {ascending[n - count - 1], fraction};
}

/// The largest count ≤ `wanted` that no tie straddles, and the smallest ≥ `wanted`.
struct ReachableCounts {
  std::size_t below = 0;
  std::size_t above = 0;
};

inline ReachableCounts reachable_counts(std::span<const double> ascending, std::size_t wanted) {
  const std::size_t n = ascending.size();
  if (wanted == 0 || wanted == n) return {wanted, wanted};
  const auto is_cut = [&](std::size_t count) {
    return ascending[n - count - 1] < ascending[n - count];
  };
  ReachableCounts counts{wanted, wanted};
  while (counts.below > 0 && !is_cut(counts.below)) --counts.below;
  while (counts.above < n && !is_cut(counts.above)) ++counts.above;
  return counts;
}

}  // namespace detail

/// A given threshold, and what it routes of the scores. Throws DataError ("stats/empty",
/// "stats/non-finite").
inline GateThreshold threshold_at(std::span<const double> scores, double threshold) {
  detail::check_not_empty(scores.size(), "threshold_at(scores)");
  detail::check_finite(scores, "threshold_at(scores)");
  const auto above = std::count_if(scores.begin(), scores.end(),
                                   [threshold](double score) { return score > threshold; });
  return {threshold, static_cast<double>(above) / static_cast<double>(scores.size())};
}

/// The threshold whose fraction is nearest to the target; equal scores stay together, so that
/// fewer rows than half the tie at the cut are missed or too many. Of two as near, the one that
/// routes fewer. Throws DataError ("stats/empty", "stats/non-finite", "stats/probability").
inline GateThreshold threshold_for_fraction(std::span<const double> scores, double target) {
  detail::check_not_empty(scores.size(), "threshold_for_fraction(scores)");
  detail::check_probability(target, "threshold_for_fraction(target)");
  const std::vector<double> ascending = sorted_copy(scores);
  const double wanted = target * static_cast<double>(scores.size());
  const detail::ReachableCounts counts =
      detail::reachable_counts(ascending, static_cast<std::size_t>(std::floor(wanted)));
  const detail::ReachableCounts next =
      detail::reachable_counts(ascending, static_cast<std::size_t>(std::ceil(wanted)));
  const bool lower_is_nearer =
      wanted - static_cast<double>(counts.below) <= static_cast<double>(next.above) - wanted;
  return detail::cut_at(ascending, lower_is_nearer ? counts.below : next.above);
}

/// The threshold that routes the fewest rows with which gate, surrogate and MLP together take at
/// most `budget` times the MLP's FLOPs. Throws ProtocolError ("gate/flop-budget") where even
/// routing everything takes more, and as threshold_for_fraction.
inline GateThreshold threshold_for_flops(std::span<const double> scores, const GatedCost& cost,
                                         double budget) {
  detail::check_not_empty(scores.size(), "threshold_for_flops(scores)");
  const double needed = cost.fraction_for_flops(budget);
  const std::vector<double> ascending = sorted_copy(scores);
  const double rows = std::ceil(needed * static_cast<double>(scores.size()) * (1 - 1e-12));
  return detail::cut_at(ascending,
                        detail::reachable_counts(ascending, static_cast<std::size_t>(rows)).above);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
