// Folds by document, ridge regression, boosted trees and correlations over documents against
// scikit-learn, by hand, and on data with a known answer.
#include <algorithm>
#include <cmath>
#include <vector>

#include "stats/reference_values.hpp"
#include "testing.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/stats/boosted_trees.hpp"
#include "wanamaker/stats/correlation_interval.hpp"
#include "wanamaker/stats/ridge_regression.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

struct RecordedRegression {
  std::vector<double> values = recorded_structure("regressions", "x");
  std::vector<double> y = recorded_structure("regressions", "y");
  std::vector<Index> fold;
  ConstMatrixView<double> x{values.data(), 150, 4};

  RecordedRegression() {
    for (const double f : recorded_structure("regressions", "fold")) {
      fold.push_back(static_cast<Index>(f));
    }
  }
};

/// y = |x₀| + noise: nothing for a line, much for a tree. Documents of 10 rows.
struct Bent {
  std::vector<double> values{};
  std::vector<double> y{};
  std::vector<Index> documents{};
  ConstMatrixView<double> x{};

  explicit Bent(double noise, Index rows = 600) {
    RandomStream random(51);
    for (Index i = 0; i < rows; ++i) {
      values.push_back(random.normal());
      values.push_back(random.normal());
      y.push_back(std::abs(values[values.size() - 2]) + noise * random.normal());
      documents.push_back(i / 10);
    }
    x = {values.data(), rows, 2};
  }
  Bent(const Bent&) = delete;
  Bent& operator=(const Bent&) = delete;
};

}  // namespace

TEST_CASE("folds keep documents whole and deal them out in turn") {
  const std::vector<Index> documents{4, 4, 9, 2, 9, 7, 2, 2};
  CHECK(document_folds(documents, 2) == std::vector<Index>{1, 1, 1, 0, 1, 0, 0, 0});
  CHECK(document_folds(documents, 4) == std::vector<Index>{1, 1, 3, 0, 3, 2, 0, 0});
  CHECK(error_id([&] { document_folds(documents, 5); }) == "stats/folds");
  CHECK(error_id([&] { document_folds(documents, 1); }) == "stats/folds");
  CHECK(error_id([&] { document_folds({}, 2); }) == "stats/folds");
}

TEST_CASE("ridge regression agrees with scikit-learn, on its data and held out") {
  const RecordedRegression data;
  const RidgeRegression fit = fit_ridge_regression(data.x, data.y, 3);
  CHECK(all_close(fit.weights, recorded_structure("regressions", "weights"), 1e-11, 0));
  CHECK(all_close(std::vector{fit.intercept}, recorded_structure("regressions", "intercept"), 1e-11,
                  1e-12));
  const HeldOutFit held_out = held_out_ridge(data.x, data.y, data.fold, 5, 3);
  CHECK(
      all_close(held_out.predictions, recorded_structure("regressions", "held_out"), 1e-10, 1e-12));
  CHECK(all_close(std::vector{*held_out.r2}, recorded_structure("regressions", "held_out_r2"),
                  1e-10, 0));
  CHECK(all_close(std::vector{*held_out.spearman},
                  recorded_structure("regressions", "held_out_spearman"), 1e-10, 0));
}

TEST_CASE("a constant feature gets no weight, a constant target no R²") {
  const std::vector<double> values{1, 0.1, 2, 0.1, 3, 0.1, 4, 0.1};
  const std::vector<double> y{1, 2, 3, 4};
  const RidgeRegression fit = fit_ridge_regression({values.data(), 4, 2}, y, 1e-9);
  CHECK(fit.weights[1] == 0);
  CHECK(std::abs(fit.weights[0] - 1) < 1e-8);
  const std::vector<Index> fold{0, 1, 0, 1};
  CHECK(!held_out_ridge({values.data(), 4, 2}, std::vector(4, 0.7), fold, 2).r2);
  CHECK(!r_squared(std::vector(3, 0.1), std::vector{1., 2., 3.}));
  CHECK(*r_squared(y, y) == 1);
  CHECK(*r_squared(y, std::vector(4, 2.5)) == 0);
  CHECK(*r_squared(y, std::vector{4., 3., 2., 1.}) == -3);
}

TEST_CASE("bad regressions are refused") {
  const std::vector<double> values{1, 2, 3, 4};
  const ConstMatrixView<double> x(values.data(), 4, 1);
  CHECK(error_id([&] { fit_ridge_regression(x, std::vector{1.}); }) == "stats/length-mismatch");
  CHECK(error_id([&] { fit_ridge_regression({nullptr, 0, 1}, {}); }) == "stats/empty");
  CHECK(error_id([&] { fit_ridge_regression(x, values, 0); }) == "stats/penalty");
  CHECK(error_id([&] { fit_ridge_regression(x, values, not_a_number); }) == "stats/penalty");
  CHECK(error_id([&] {
          fit_ridge_regression(x, std::vector{1., 2., not_a_number, 1.});
        }) == "stats/non-finite");
  CHECK(error_id([&] {
          fit_ridge_regression(x, values).predict({values.data(), 2, 2});
        }) == "shape/matrix");
  for (const BoostedTreesOptions& bad : {BoostedTreesOptions{.rounds = -1},
                                         {.depth = 0},
                                         {.learning_rate = 0},
                                         {.least_leaf = 0},
                                         {.bins = 1},
                                         {.subsample = 0},
                                         {.patience = 0},
                                         {.learning_rate = not_a_number}}) {
    CHECK(error_id([&] { fit_boosted_trees(x, values, bad); }) == "stats/boosting");
  }
  const std::vector<Index> fold{0, 1, 0, 1};
  CHECK(error_id([&] { held_out_boosted_trees(x, values, fold, 2); }) == "stats/folds");
}

TEST_CASE("boosted trees with a bin for each value are scikit-learn's") {
  const RecordedRegression data;
  const BoostedTreesOptions options{.rounds = 25, .least_leaf = 5};
  const BoostedTrees fit = fit_boosted_trees(data.x, data.y, options);
  BoostedTrees first = fit;
  first.trees.resize(1);
  CHECK(all_close(first.predict(data.x), recorded_structure("regressions", "boosted_first"), 1e-12,
                  1e-13));
  CHECK(all_close(fit.predict(data.x), recorded_structure("regressions", "boosted"), 1e-11, 1e-12));
}

TEST_CASE("one tree by hand") {
  // The best cut of 1, 1, 5, 9 is between 1 and 5 or 5 and 9: gains 2·2/4·36 = 36, 3/4·(20/3)²
  // = 33.
  const std::vector<double> x{0, 1, 2, 3};
  const std::vector<double> y{1, 1, 5, 9};
  const BoostedTrees fit = fit_boosted_trees(
      {x.data(), 4, 1}, y, {.rounds = 1, .depth = 1, .learning_rate = 1, .least_leaf = 1});
  REQUIRE(fit.trees.size() == 1);
  REQUIRE(fit.trees[0].nodes.size() == 3);
  CHECK(fit.trees[0].nodes[0].threshold == 1.5);
  CHECK(fit.predict({x.data(), 4, 1}) == std::vector{1., 1., 7., 7.});
  CHECK(error_id([&] { fit.predict({x.data(), 2, 2}); }) == "shape/matrix");
  // Nothing to split: leaves of three rows do not fit twice into four.
  const BoostedTrees flat = fit_boosted_trees({x.data(), 4, 1}, y, {.rounds = 3, .least_leaf = 3});
  CHECK(flat.predict({x.data(), 4, 1}) == std::vector(4, 4.0));
  // A constant target, a constant feature.
  CHECK(fit_boosted_trees({x.data(), 4, 1}, std::vector(4, 0.1), {.rounds = 2, .least_leaf = 1})
            .predict({x.data(), 1, 1})[0] == doctest::Approx(0.1).epsilon(1e-15));
  const std::vector<double> same(4, 2.0);
  CHECK(fit_boosted_trees({same.data(), 4, 1}, y, {.rounds = 2, .least_leaf = 1})
            .trees[0]
            .nodes.size() == 1);
}

TEST_CASE("few bins hold about equally many rows, equal values one") {
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(i < 400 ? 0.0 : i);
  const detail::BinnedFeatures binned({values.data(), 1000, 1}, 10);
  std::vector<Index> counts(binned.cuts(0).size() + 1);
  for (const std::uint16_t bin : binned.bins(0)) ++counts[bin];
  CHECK(counts.front() == 400);
  for (std::size_t b = 1; b < counts.size(); ++b) {
    CHECK(counts[b] >= 99);
    CHECK(counts[b] <= 101);
  }
  for (std::size_t i = 0; i < 400; ++i) CHECK(binned.bins(0)[i] == 0);
}

TEST_CASE("trees find held out what a line cannot, and stop at noise") {
  const Bent bent(0.3);
  const std::vector<Index> fold = document_folds(bent.documents, 5);
  // |x| of a normal has variance 1 − 2/π = 0.363, noise 0.09: R² at most 0.80, and 0 for a line.
  CHECK(*held_out_boosted_trees(bent.x, bent.y, fold, 5).r2 > 0.65);
  CHECK(*held_out_ridge(bent.x, bent.y, fold, 5).r2 < 0.05);
  Bent noise(0);
  RandomStream random(53);
  for (double& y : noise.y) y = random.normal();
  const HeldOutFit nothing = held_out_boosted_trees(noise.x, noise.y, fold, 5);
  CHECK(*nothing.r2 < 0.03);
  CHECK(*nothing.r2 > -0.1);
}

TEST_CASE("stopping keeps the rounds of the smallest held-out error") {
  const Bent bent(1.0, 300);
  const ConstMatrixView<double> fitted = bent.x.middle_rows(0, 200);
  const ConstMatrixView<double> held = bent.x.middle_rows(200, 100);
  const std::vector<double> y(bent.y.begin(), bent.y.begin() + 200);
  const std::vector<double> held_y(bent.y.begin() + 200, bent.y.end());
  const BoostedTreesOptions options{.rounds = 120, .patience = 200};
  const BoostedTrees stopped = fit_boosted_trees_until(fitted, y, held, held_y, options);
  BoostedTrees all = fit_boosted_trees(fitted, y, options);
  std::size_t best = 0;
  double least = 1e300;
  for (std::size_t rounds = 0; rounds <= 120; ++rounds) {
    BoostedTrees part = all;
    part.trees.resize(rounds);
    const double error = detail::squared_error(held_y, part.predict(held));
    if (error < least) {
      least = error;
      best = rounds;
    }
  }
  CHECK(stopped.trees.size() == best);
  CHECK(best > 0);
  CHECK(best < 120);
}

TEST_CASE("boosting does not depend on threads; subsamples on the seed alone") {
  const Bent bent(0.5, 300);
  const BoostedTreesOptions options{.rounds = 15, .subsample = 0.5, .seed = 4};
  const std::vector<double> serial = fit_boosted_trees(bent.x, bent.y, options).predict(bent.x);
  ThreadPool pool(3);
  CHECK(fit_boosted_trees(bent.x, bent.y, options, pool).predict(bent.x) == serial);
  BoostedTreesOptions other = options;
  other.seed = 5;
  CHECK(fit_boosted_trees(bent.x, bent.y, other).predict(bent.x) != serial);
}

TEST_CASE("a resample that draws a document twice has its correlation with the rows twice") {
  RandomStream random(61);
  std::vector<double> x, y;
  std::vector<Index> documents;
  for (int i = 0; i < 90; ++i) {
    x.push_back(std::round(4 * random.normal()));
    y.push_back(std::round(4 * random.normal() + x.back()));
    documents.push_back(i % 6);
  }
  const std::vector<double> weights{1, 2, 0, 1, 1, 1};
  std::vector<double> twice_x, twice_y;
  for (std::size_t i = 0; i < 90; ++i) {
    for (int k = 0; k < weights[static_cast<std::size_t>(documents[i])]; ++k) {
      twice_x.push_back(x[i]);
      twice_y.push_back(y[i]);
    }
  }
  const auto dx = detail::scaled_deviations(x);
  const auto dy = detail::scaled_deviations(y);
  CHECK(all_close(std::vector{*detail::weighted_pearson(dx, dy, documents, weights)},
                  std::vector{*pearson_correlation(twice_x, twice_y)}, 1e-13, 0));
  std::vector<double> rx(90), ry(90);
  detail::weighted_ranks(x, ascending_order(x), documents, weights, rx);
  detail::weighted_ranks(y, ascending_order(y), documents, weights, ry);
  CHECK(all_close(std::vector{*detail::weighted_pearson(rx, ry, documents, weights)},
                  std::vector{*spearman_correlation(twice_x, twice_y)}, 1e-13, 0));
}

TEST_CASE("intervals of correlations respect documents, and threads do not matter") {
  RandomStream random(62);
  std::vector<double> x, y;
  std::vector<Index> documents;
  for (Index d = 0; d < 30; ++d) {
    const double level = random.normal();
    const double other = random.normal();
    for (int i = 0; i < 20; ++i) {
      x.push_back(level + 0.3 * random.normal());
      y.push_back(other + 0.3 * random.normal());
      documents.push_back(d);
    }
  }
  for (const CorrelationKind kind : {CorrelationKind::pearson, CorrelationKind::spearman}) {
    const CorrelationEstimate estimate = correlation_with_interval(x, y, documents, kind);
    // 600 independent pairs would have r within ±2/√600 = 0.08; 30 documents within ±0.36.
    const Interval interval = estimate.over_documents.interval.value();
    CHECK(interval.low < *estimate.r);
    CHECK(interval.high > *estimate.r);
    CHECK(interval.high - interval.low > 0.4);
    CHECK(estimate.over_documents.usable_resamples == 2000);
    ThreadPool pool(3);
    const CorrelationEstimate again = correlation_with_interval(x, y, documents, kind, {}, pool);
    CHECK(again.over_documents.interval->low == interval.low);
  }
  CHECK(
      !correlation_with_interval(x, std::vector(600, 1.0), documents, CorrelationKind::pearson).r);
  CHECK(error_id([&] {
          correlation_with_interval(x, y, std::vector<Index>(3), CorrelationKind::pearson);
        }) == "stats/length-mismatch");
  CHECK(error_id([&] {
          correlation_with_interval(x, y, documents, CorrelationKind::pearson, {.resamples = 1});
        }) == "stats/resamples");
}

TEST_CASE("the power to see a correlation") {
  // Φ(√(n − 3)·artanh r − 1.96) with √97·artanh 0.3 = 3.0484: Φ(1.0885).
  CHECK(std::abs(correlation_power(0.3, 100) - 0.8618) < 5e-4);
  CHECK(correlation_power(-0.3, 100) == correlation_power(0.3, 100));
  CHECK(correlation_power(0, 100) < 0.026);
  CHECK(correlation_power(1, 100) == 1);
  CHECK(correlation_power(0.9, 3) == 0);
  CHECK(error_id([] { correlation_power(0.5, 10, 5); }) == "stats/probability");
}
