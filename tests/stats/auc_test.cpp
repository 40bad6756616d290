// AUC, its standard error and document interval, and calibration.
#include "wanamaker/stats/auc.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "stats/reference_values.hpp"
#include "testing.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/stats/calibration.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

/// ½ where equal, else whether a > b.
double win(double a, double b) {
  return a > b ? 1 : a == b ? 0.5 : 0;
}

/// Var / n of the mean win of each member of class `own` against the other class, by definition.
double placement_variance(const std::vector<double>& scores,
                          const std::vector<std::uint8_t>& labels, std::uint8_t own) {
  RunningMoments moments;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (labels[i] != own) continue;
    RunningMoments wins;
    for (std::size_t j = 0; j < scores.size(); ++j) {
      if (labels[j] != own) wins.add(win(scores[i], scores[j]));
    }
    moments.add(*wins.mean());
  }
  return *moments.variance() / static_cast<double>(moments.count());
}

/// Scores whose mean differs between documents, and labels that follow score and document.
struct Clustered {
  std::vector<double> scores;
  std::vector<std::uint8_t> labels;
  std::vector<Index> documents;
};

Clustered clustered(std::uint64_t seed, double document_spread) {
  Clustered data;
  RandomStream random(seed);
  for (Index document = 0; document < 40; ++document) {
    const double level = document_spread * random.normal();
    for (int token = 0; token < 50; ++token) {
      const double score = level + random.normal();
      data.scores.push_back(std::round(10 * score) / 10);
      data.labels.push_back(level + random.normal() + 0.3 * score > 0 ? 1 : 0);
      data.documents.push_back(document);
    }
  }
  return data;
}

double width(const Interval& interval) {
  return interval.high - interval.low;
}

}  // namespace

TEST_CASE("AUC with ties agrees with scikit-learn, its error with the definition") {
  const std::vector<double> scores = recorded("scores", "tied");
  const std::vector<std::uint8_t> truth = recorded_as<std::uint8_t>("scores", "labels");
  const AucEstimate estimate = area_under_roc(scores, truth).value();
  // Means of at most 300 terms.
  CHECK(all_close(std::vector{estimate.auc}, std::vector{recorded_number("scores", "auc")},
                  300 * epsilon, 0));
  const double variance =
      placement_variance(scores, truth, 1) + placement_variance(scores, truth, 0);
  CHECK(
      all_close(std::vector{*estimate.standard_error}, std::vector{std::sqrt(variance)}, 1e-12, 0));
}

TEST_CASE("AUC by hand") {
  const std::vector<double> scores{0.1, 0.4, 0.4, 0.8};
  // Pairs: 0.4 > 0.1, 0.4 = 0.4, 0.8 > 0.1, 0.8 > 0.4 → 3.5 of 4.
  const AucEstimate estimate =
      area_under_roc(scores, std::vector<std::uint8_t>{0, 1, 0, 1}).value();
  CHECK(estimate.auc == 0.875);
  CHECK(estimate.positives == 2);
  CHECK(estimate.negatives == 2);
  CHECK(area_under_roc(scores, std::vector<std::uint8_t>{0, 0, 0, 1})->auc == 1);
  CHECK(!area_under_roc(scores, std::vector<std::uint8_t>{0, 0, 0, 1})->standard_error);
  CHECK(area_under_roc(std::vector(4, 0.3), std::vector<std::uint8_t>{0, 1, 0, 1})->auc == 0.5);
}

TEST_CASE("one class alone has no AUC") {
  CHECK(!area_under_roc(std::vector{0.1, 0.2}, std::vector<std::uint8_t>{1, 1}));
  CHECK(!area_under_roc(std::vector{0.1, 0.2}, std::vector<std::uint8_t>{0, 0}));
  CHECK(!area_under_roc({}, {}));
  const DocumentInterval interval =
      auc_document_interval(std::vector{0.1, 0.2}, std::vector<std::uint8_t>{1, 1},
                            std::vector<Index>{0, 1}, {.resamples = 100});
  CHECK(!interval.interval);
  CHECK(interval.usable_resamples == 0);
}

TEST_CASE("a resample weighted once each gives the AUC itself") {
  const Clustered data = clustered(41, 1);
  const auto ranked = detail::rank_positions(data.scores, data.labels, data.documents);
  const double auc = detail::weighted_auc(ranked, std::vector(40, 1.0)).value();
  CHECK(all_close(std::vector{auc},
                  std::vector{area_under_roc(data.scores, data.labels).value().auc}, 2000 * epsilon,
                  0));
  // Drawing one document twice is the same as its positions standing there twice.
  std::vector<double> weights(40, 1.0);
  weights[7] = 2;
  Clustered twice = data;
  for (std::size_t i = 0; i < data.scores.size(); ++i) {
    if (data.documents[i] != 7) continue;
    twice.scores.push_back(data.scores[i]);
    twice.labels.push_back(data.labels[i]);
  }
  CHECK(all_close(std::vector{detail::weighted_auc(ranked, weights).value()},
                  std::vector{area_under_roc(twice.scores, twice.labels).value().auc},
                  2050 * epsilon, 0));
}

TEST_CASE("the document interval is wider where documents differ, and about DeLong's where not") {
  const auto widths = [](const Clustered& data) {
    const DocumentInterval interval =
        auc_document_interval(data.scores, data.labels, data.documents, {.resamples = 1000});
    CHECK(interval.usable_resamples == 1000);
    const AucEstimate estimate = area_under_roc(data.scores, data.labels).value();
    return width(*interval.interval) / (2 * 1.96 * *estimate.standard_error);
  };
  CHECK(widths(clustered(42, 1)) > 1.5);
  // 40 documents: the spread of a bootstrap interval's width is about 1/√(2 · 40) = 0.11.
  CHECK(std::abs(widths(clustered(43, 0)) - 1) < 0.45);
}

TEST_CASE("the document interval does not depend on threads") {
  const Clustered data = clustered(44, 1);
  ThreadPool pool(3);
  const auto serial = auc_document_interval(data.scores, data.labels, data.documents, {});
  const auto parallel = auc_document_interval(data.scores, data.labels, data.documents, {}, pool);
  CHECK(serial.interval->low == parallel.interval->low);
  CHECK(serial.interval->high == parallel.interval->high);
}

TEST_CASE("bad scores, labels and documents are refused") {
  const std::vector<double> scores{0.1, 0.2};
  const std::vector<std::uint8_t> good{0, 1};
  CHECK(error_id([&] { area_under_roc(scores, std::vector<std::uint8_t>{0}); }) ==
        "stats/length-mismatch");
  CHECK(error_id([&] {
          area_under_roc(scores, std::vector<std::uint8_t>{0, 2});
        }) == "stats/label");
  CHECK(error_id([&] {
          area_under_roc(std::vector{0.1, not_a_number}, good);
        }) == "stats/non-finite");
  const auto interval = [&](std::vector<Index> documents, DocumentBootstrapOptions options = {}) {
    return error_id([&] { auc_document_interval(scores, good, documents, options); });
  };
  CHECK(interval({0}) == "stats/length-mismatch");
  CHECK(interval({0, -1}) == "stats/document");
  CHECK(interval({0, 2}) == "stats/document");
  CHECK(interval({0, 1}, {.level = 95}) == "stats/probability");
  CHECK(interval({0, 1}, {.resamples = 0}) == "stats/resamples");
  CHECK(interval({0, 0}) == "");
  CHECK(!auc_document_interval(scores, good, std::vector<Index>{0, 0}).interval);
}

TEST_CASE("calibration agrees with scikit-learn") {
  const std::vector<double> predicted = recorded("scores", "probability");
  const Calibration calibration =
      calibrate(predicted, recorded_as<std::uint8_t>("scores", "labels"));
  std::vector<double> shares;
  std::vector<double> means;
  double error = 0;
  for (const ReliabilityBin& bin : calibration.bins) {
    shares.push_back(bin.share_positive);
    means.push_back(bin.mean_predicted);
    error +=
        static_cast<double>(bin.count) / 300 * std::abs(bin.share_positive - bin.mean_predicted);
  }
  CHECK(all_close(shares, recorded("scores", "share_positive"), 300 * epsilon, 0));
  CHECK(all_close(means, recorded("scores", "mean_predicted"), 300 * epsilon, 0));
  CHECK(all_close(std::vector{calibration.brier_score},
                  std::vector{recorded_number("scores", "brier")}, 300 * epsilon, 0));
  CHECK(all_close(std::vector{calibration.expected_calibration_error}, std::vector{error},
                  300 * epsilon, 0));
}

TEST_CASE("calibration by hand, and every probability in its row") {
  const Calibration calibration =
      calibrate(std::vector{0.0, 0.4, 0.4, 1.0}, std::vector<std::uint8_t>{0, 0, 1, 1}, 2);
  CHECK(calibration.bins.size() == 2);
  CHECK(calibration.bins[0].count == 3);
  CHECK(calibration.bins[1].count == 1);
  CHECK(calibration.bins[1].share_positive == 1);
  CHECK(calibration.brier_score == doctest::Approx((0.16 + 0.36) / 4).epsilon(1e-14));
  // |1/3 − 0.8/3| · 3/4
  CHECK(calibration.expected_calibration_error == doctest::Approx(0.05).epsilon(1e-14));
  for (const Index bins : {Index{3}, Index{7}, Index{10}, Index{100}}) {
    std::vector<double> edges;
    for (Index b = 0; b <= bins; ++b) {
      edges.push_back(static_cast<double>(b) / static_cast<double>(bins));
      edges.push_back(std::nextafter(edges.back(), 0.5));
    }
    const std::vector<std::uint8_t> truth(edges.size(), 0);
    for (const ReliabilityBin& bin : calibrate(edges, truth, bins).bins) {
      CHECK(bin.mean_predicted >= bin.low);
      CHECK(bin.mean_predicted <= bin.high);
    }
    for (const double p : edges) {
      const Calibration one = calibrate(std::vector{p}, std::vector<std::uint8_t>{0}, bins);
      CHECK(one.bins.front().low <= p);
      CHECK((p < one.bins.front().high || p == 1));
    }
  }
}

TEST_CASE("bad predictions are refused") {
  const std::vector<std::uint8_t> one{1};
  CHECK(error_id([&] { calibrate({}, {}); }) == "stats/empty");
  CHECK(error_id([&] { calibrate(std::vector{not_a_number}, one); }) == "stats/probability");
  CHECK(error_id([&] { calibrate(std::vector{0.5, 0.5}, one); }) == "stats/length-mismatch");
  CHECK(error_id([&] { calibrate(std::vector{0.5}, std::vector<std::uint8_t>{7}); }) ==
        "stats/label");
  CHECK(error_id([&] { calibrate(std::vector{0.5}, one, 0); }) == "stats/bins");
}
