// Linear gates of every kind: values from scikit-learn, planted directions, labels from δ.
#include <algorithm>
#include <numeric>
#include <vector>

#include "gate/gate_testing.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/gate/assessment.hpp"
#include "wanamaker/gate/delta_regression.hpp"
#include "wanamaker/gate/pca_gate.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using Reference = ReferenceBackend<double>;

std::vector<std::uint8_t> recorded_labels(const std::string& group, const std::string& key) {
  return recorded_as<std::uint8_t>({group, key});
}

CoMoments input_moments(Reference& backend, ConstMatrixView<double> x) {
  const std::vector<double> delta(static_cast<std::size_t>(x.rows), 0.25);
  return gate_moments(backend, x, delta, GramPrecision::exact);
}

/// The largest change of a logit when every feature is rounded to float.
double rounding_of_logits(ConstMatrixView<double> x, const LinearScore& score) {
  double largest = 0;
  for (Index i = 0; i < x.rows; ++i) {
    double sum = 0;
    for (Index j = 0; j < x.cols; ++j) {
      sum += std::abs(x(i, j) * score.weights[static_cast<std::size_t>(j)]);
    }
    largest = std::max(largest, 0x1p-24 * sum);
  }
  return largest;
}

}  // namespace

TEST_CASE("a logistic gate's scores are the fit's probabilities, on every backend") {
  const std::vector<double> x = recorded({"logistic", "plain", "x"});
  const auto labels = recorded_as<std::uint8_t>({"logistic", "plain", "labels"});
  const std::vector<double> expected = recorded({"logistic", "plain", "probability"});
  Reference backend;
  const auto fitted = fit_logistic_gate(backend, view_of(x, 5), labels, {}, {.tolerance = 1e-12});
  static_assert(check_gate<LogisticGate<Reference>, Reference>());
  CHECK(fitted.report.converged());
  CHECK(fitted.gate.scores_are_probabilities());
  CHECK(fitted.gate.natural_threshold() == 0.5);
  CHECK(all_close(scores_of(fitted.gate, backend, view_of(x, 5)), expected, 1e-7, 1e-9));
  CHECK(fitted.gate.cost(10).parameters == 6);
  CHECK(fitted.gate.cost(10).flops == 100);

  const std::vector<float> narrow(x.begin(), x.end());
  EigenBackend<float> eigen;
  const LogisticGate<EigenBackend<float>> same(eigen, fitted.gate.linear_score());
  const double rounding = rounding_of_logits(view_of(x, 5), fitted.gate.linear_score());
  CHECK(all_close(scores_of(same, eigen, view_of(narrow, 5)), expected, 1e-7, rounding + 1e-9));
  FarBackend<double> far;
  const auto there = fit_logistic_gate(far, view_of(x, 5), labels, {}, {.tolerance = 1e-12});
  CHECK(there.gate.linear_score().weights == fitted.gate.linear_score().weights);
}

TEST_CASE("a gate of the wrong width is refused") {
  Reference backend;
  const LogisticGate<Reference> gate(backend, {{1, 2, 3}, 0});
  const std::vector<double> x(8);
  CHECK(error_id([&] { scores_of(gate, backend, view_of(x, 4)); }) == "shape/matrix");
}

TEST_CASE("extreme logits give probabilities, not NaN") {
  Reference backend;
  const LogisticGate<Reference> gate(backend, {{1}, 0});
  const std::vector<double> x{-1e4, -800, 0, 800, 1e4};
  CHECK(scores_of(gate, backend, view_of(x, 1)) == std::vector<double>{0, 0, 0.5, 1, 1});
}

TEST_CASE("principal components are scikit-learn's, signs fixed") {
  const std::vector<double> x = recorded({"pca", "x"});
  Reference backend;
  const CoMoments moments = input_moments(backend, view_of(x, 6));
  const FeatureScaling scaling = feature_scaling_of(moments);
  const EigenRowMajor<double> correlation = detail::correlation_matrix(moments, scaling);
  const PrincipalComponents principal = principal_components({correlation.data(), 6, 6}, 4);
  CHECK(all_close(principal.variances, recorded({"pca", "variances"}), 1e-12, 1e-13));
  const std::vector<double> expected = recorded({"pca", "components"});
  const auto magnitude_less = [](double a, double b) { return std::abs(a) < std::abs(b); };
  for (Index k = 0; k < 4; ++k) {  // the peer fixes signs by the largest projection
    const std::vector<double> theirs(expected.begin() + 6 * k, expected.begin() + 6 * k + 6);
    const double* own = principal.components.row(k).data();
    std::vector<double> ours(own, own + 6);
    CHECK(*std::max_element(own, own + 6, magnitude_less) > 0);
    if (cosine(ours, theirs) < 0) {
      for (double& value : ours) value = -value;
    }
    CHECK(all_close(ours, theirs, 1e-9, 1e-11));
  }
  CHECK(std::abs(principal_components({correlation.data(), 6, 6}, 6).explained_by_first(6) - 1) <
        1e-12);
  CHECK(error_id([&] {
          principal_components({correlation.data(), 6, 6}, 7);
        }) == "stats/components");
  CHECK(error_id([&] {
          principal_components({correlation.data(), 5, 6}, 2);
        }) == "stats/components");
}

TEST_CASE("PCA gates give scikit-learn's probabilities, and count as published") {
  const std::vector<double> x = recorded({"pca", "x"});
  Reference backend;
  const CoMoments moments = input_moments(backend, view_of(x, 6));
  const std::vector<Index> counts{1, 2, 4, 50};
  const auto gates =
      fit_pca_gates(backend, view_of(x, 6), moments, recorded_labels("pca", "labels"), counts, {},
                    {.tolerance = 1e-12});
  REQUIRE(gates.size() == 4);
  for (std::size_t g = 0; g < 3; ++g) {
    const std::string k = std::to_string(counts[g]);
    CAPTURE(k);
    CHECK(gates[g].report.converged());
    CHECK(all_close(scores_of(gates[g].gate, backend, view_of(x, 6)),
                    recorded({"pca", "probability_" + k}), 1e-6, 1e-9));
    CHECK(all_close(std::vector{gates[g].explained_variance}, recorded({"pca", "explained_" + k}),
                    1e-12, 0));
    CHECK(gates[g].gate.cost(1).parameters == 7);
  }
  CHECK(gates[3].components == 6);
  CHECK(gates[1].published_parameters == 2 * 6 + 2 * 2 + 1);
}

TEST_CASE("parameters of PCA gates are those of the published files") {
  // b = 1, 3 and 6 of a model of width 192.
  const Index d = 192;
  const std::vector<double> x = normal_values<double>(40 * d, 31);
  std::vector<std::uint8_t> labels;
  for (Index i = 0; i < 40; ++i) labels.push_back(static_cast<std::uint8_t>(i % 2));
  EigenBackend<double> backend;
  const std::vector<double> delta(40, 0.5);
  const CoMoments moments = gate_moments(backend, view_of(x, d), delta);
  const std::vector<Index> counts{2, 6, 12};
  const auto gates = fit_pca_gates(backend, view_of(x, d), moments, labels, counts);
  CHECK(gates[0].published_parameters == 389);
  CHECK(gates[1].published_parameters == 1165);
  CHECK(gates[2].published_parameters == 2329);
}

TEST_CASE("regression on δ predicts as scikit-learn's ridge, with the sign of a gate") {
  const std::vector<double> x = recorded({"delta_regression", "x"});
  const std::vector<double> delta = recorded({"delta_regression", "delta"});
  Reference backend;
  const CoMoments moments = gate_moments(backend, view_of(x, 4), delta, GramPrecision::exact);
  const auto fitted = fit_delta_regression(
      backend, moments,
      {.lambda = recorded_number({"delta_regression", "lambda"}), .scale = LambdaScale::absolute});
  std::vector<double> predicted = scores_of(fitted.gate, backend, view_of(x, 4));
  for (double& value : predicted) value = -value;
  CHECK(all_close(predicted, recorded({"delta_regression", "predicted"}), 1e-10, 1e-12));
  CHECK(fitted.gate.natural_threshold() == 0);
  CHECK_FALSE(fitted.gate.scores_are_probabilities());
  CHECK(fitted.report.in_sample.r2 > 0);
}

TEST_CASE("every gate finds a planted direction, from labels, costs and δ") {
  const Index n = 6000;
  const Index d = 16;
  const std::vector<double> x = normal_values<double>(n * d, 41);
  const std::vector<double> direction = normal_values<double>(d, 42);
  RandomStream noise(43);
  std::vector<double> delta;
  for (Index i = 0; i < n; ++i) {
    double z = 0;
    for (Index j = 0; j < d; ++j) {
      z += x[static_cast<std::size_t>(i * d + j)] * direction[static_cast<std::size_t>(j)];
    }
    delta.push_back(-0.01 * (z + 0.5 * noise.normal()));  // suffices where z is large
  }
  EigenBackend<double> backend;
  const auto view = view_of(x, d);
  const DeltaLabels labels = published_labels(delta);
  CHECK(cosine(fit_logistic_gate(backend, view, labels.labels).gate.linear_score().weights,
               direction) > 0.99);
  CHECK(cosine(fit_cost_sensitive_gate(backend, view, delta).gate.linear_score().weights,
               direction) > 0.99);
  const CoMoments moments = gate_moments(backend, view, delta);
  CHECK(cosine(fit_delta_regression(backend, moments).gate.linear_score().weights, direction) >
        0.99);
}

TEST_CASE("a cost-sensitive gate heeds what decisions cost, not how many there are") {
  // Many positions with x = 1 gain a little from the surrogate, few lose a lot: by number the
  // surrogate suffices there, by cost it does not.
  std::vector<double> x;
  std::vector<double> delta;
  for (int i = 0; i < 100; ++i) {
    x.push_back(1);
    delta.push_back(i < 90 ? -0.01 : 1.0);
    x.push_back(-1);
    delta.push_back(i < 90 ? 0.01 : -1.0);
  }
  Reference backend;
  const std::vector<double> one{1.0};
  const auto by_number = fit_logistic_gate(backend, view_of(x, 1), labels_at_most(delta).labels);
  const auto by_cost = fit_cost_sensitive_gate(backend, view_of(x, 1), delta);
  CHECK(scores_of(by_number.gate, backend, view_of(one, 1))[0] > 0.8);
  CHECK(scores_of(by_cost.gate, backend, view_of(one, 1))[0] < 0.2);
}

TEST_CASE("weights of mean one, all zero where the surrogate changes nothing") {
  const std::vector<double> weights = cost_weights(std::vector{0.5, -1.5, 0.0, 2.0});
  CHECK(weights == std::vector{0.5, 1.5, 0.0, 2.0});
  CHECK(cost_weights(std::vector{0.0, 0.0}) == std::vector{0.0, 0.0});
  const std::vector<double> x{1.0, 2.0};
  Reference backend;
  const auto fitted = fit_cost_sensitive_gate(backend, view_of(x, 1), std::vector{0.0, 0.0});
  CHECK(fitted.report.status == FitStatus::one_class);
  CHECK(scores_of(fitted.gate, backend, view_of(x, 1))[0] > 0.5);
}

TEST_CASE("labels are those of the published procedure") {
  const DeltaLabels median = published_labels(recorded({"labels", "delta"}));
  CHECK(median.labels == recorded_labels("labels", "by_median"));
  CHECK(median.threshold == recorded_number({"labels", "median"}));
  const DeltaLabels quartile = published_labels(recorded({"labels", "harmful"}));
  CHECK(quartile.labels == recorded_labels("labels", "by_quartile"));
  CHECK(all_close(std::vector{quartile.threshold}, recorded({"labels", "quartile"}), 1e-14, 0));
  CHECK(quartile.negative_delta_share == 1.0 / 41);
  const DeltaLabels zero = labels_at_most(std::vector{-1.0, 0.0, 1.0, 2.0});
  CHECK(zero.labels == std::vector<std::uint8_t>{1, 1, 0, 0});
  CHECK(zero.positive_share == 0.5);
  CHECK_FALSE(zero.one_class());
  CHECK(labels_at_most(std::vector{1.0, 2.0}).one_class());
}

TEST_CASE("a δ that is not finite is refused by name") {
  const std::vector<double> delta{0.1, std::nan(""), 0.2};
  Reference backend;
  const std::vector<double> x{1, 2, 3};
  CHECK(error_id([&] { labels_at_most(delta); }) == "gate/non-finite-delta");
  CHECK(error_id([&] { published_labels(delta); }) == "gate/non-finite-delta");
  CHECK(error_id([&] { cost_weights(delta); }) == "gate/non-finite-delta");
  CHECK(error_id([&] { fit_cost_sensitive_gate(backend, view_of(x, 1), delta); }) ==
        "gate/non-finite-delta");
  CHECK(error_id([&] { gate_moments(backend, view_of(x, 1), delta); }) == "gate/non-finite-delta");
  CHECK(error_id([&] {
          published_labels(std::vector{0.1, -HUGE_VAL});
        }) == "gate/non-finite-delta");
  CHECK(error_id([&] { published_labels(std::vector<double>{}); }) == "gate/no-positions");
  CHECK(error_id([&] { gate_moments(backend, view_of(x, 1), std::vector{1.0}); }) ==
        "stats/length-mismatch");
}

TEST_CASE("fewer rows than features, and a constant feature, leave every gate finite") {
  const Index d = 10;
  std::vector<double> x = normal_values<double>(6 * d, 51);
  for (std::size_t i = 0; i < 6; ++i) x[i * 10 + 4] = 2.5;
  const std::vector<double> delta{0.1, -0.2, 0.3, -0.4, 0.05, -0.1};
  Reference backend;
  const CoMoments moments = gate_moments(backend, view_of(x, d), delta, GramPrecision::exact);
  CHECK(feature_scaling_of(moments).constant_features == std::vector<Index>{4});
  const std::vector<Index> counts{2, 6, 12};
  const DeltaLabels labels = labels_at_most(delta);
  for (const auto& fitted : fit_pca_gates(backend, view_of(x, d), moments, labels.labels, counts)) {
    CHECK(fitted.report.converged());
    for (const double w : fitted.gate.linear_score().weights) CHECK(std::isfinite(w));
    CHECK(std::abs(fitted.gate.linear_score().weights[4]) < 1e-12);
  }
  const auto regression = fit_delta_regression(backend, moments);
  CHECK(regression.report.is_underdetermined);
  for (const double w : regression.gate.linear_score().weights) CHECK(std::isfinite(w));
}

TEST_CASE("an assessment holds the AUC with its interval, and calibration for probabilities") {
  const std::vector<double> scores{0.1, 0.4, 0.35, 0.8, 0.7, 0.6};
  const std::vector<std::uint8_t> labels{0, 0, 1, 1, 1, 0};
  const std::vector<Index> documents{0, 0, 1, 1, 2, 2};
  const GateAssessment plain = assess_gate(scores, labels);
  REQUIRE(plain.auc.has_value());
  CHECK(plain.auc->auc == 7.0 / 9);
  CHECK_FALSE(plain.calibration.has_value());
  CHECK_FALSE(plain.auc_interval.interval.has_value());
  const GateAssessment full =
      assess_gate(scores, labels, documents, {.scores_are_probabilities = true});
  REQUIRE(full.calibration.has_value());
  REQUIRE(full.auc_interval.interval.has_value());
  CHECK(full.calibration->bins.size() == 6);
  CHECK_FALSE(assess_gate(scores, std::vector<std::uint8_t>(6, 1)).auc.has_value());
}
