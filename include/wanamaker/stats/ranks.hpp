// Ranks with ties averaged, the basis of Spearman's correlation and of the AUC.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "wanamaker/stats/checks.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Positions of the values in ascending order; equal values keep their order.
inline std::vector<std::size_t> ascending_order(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [values](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  return order;
}

/// One past the last place in `order` whose value equals that at place `first`.
inline std::size_t end_of_ties(std::span<const double> values, std::span<const std::size_t> order,
                               std::size_t first) {
  std::size_t last = first + 1;
  while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
  return last;
}

/// Ranks from 1 to n; equal values share the mean of their ranks. Throws DataError
/// ("stats/non-finite").
inline std::vector<double> average_ranks(std::span<const double> values) {
  detail::check_finite(values, "average_ranks(values)");
  const std::vector<std::size_t> order = ascending_order(values);
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    const std::size_t end = end_of_ties(values, order, first);
    const double rank = 0.5 * static_cast<double>(first + 1 + end);
    for (std::size_t place = first; place < end; ++place) ranks[order[place]] = rank;
    first = end;
  }
  return ranks;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
