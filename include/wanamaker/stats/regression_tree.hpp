// One regression tree of small depth on features that were cut into bins, the step of boosting.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "wanamaker/core/executor.hpp"
#include "wanamaker/core/matrix_view.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// A node: a split where feature ≥ 0, else a leaf. Rows with x ≤ threshold go left.
struct TreeNode {
  Index feature = -1;
  double threshold = 0;
  Index left = 0;
  Index right = 0;
  double value = 0;  ///< mean of the node's targets
};

/// A binary tree; node 0 is the root.
struct RegressionTree {
  std::vector<TreeNode> nodes{};

  /// x [d].
  double predict(const double* x) const {
    std::size_t at = 0;
    while (nodes[at].feature >= 0) {
      const TreeNode& node = nodes[at];
      at = static_cast<std::size_t>(x[node.feature] <= node.threshold ? node.left : node.right);
    }
    return nodes[at].value;
  }
};

namespace detail {

/// Features as numbers of bins. Where a feature has at most `bins` different values each is a bin
/// of its own, and splits are exact; else bins hold about equally many rows. Cuts lie half way
/// between neighbouring values.
class BinnedFeatures {
 public:
  BinnedFeatures(ConstMatrixView<double> x, Index bins) : rows_(x.rows) {
    for (Index j = 0; j < x.cols; ++j) {
      std::vector<double> values;
      for (Index i = 0; i < x.rows; ++i) values.push_back(x(i, j));
      cuts_.push_back(cuts_of(values, bins));
      std::vector<std::uint16_t> numbers;
      for (const double value : values) numbers.push_back(bin_of(cuts_.back(), value));
      numbers_.push_back(std::move(numbers));
    }
  }

  Index rows() const { return rows_; }
  Index features() const { return static_cast<Index>(cuts_.size()); }
  /// Upper ends of a feature's bins but the last.
  const std::vector<double>& cuts(Index feature) const {
    return cuts_[static_cast<std::size_t>(feature)];
  }
  std::span<const std::uint16_t> bins(Index feature) const {
    return numbers_[static_cast<std::size_t>(feature)];
  }

 private:
  static std::uint16_t bin_of(const std::vector<double>& cuts, double value) {
    return static_cast<std::uint16_t>(std::lower_bound(cuts.begin(), cuts.end(), value) -
                                      cuts.begin());
  }

  static double between(double low, double high) {
    const double middle = low + 0.5 * (high - low);
    return middle < high ? middle : low;
  }

  static std::vector<double> cuts_of(std::vector<double> values, Index bins) {
    std::sort(values.begin(), values.end());
    std::vector<double> distinct = values;
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    std::vector<double> cuts;
    if (static_cast<Index>(distinct.size()) <= bins) {
      for (std::size_t i = 0; i + 1 < distinct.size(); ++i) {
        cuts.push_back(between(distinct[i], distinct[i + 1]));
      }
      return cuts;
    }
    for (Index b = 1; b < bins; ++b) {
      const std::size_t place =
          static_cast<std::size_t>(b) * values.size() / static_cast<std::size_t>(bins);
      if (values[place - 1] < values[place]) {
        cuts.push_back(between(values[place - 1], values[place]));
      } else {  // equal values stay in one bin: cut above them
        const auto above = std::upper_bound(values.begin(), values.end(), values[place]);
        if (above != values.end()) cuts.push_back(between(values[place], *above));
      }
    }
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    return cuts;
  }

  Index rows_;
  std::vector<std::vector<double>> cuts_;
  std::vector<std::vector<std::uint16_t>> numbers_;
};

/// The best way to cut a node in two.
struct TreeSplit {
  Index feature = -1;
  Index bin = 0;    ///< the last that goes left
  double gain = 0;  ///< by which the squared error falls
};

/// Grows one tree on some rows: every node takes the split that lowers the squared error most; of
/// equal ones that of the first feature and bin.
class TreeGrower {
 public:
  TreeGrower(const BinnedFeatures& features, std::span<const double> targets, Index depth,
             Index least_leaf, const ExecutorRef& executor)
      : features_(features),
        targets_(targets),
        depth_(depth),
        least_leaf_(least_leaf),
        executor_(executor) {}

  RegressionTree grow(std::vector<Index> rows) {
    rows_ = std::move(rows);
    tree_.nodes.clear();
    grow_node(0, static_cast<Index>(rows_.size()), depth_);
    return std::move(tree_);
  }

 private:
  double target(Index row) const { return targets_[static_cast<std::size_t>(row)]; }
  std::span<Index> span_of(Index first, Index end) {
    return std::span(rows_).subspan(static_cast<std::size_t>(first),
                                    static_cast<std::size_t>(end - first));
  }

  // The number of the node that holds rows [first, end).
  Index grow_node(Index first, Index end, Index depth) {
    const Index number = static_cast<Index>(tree_.nodes.size());
    double sum = 0;
    double squares = 0;
    for (const Index row : span_of(first, end)) {
      sum += target(row);
      squares += target(row) * target(row);
    }
    const double count = static_cast<double>(end - first);
    tree_.nodes.push_back({.value = sum / count});
    if (depth == 0) return number;
    const TreeSplit split = best_split(first, end, sum);
    // Less than rounding is no gain.
    if (split.feature < 0 || !(split.gain > 1e-12 * squares)) return number;
    const Index middle = partition(split, first, end);
    const Index left = grow_node(first, middle, depth - 1);
    const Index right = grow_node(middle, end, depth - 1);
    TreeNode& node = tree_.nodes[static_cast<std::size_t>(number)];
    node.feature = split.feature;
    node.threshold = features_.cuts(split.feature)[static_cast<std::size_t>(split.bin)];
    node.left = left;
    node.right = right;
    return number;
  }

  TreeSplit best_split(Index first, Index end, double sum) {
    std::vector<TreeSplit> splits(static_cast<std::size_t>(features_.features()));
    executor_.run(features_.features(), [&](Index j) {
      splits[static_cast<std::size_t>(j)] = split_of(j, first, end, sum);
    });
    TreeSplit best;
    for (const TreeSplit& split : splits) {
      if (split.feature >= 0 && split.gain > best.gain) best = split;
    }
    return best;
  }

  TreeSplit split_of(Index feature, Index first, Index end, double sum) {
    const std::span<const std::uint16_t> bins = features_.bins(feature);
    const std::size_t cuts = features_.cuts(feature).size();
    std::vector<double> sums(cuts + 1);
    std::vector<Index> counts(cuts + 1);
    for (const Index row : span_of(first, end)) {
      const std::size_t bin = bins[static_cast<std::size_t>(row)];
      sums[bin] += target(row);
      ++counts[bin];
    }
    const double count = static_cast<double>(end - first);
    TreeSplit best;
    double left_sum = 0;
    Index left_count = 0;
    for (std::size_t bin = 0; bin < cuts; ++bin) {
      left_sum += sums[bin];
      left_count += counts[bin];
      const Index right_count = end - first - left_count;
      if (counts[bin] == 0 || left_count < least_leaf_ || right_count < least_leaf_) continue;
      const double left = static_cast<double>(left_count);
      const double difference = left_sum / left - (sum - left_sum) / (count - left);
      const double gain = left * (count - left) / count * difference * difference;
      if (gain > best.gain) best = {feature, static_cast<Index>(bin), gain};
    }
    return best;
  }

  Index partition(const TreeSplit& split, Index first, Index end) {
    const std::span<const std::uint16_t> bins = features_.bins(split.feature);
    const std::span<Index> own = span_of(first, end);
    const auto middle = std::stable_partition(own.begin(), own.end(), [&](Index row) {
      return static_cast<Index>(bins[static_cast<std::size_t>(row)]) <= split.bin;
    });
    return first + (middle - own.begin());
  }

  const BinnedFeatures& features_;
  std::span<const double> targets_;
  Index depth_;
  Index least_leaf_;
  ExecutorRef executor_;
  std::vector<Index> rows_{};
  RegressionTree tree_{};
};

}  // namespace detail
}  // namespace wanamaker::inline WANAMAKER_ABI
