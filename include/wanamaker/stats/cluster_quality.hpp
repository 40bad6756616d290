// What a partition of rows is worth: silhouette, purity, variance explained.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "wanamaker/core/executor.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/stats/k_means.hpp"
#include "wanamaker/stats/running_moments.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Mean silhouette.
struct Silhouette {
  double mean = 0;       ///< −1 to 1
  Index rows = 0;        ///< whose silhouette was computed
  bool is_exact = true;  ///< all rows; else a sample, each still against all rows
};

namespace detail {

/// Sizes of groups named 0 … k − 1. Throws DataError ("stats/group").
inline std::vector<Index> group_sizes(std::span<const Index> groups, const char* where) {
  std::vector<Index> sizes;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i] < 0 || groups[i] >= static_cast<Index>(groups.size())) {
      throw DataError({.id = "stats/group",
                       .where = std::string(where) + ", element " + std::to_string(i),
                       .what = "impossible group",
                       .expected = "an index from 0 to less than the number of elements",
                       .found = std::to_string(groups[i]),
                       .mend = "number the groups from 0"});
    }
    if (groups[i] >= static_cast<Index>(sizes.size())) {
      sizes.resize(static_cast<std::size_t>(groups[i]) + 1);
    }
    ++sizes[static_cast<std::size_t>(groups[i])];
  }
  return sizes;
}

/// (b − a)/max(a, b): a the mean distance to the others of the row's cluster, b the smallest mean
/// distance to another cluster; 0 for a row alone, and where both are 0.
inline double silhouette_of(ConstMatrixView<double> x, std::span<const Index> groups,
                            std::span<const Index> sizes, Index row) {
  std::vector<double> sums(sizes.size());
  for (Index i = 0; i < x.rows; ++i) {
    sums[static_cast<std::size_t>(groups[static_cast<std::size_t>(i)])] +=
        std::sqrt(squared_distance(x.row(i), x.row(row), x.cols));
  }
  const std::size_t own = static_cast<std::size_t>(groups[static_cast<std::size_t>(row)]);
  if (sizes[own] < 2) return 0;
  const double within = sums[own] / static_cast<double>(sizes[own] - 1);
  double between = std::numeric_limits<double>::infinity();
  for (std::size_t g = 0; g < sizes.size(); ++g) {
    if (g == own || sizes[g] == 0) continue;
    between = std::min(between, sums[g] / static_cast<double>(sizes[g]));
  }
  const double larger = std::max(within, between);
  return larger > 0 ? (between - within) / larger : 0.0;
}

}  // namespace detail

/// Mean silhouette (Rousseeuw 1987) of a partition by Euclidean distance. `sample`: how many rows,
/// drawn without replacement, are asked, each against all n rows, so that the mean is unbiased; 0
/// or n and more: all of them, exactly. Time: rows asked × n·d. Throws DataError ("stats/clusters"
/// for fewer than two clusters, "stats/group", "stats/non-finite"), ShapeError
/// ("stats/length-mismatch").
inline Silhouette silhouette(ConstMatrixView<double> x, std::span<const Index> groups,
                             Index sample = 0, std::uint64_t seed = 0,
                             const ExecutorRef& executor = {}) {
  detail::check_same_length(static_cast<std::size_t>(x.rows), groups.size(), "silhouette(groups)");
  detail::check_finite_rows(x, "silhouette(x)");
  const std::vector<Index> sizes = detail::group_sizes(groups, "silhouette(groups)");
  const Index used = std::count_if(sizes.begin(), sizes.end(), [](Index s) { return s > 0; });
  if (used < 2) detail::throw_clusters("a single cluster", used, x.rows, "silhouette");
  std::vector<Index> rows(static_cast<std::size_t>(x.rows));
  std::iota(rows.begin(), rows.end(), Index{0});
  if (sample > 0 && sample < x.rows) {
    RandomStream random(seed);
    shuffle(rows, random);
    rows.resize(static_cast<std::size_t>(sample));
  }
  std::vector<double> values(rows.size());
  executor.run(static_cast<Index>(rows.size()), [&](Index i) {
    const std::size_t at = static_cast<std::size_t>(i);
    values[at] = detail::silhouette_of(x, groups, sizes, rows[at]);
  });
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {sum / static_cast<double>(values.size()), static_cast<Index>(values.size()),
          static_cast<Index>(values.size()) == x.rows};
}

/// Σ over groups of the count of the group's most frequent label, over n: 1 where every group has
/// one label. It rises with the number of groups whatever they mean: compare with a random
/// partition of the same sizes. Throws DataError ("stats/empty"), ShapeError
/// ("stats/length-mismatch").
inline double purity(std::span<const Index> groups, std::span<const Index> labels) {
  detail::check_not_empty(groups.size(), "purity(groups)");
  detail::check_same_length(groups.size(), labels.size(), "purity(labels)");
  std::map<std::pair<Index, Index>, Index> counts;
  for (std::size_t i = 0; i < groups.size(); ++i) ++counts[{groups[i], labels[i]}];
  std::map<Index, Index> most;
  for (const auto& [key, count] : counts) most[key.first] = std::max(most[key.first], count);
  Index sum = 0;
  for (const auto& [group, count] : most) sum += count;
  return static_cast<double>(sum) / static_cast<double>(groups.size());
}

/// How much of a quantity's variance lies between groups.
struct ExplainedVariance {
  double share = 0;  ///< R² = between sum of squares / total
  /// 1 − (within/(n − k))/(total/(n − 1)): 0 on average for groups made at random; missing where
  /// every row is a group.
  std::optional<double> adjusted{};
  Index groups = 0;  ///< that have rows
};

namespace detail {

inline std::vector<RunningMoments> moments_by_group(std::span<const Index> groups,
                                                    std::span<const double> values,
                                                    const char* where) {
  check_same_length(groups.size(), values.size(), where);
  check_finite(values, where);
  std::vector<RunningMoments> moments(group_sizes(groups, where).size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    moments[static_cast<std::size_t>(groups[i])].add(values[i]);
  }
  return moments;
}

/// Sums of squares of a one-way layout.
struct OneWaySums {
  double n = 0;
  double groups = 0;
  double within = 0;
  double between = 0;
  double square_counts = 0;   ///< Σ n_g²
  double inverse_counts = 0;  ///< Σ 1/n_g

  double total() const { return within + between; }
};

inline OneWaySums one_way_sums(std::span<const RunningMoments> moments) {
  RunningMoments all;
  for (const RunningMoments& m : moments) all.merge(m);
  OneWaySums sums;
  for (const RunningMoments& m : moments) {
    if (m.count() == 0) continue;
    const double count = static_cast<double>(m.count());
    const double deviation = *m.mean() - *all.mean();
    sums.n += count;
    sums.groups += 1;
    sums.within += m.variance().value_or(0) * (count - 1);
    sums.between += count * deviation * deviation;
    sums.square_counts += count * count;
    sums.inverse_counts += 1 / count;
  }
  return sums;
}

/// A sum of squares that is nothing but the rounding of equal values.
inline bool is_round_off(double squares, std::span<const RunningMoments> moments) {
  double largest = 0;
  double n = 0;
  for (const RunningMoments& m : moments) {
    if (m.count() == 0) continue;
    largest = std::max(largest, std::abs(*m.mean()));
    n += static_cast<double>(m.count());
  }
  const double unit = 8 * std::numeric_limits<double>::epsilon() * largest;
  return !(squares > n * unit * unit);
}

}  // namespace detail

/// The variance of `values` between groups 0 … k − 1. Missing where the values are all equal.
/// Throws DataError ("stats/group", "stats/non-finite"), ShapeError ("stats/length-mismatch").
inline std::optional<ExplainedVariance> explained_variance(std::span<const Index> groups,
                                                           std::span<const double> values) {
  const std::vector<RunningMoments> moments =
      detail::moments_by_group(groups, values, "explained_variance");
  const detail::OneWaySums sums = detail::one_way_sums(moments);
  if (sums.n < 2 || detail::is_round_off(sums.total(), moments)) return std::nullopt;
  ExplainedVariance result{.share = sums.between / sums.total(),
                           .groups = static_cast<Index>(sums.groups)};
  if (sums.n > sums.groups) {
    result.adjusted = 1 - (sums.within / (sums.n - sums.groups)) / (sums.total() / (sums.n - 1));
  }
  return result;
}

}  // namespace wanamaker::inline WANAMAKER_ABI
