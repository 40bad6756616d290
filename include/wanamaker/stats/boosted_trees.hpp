// Gradient-boosted regression trees for squared loss: a check on what linear regression cannot see.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/core/random.hpp"
#include "wanamaker/stats/held_out.hpp"
#include "wanamaker/stats/regression_tree.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Size, number and rate of boosted trees.
struct BoostedTreesOptions {
  Index rounds = 200;          ///< trees at most
  Index depth = 3;             ///< splits between root and leaf at most, 1 to 16
  double learning_rate = 0.1;  ///< of (0, 1]
  Index least_leaf = 20;       ///< rows in a leaf at least
  Index bins = 255;            ///< of a feature; 2 to 65535
  double subsample = 1;        ///< share of rows that each tree is grown on, drawn at random
  Index patience = 20;         ///< rounds without a better loss on held-out rows before it stops
  std::uint64_t seed = 0;      ///< of the subsamples
};

/// ŷ = base + rate·Σ trees.
struct BoostedTrees {
  double base = 0;
  double learning_rate = 0.1;
  Index features = 0;
  std::vector<RegressionTree> trees{};

  /// x [n × d] → [n]. Throws ShapeError.
  std::vector<double> predict(ConstMatrixView<double> x) const {
    check_shape(x, x.rows, features, "BoostedTrees::predict: x");
    std::vector<double> predicted(static_cast<std::size_t>(x.rows), base);
    for (const RegressionTree& tree : trees) add(tree, x, predicted);
    return predicted;
  }
  /// predicted += rate·tree(x).
  void add(const RegressionTree& tree, ConstMatrixView<double> x,
           std::vector<double>& predicted) const {
    for (Index i = 0; i < x.rows; ++i) {
      predicted[static_cast<std::size_t>(i)] += learning_rate * tree.predict(x.row(i));
    }
  }
};

namespace detail {

inline void check_boosting(const BoostedTreesOptions& o) {
  const bool usable = o.rounds >= 0 && o.depth >= 1 && o.depth <= 16 && o.learning_rate > 0 &&
                      o.learning_rate <= 1 && o.least_leaf >= 1 && o.bins >= 2 && o.bins <= 65535 &&
                      o.subsample > 0 && o.subsample <= 1 && o.patience >= 1;
  if (usable) return;
  throw ProtocolError({.id = "stats/boosting",
                       .where = "BoostedTreesOptions",
                       .what = "unusable settings",
                       .expected = "rounds ≥ 0, depth 1 to 16, learning rate and subsample in "
                                   "(0, 1], a leaf of 1 row or more, 2 to 65535 bins, patience ≥ 1",
                       .found = std::to_string(o.rounds) + " rounds, depth " +
                                std::to_string(o.depth) + ", learning rate " +
                                number_text(o.learning_rate),
                       .mend = "leave the defaults"});
}

inline double squared_error(std::span<const double> y, std::span<const double> predicted) {
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += (y[i] - predicted[i]) * (y[i] - predicted[i]);
  return sum;
}

/// Boosting round by round.
class Booster {
 public:
  Booster(ConstMatrixView<double> x, std::span<const double> y, const BoostedTreesOptions& options,
          const ExecutorRef& executor)
      : x_(x), y_(y), options_(options), executor_(executor), features_(x, options.bins) {
    model_ = {.base = mean_of(y), .learning_rate = options.learning_rate, .features = x.cols};
    predicted_.assign(y.size(), model_.base);
    residuals_.resize(y.size());
  }

  /// Fits one more tree to what is left.
  const RegressionTree& step() {
    for (std::size_t i = 0; i < y_.size(); ++i) residuals_[i] = y_[i] - predicted_[i];
    TreeGrower grower(features_, residuals_, options_.depth, options_.least_leaf, executor_);
    model_.trees.push_back(grower.grow(rows_of_round()));
    model_.add(model_.trees.back(), x_, predicted_);
    return model_.trees.back();
  }
  BoostedTrees& model() { return model_; }

 private:
  // All rows, or a share of them; never none.
  std::vector<Index> rows_of_round() const {
    std::vector<Index> rows;
    RandomStream random(options_.seed, static_cast<std::uint64_t>(model_.trees.size()));
    for (Index i = 0; i < x_.rows; ++i) {
      if (options_.subsample >= 1 || random.uniform() < options_.subsample) rows.push_back(i);
    }
    if (rows.empty()) rows.push_back(0);
    return rows;
  }

  ConstMatrixView<double> x_;
  std::span<const double> y_;
  BoostedTreesOptions options_;
  ExecutorRef executor_;
  BinnedFeatures features_;
  BoostedTrees model_{};
  std::vector<double> predicted_{};
  std::vector<double> residuals_{};
};

}  // namespace detail

/// Friedman 2001, algorithm 2: each tree is fitted to the residuals of those before, and a share of
/// it added. All `rounds` are run. A function of the input and the seed, for any executor. Where a
/// feature has more values than bins, splits are those of the bins. Throws ShapeError
/// ("stats/length-mismatch"), DataError ("stats/empty", "stats/non-finite"), ProtocolError
/// ("stats/boosting").
inline BoostedTrees fit_boosted_trees(ConstMatrixView<double> x, std::span<const double> y,
                                      const BoostedTreesOptions& options = {},
                                      const ExecutorRef& executor = {}) {
  detail::check_regression(x, y, "fit_boosted_trees");
  detail::check_boosting(options);
  detail::Booster booster(x, y, options, executor);
  for (Index round = 0; round < options.rounds; ++round) booster.step();
  return std::move(booster.model());
}

/// The same, stopped where the squared error on held-out rows has not fallen for `patience` rounds;
/// keeps the rounds up to the smallest, none where no tree helps. Throws as fit_boosted_trees.
inline BoostedTrees fit_boosted_trees_until(ConstMatrixView<double> x, std::span<const double> y,
                                            ConstMatrixView<double> held_x,
                                            std::span<const double> held_y,
                                            const BoostedTreesOptions& options = {},
                                            const ExecutorRef& executor = {}) {
  detail::check_regression(x, y, "fit_boosted_trees_until");
  detail::check_regression(held_x, held_y, "fit_boosted_trees_until(held)");
  check_shape(held_x, held_x.rows, x.cols, "fit_boosted_trees_until: held_x");
  detail::check_boosting(options);
  detail::Booster booster(x, y, options, executor);
  std::vector<double> predicted(held_y.size(), booster.model().base);
  double least = detail::squared_error(held_y, predicted);
  Index best = 0;
  for (Index round = 1; round <= options.rounds && round - best <= options.patience; ++round) {
    booster.model().add(booster.step(), held_x, predicted);
    const double error = detail::squared_error(held_y, predicted);
    if (!(error < least)) continue;
    least = error;
    best = round;
  }
  booster.model().trees.resize(static_cast<std::size_t>(best));
  return std::move(booster.model());
}

/// Out-of-fold predictions of boosted trees. For each fold the next one says when to stop, and the
/// others are fitted: what is predicted was seen by neither. Needs three folds. Throws as
/// fit_boosted_trees, and ProtocolError ("stats/folds").
inline HeldOutFit held_out_boosted_trees(ConstMatrixView<double> x, std::span<const double> y,
                                         std::span<const Index> fold_of, Index folds,
                                         const BoostedTreesOptions& options = {},
                                         const ExecutorRef& executor = {}) {
  detail::check_regression(x, y, "held_out_boosted_trees");
  if (folds < 3) {
    throw ProtocolError({.id = "stats/folds",
                         .where = "held_out_boosted_trees(folds)",
                         .what = "too few folds to fit, to stop and to hold out",
                         .expected = "three or more",
                         .found = std::to_string(folds),
                         .mend = "use more folds"});
  }
  return held_out_fit(x, y, fold_of, folds, [&](Index fold) {
    const Index stop = (fold + 1) % folds;
    const detail::Sample fitted = detail::sample_of(
        x, y, fold_of, [=](Index other) { return other != fold && other != stop; });
    const detail::Sample held =
        detail::sample_of(x, y, fold_of, [=](Index other) { return other == stop; });
    return fit_boosted_trees_until(fitted.view(), fitted.y, held.view(), held.y, options, executor);
  });
}

}  // namespace wanamaker::inline WANAMAKER_ABI
