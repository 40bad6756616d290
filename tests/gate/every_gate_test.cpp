// What holds of every gate alike: scores are finite whatever the data, AUC and calibration say how
// good they are, and each runs in a gated layer.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gate/gate_testing.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/gate/any_gate.hpp"
#include "wanamaker/gate/assessment.hpp"
#include "wanamaker/gate/bottleneck_training.hpp"
#include "wanamaker/gate/delta_regression.hpp"
#include "wanamaker/gate/pca_gate.hpp"
#include "wanamaker/gate/random_gate.hpp"
#include "wanamaker/gate/rule_gates.hpp"
#include "wanamaker/gate/threshold.hpp"
#include "wanamaker/gate/token_table.hpp"
#include "wanamaker/stats/distributions.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using Reference = ReferenceBackend<double>;
constexpr Index token_kinds = 20;

/// Positions of sequences of 10 tokens, with what a surrogate costs at each.
struct Positions {
  Index width = 0;
  std::vector<double> x{};
  std::vector<double> delta{};
  std::vector<TokenId> tokens{};
  std::vector<TokenId> places{};
  std::vector<Index> documents{};

  ConstMatrixView<double> view() const { return view_of(x, width); }
  Index size() const { return static_cast<Index>(delta.size()); }
  RowContext<Reference> rows() const {
    return {0, {tokens.data(), size()}, {places.data(), size()}, {}, view()};
  }
};

/// n rows of d normal features; δ < 0 with probability σ(2x₀ + x₁), |δ| uniform and independent.
Positions planted_positions(Index n, Index d, std::uint64_t seed) {
  RandomStream random(seed);
  Positions p{.width = d};
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < d; ++j) p.x.push_back(random.normal());
    const double* row = p.x.data() + i * d;
    const bool suffices = random.uniform() < logistic(2 * row[0] + (d > 1 ? row[1] : 0.0));
    p.delta.push_back((suffices ? -1 : 1) * (0.01 + random.uniform()));
    p.tokens.push_back(static_cast<TokenId>(random.below(token_kinds)));
    p.places.push_back(static_cast<TokenId>(i % 10));
    p.documents.push_back(i / 10);
  }
  return p;
}

struct NamedFit {
  std::string name;
  AnyGate<Reference> gate;
  FitStatus status = FitStatus::converged;
};

/// Gates that are fitted to labels.
std::vector<NamedFit> label_gates(Reference& backend, const Positions& p,
                                  const DeltaLabels& labels) {
  std::vector<NamedFit> gates;
  auto plain = fit_logistic_gate(backend, p.view(), labels.labels);
  gates.push_back({"logistic", std::move(plain.gate), plain.report.status});
  auto cost = fit_cost_sensitive_gate(backend, p.view(), p.delta);
  gates.push_back({"cost-sensitive", std::move(cost.gate), cost.report.status});
  const std::vector<Index> counts{2, 6, 12};
  const CoMoments moments = gate_moments(backend, p.view(), p.delta);
  for (auto& pca : fit_pca_gates(backend, p.view(), moments, labels.labels, counts)) {
    gates.push_back(
        {"pca-" + std::to_string(pca.components), std::move(pca.gate), pca.report.status});
  }
  for (const Index units : {1, 3, 6}) {
    auto fit = fit_bottleneck_gate(backend, p.view(), labels.labels, {}, {.units = units});
    gates.push_back(
        {"bottleneck-" + std::to_string(units), std::move(fit.gate), fit.report.status});
  }
  return gates;
}

/// Gates that are not: rules, random, and those that predict δ.
std::vector<NamedFit> other_gates(Reference& backend, const Positions& p) {
  std::vector<NamedFit> gates;
  gates.push_back({"first-position", FirstPositionGate{}});
  gates.push_back({"norm of the input", NormGate(p.width, NormSource::mlp_input)});
  gates.push_back({"norm of the stream", NormGate(p.width, NormSource::residual, false)});
  gates.push_back({"random", RandomGate(0.3, 1)});
  gates.push_back({"token-table",
                   TokenTableGate<Reference>(
                       backend, fit_token_table({p.tokens, p.delta, p.documents}, token_kinds))});
  const CoMoments moments = gate_moments(backend, p.view(), p.delta);
  gates.push_back({"delta-regression", fit_delta_regression(backend, moments).gate});
  return gates;
}

std::vector<double> scores_on(const AnyGate<Reference>& gate, Reference& backend,
                              const Positions& p) {
  std::vector<double> scores(p.delta.size());
  Workspace<Reference> workspace(backend);
  gate.score(backend, p.view(), p.rows(), {scores.data(), p.size()}, workspace);
  return scores;
}

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

/// Every gate, fitted to these positions, scores them and others without a NaN.
void check_finite_scores(const Positions& p, bool is_one_class) {
  Reference backend;
  const Positions others = planted_positions(30, p.width, 99);
  const DeltaLabels labels = labels_at_most(p.delta);
  CHECK(labels.one_class() == is_one_class);
  std::vector<NamedFit> gates = label_gates(backend, p, labels);
  for (const NamedFit& fit : gates) {
    CAPTURE(fit.name);
    CHECK((fit.status == FitStatus::one_class) == is_one_class);
  }
  for (NamedFit& fit : other_gates(backend, p)) gates.push_back(std::move(fit));
  for (const NamedFit& fit : gates) {
    CAPTURE(fit.name);
    const std::vector<double> own = scores_on(fit.gate, backend, p);
    CHECK(all_finite(own));
    CHECK(all_finite(scores_on(fit.gate, backend, others)));
    CHECK(assess_gate(own, labels.labels).auc.has_value() != is_one_class);
    CHECK(std::isfinite(threshold_for_fraction(own, 0.5).threshold));
  }
}

/// How far the AUC of a gate of k parameters, fitted to n rows, may stay behind `best`, that of the
/// logits z which the labels were drawn with. The fit moves logits by e with E e² = k/(n·w),
/// w = E p(1 − p), by the Fisher information; that adds to the variance v of the logits within a
/// class, and AUC = Φ(d/√2) with d ∝ 1/√v, so Φ's argument u loses u·E e²/(2v). Five deviations:
/// those of e² (√(2/k) of it), and those of two AUCs of n rows correlated by 1 − E e²/(2 var z).
double auc_lost_by_a_fit(const AucEstimate& best, const std::vector<double>& z, double k) {
  const double n = static_cast<double>(z.size());
  double information = 0;
  for (const double logit : z) information += logistic(logit) * logistic(-logit) / n;
  const double variance = 5;  // of 2x₀ + x₁
  const double moved = k / (n * information);
  const double u = normal_quantile(best.auc);
  const double within = variance / (1 + u * u / 2);
  const double expected = normal_density(u) * u * moved / (2 * within);
  const double chance = best.standard_error.value() * std::sqrt(moved / variance);
  return expected + 5 * std::hypot(expected * std::sqrt(2 / k), chance);
}

}  // namespace

TEST_CASE("labels of one class leave every gate finite, and their AUC missing") {
  for (const double sign : {-1.0, 1.0}) {
    Positions p = planted_positions(60, 4, 1);
    for (double& delta : p.delta) delta = sign * std::abs(delta);
    check_finite_scores(p, true);
  }
  Positions same = planted_positions(60, 4, 2);
  for (double& delta : same.delta) delta = 0.125;
  check_finite_scores(same, true);
}

TEST_CASE("fewer rows than features leave every gate finite") {
  check_finite_scores(planted_positions(10, 25, 3), false);
}

TEST_CASE("constant and repeated features leave every gate finite") {
  Positions p = planted_positions(60, 5, 4);
  for (Index i = 0; i < p.size(); ++i) {
    double* row = p.x.data() + i * 5;
    row[2] = 1e6;
    row[3] = row[0];
    row[4] = 0;
  }
  check_finite_scores(p, false);
}

TEST_CASE("a feature and a δ of any size leave every gate finite") {
  Positions p = planted_positions(60, 3, 5);
  p.x[0] = 1e8;
  p.delta[0] = 1e4;
  check_finite_scores(p, false);
}

TEST_CASE("AUC and calibration of every gate on positions that it was not fitted on") {
  Reference backend;
  const Positions train = planted_positions(4000, 12, 6);
  const Positions held_out = planted_positions(4000, 12, 7);
  const DeltaLabels truth = labels_at_most(held_out.delta);
  const auto assess = [&](const AnyGate<Reference>& gate) {
    return assess_gate(scores_on(gate, backend, held_out), truth.labels, {},
                       {.scores_are_probabilities = gate.scores_are_probabilities()});
  };
  // The best possible AUC: that of the probability which the labels were drawn with.
  std::vector<double> best;
  for (Index i = 0; i < held_out.size(); ++i) {
    const double* row = held_out.x.data() + i * 12;
    best.push_back(2 * row[0] + row[1]);
  }
  const AucEstimate best_estimate = assess_gate(best, truth.labels).auc.value();
  const double best_auc = best_estimate.auc;
  for (const NamedFit& fit : label_gates(backend, train, labels_at_most(train.delta))) {
    CAPTURE(fit.name);
    const GateAssessment quality = assess(fit.gate);
    REQUIRE(quality.calibration.has_value());
    // Ten bins of 4,000 positions are off by 0.02 by chance; the error of a fit comes on top.
    CHECK(quality.calibration->expected_calibration_error < 0.06);
    const bool sees_everything = fit.name != "pca-2" && fit.name != "pca-6";
    const double lost = auc_lost_by_a_fit(best_estimate, best, fit.gate.cost(1).parameters);
    CAPTURE(lost);
    if (sees_everything) CHECK(quality.auc->auc > best_auc - lost);
    CHECK(quality.auc->auc <= best_auc + 0.01);
  }
  for (const NamedFit& fit : other_gates(backend, train)) {
    CAPTURE(fit.name);
    const GateAssessment quality = assess(fit.gate);
    CHECK_FALSE(quality.calibration.has_value());
    const bool knows = fit.name == "delta-regression";
    CHECK((knows ? best_auc - 0.01 : 0.45) < quality.auc->auc);
    CHECK(quality.auc->auc < (knows ? best_auc + 0.01 : 0.55));
  }
}
