// Logistic regression against scikit-learn, against its own optimality conditions, and on the
// inputs that break naive solvers.
#include "wanamaker/gate/logistic_regression.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "gate/gate_testing.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/core/thread_pool.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

constexpr double eps = std::numeric_limits<double>::epsilon();

struct Rows {
  Index n = 0;
  Index d = 0;
  std::vector<double> x;
  std::vector<std::uint8_t> labels;
  std::vector<double> weights;

  ConstMatrixView<double> view() const { return {x.data(), n, d}; }
  std::vector<float> narrow() const { return {x.begin(), x.end()}; }
};

Rows recorded_problem(const std::string& name) {
  Rows p;
  p.n = static_cast<Index>(recorded_number({"logistic", name, "n"}));
  p.x = recorded({"logistic", name, "x"});
  p.d = static_cast<Index>(p.x.size()) / p.n;
  p.labels = recorded_as<std::uint8_t>({"logistic", name, "labels"});
  p.weights = recorded({"logistic", name, "weights"});
  return p;
}

/// Features of very different scale and strong correlation, labels from a noisy direction.
Rows random_problem(Index n, Index d, std::uint64_t seed, double noise = 1) {
  Rows p{n, d, normal_values<double>(n * d, seed), {}, {}};
  RandomStream stream(seed, 1);
  for (Index i = 0; i < n; ++i) {
    double* row = p.x.data() + i * d;
    for (Index j = 1; j < d; ++j) row[j] += 2 * row[j - 1];
    for (Index j = 0; j < d; ++j) row[j] = row[j] * std::exp(-0.1 * static_cast<double>(j)) + 5;
    const double z = row[0] - row[d - 1] + noise * stream.normal();
    p.labels.push_back(z > 0 ? 1 : 0);
  }
  return p;
}

/// max |∂ mean loss| at a fit, from the definition alone.
double gradient_by_definition(const Rows& p, const LogisticFit& fit, double C) {
  const std::size_t d = static_cast<std::size_t>(p.d);
  std::vector<double> gradient(d + 1, 0.0);
  double total = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(p.n); ++i) {
    std::vector<double> row(d);
    double z = fit.intercept;
    for (std::size_t j = 0; j < d; ++j) {
      row[j] = (p.x[i * d + j] - fit.scaling.mean[j]) / fit.scaling.scale[j];
      z += row[j] * fit.coefficients[j];
    }
    const double w = p.weights.empty() ? 1 : p.weights[i];
    const double residual = w * (1 / (1 + std::exp(-z)) - p.labels[i]);
    for (std::size_t j = 0; j < d; ++j) gradient[j] += residual * row[j];
    gradient[d] += residual;
    total += w;
  }
  for (std::size_t j = 0; j < d; ++j) gradient[j] += fit.coefficients[j] / C;
  double largest = 0;
  for (const double g : gradient) largest = std::max(largest, std::abs(g));
  return largest / total;
}

const std::vector<std::string> cases = {
    "plain",     "strong_penalty",        "weak_penalty",
    "weighted",  "constant_feature",      "fewer_rows_than_features",
    "separable", "separable_weak_penalty"};

}  // namespace

TEST_CASE("coefficients, intercept and objective are scikit-learn's") {
  for (const std::string& name : cases) {
    CAPTURE(name);
    const Rows p = recorded_problem(name);
    const double C = recorded_number({"logistic", name, "C"});
    ReferenceBackend<double> backend;
    const LogisticFit fit = fit_logistic_regression(backend, p.view(), p.labels, p.weights,
                                                    {.C = C, .tolerance = 1e-12});
    CHECK(fit.report.converged());
    // The strongly convex part of the objective is |coefficients|²/2C, so that a gradient g leaves
    // at most C·|g|: 1e-12·Σw·C here; the peer stops at 1e-10.
    const double atol = 1e-9 * std::max(1.0, C);
    CHECK(all_close(fit.scaling.mean, recorded({"logistic", name, "mean"}), 8 * eps, 8 * eps));
    CHECK(all_close(fit.scaling.scale, recorded({"logistic", name, "scale"}), 1e-13, 0));
    CHECK(all_close(fit.coefficients, recorded({"logistic", name, "coefficients"}), 1e-6, atol));
    CHECK(all_close(std::vector{fit.intercept}, recorded({"logistic", name, "intercept"}), 1e-6,
                    atol));
    CHECK(all_close(std::vector{fit.report.objective}, recorded({"logistic", name, "objective"}),
                    1e-10, 1e-10));
  }
}

TEST_CASE("the folded score gives scikit-learn's probabilities from raw features") {
  for (const std::string& name : cases) {
    CAPTURE(name);
    const Rows p = recorded_problem(name);
    const double C = recorded_number({"logistic", name, "C"});
    ReferenceBackend<double> backend;
    const LinearScore score = fit_logistic_regression(backend, p.view(), p.labels, p.weights,
                                                      {.C = C, .tolerance = 1e-12})
                                  .folded();
    std::vector<double> probability;
    for (Index i = 0; i < p.n; ++i) {
      double z = score.bias;
      for (Index j = 0; j < p.d; ++j)
        z += score.weights[static_cast<std::size_t>(j)] * p.view()(i, j);
      probability.push_back(1 / (1 + std::exp(-z)));
    }
    CHECK(all_close(probability, recorded({"logistic", name, "probability"}), 1e-6, 1e-9));
  }
}

TEST_CASE("the reported gradient is the gradient") {
  for (const double noise : {1.0, 0.0}) {
    Rows p = random_problem(700, 9, 3, noise);
    for (const bool weighted : {false, true}) {
      p.weights = weighted ? normal_values<double>(p.n, 8) : std::vector<double>{};
      for (double& w : p.weights) w *= w;
      EigenBackend<double> backend;
      const LogisticFit fit = fit_logistic_regression(backend, p.view(), p.labels, p.weights);
      CHECK(fit.report.converged());
      CHECK(fit.report.gradient_norm <= 1e-8);
      const double actual = gradient_by_definition(p, fit, 1);
      CHECK(all_close(std::vector{actual}, std::vector{fit.report.gradient_norm}, 1e-3, 1e-13));
    }
  }
}

TEST_CASE("float inputs, a sampled curvature and a width beyond curvature reach the same minimum") {
  const Rows p = random_problem(3000, 20, 4);
  const std::vector<float> narrow = p.narrow();
  Rows rounded = p;
  rounded.x.assign(narrow.begin(), narrow.end());
  EigenBackend<float> backend;
  EigenBackend<double> wide;
  const LogisticOptions tight{.tolerance = 1e-11};
  const LogisticFit exact = fit_logistic_regression(wide, rounded.view(), p.labels, {}, tight);
  const auto check = [&](const LogisticOptions& options) {
    const LogisticFit fit =
        fit_logistic_regression(backend, view_of(narrow, p.d), p.labels, {}, options);
    CHECK(fit.report.converged());
    CHECK(all_close(fit.coefficients, exact.coefficients, 0, 1e-11 * 3000 * 2));
    CHECK(all_close(std::vector{fit.report.objective}, std::vector{exact.report.objective}, 1e-12,
                    0));
    return fit.report.iterations;
  };
  const Index all_rows_steps = check({.tolerance = 1e-11, .curvature_rows = 1e9});
  const Index sampled_steps = check({.tolerance = 1e-11, .curvature_rows = 4});
  const Index plain_steps =
      check({.tolerance = 1e-11, .max_iterations = 5000, .largest_curvature = 8});
  CHECK(all_rows_steps < sampled_steps);
  CHECK(sampled_steps < plain_steps);
}

TEST_CASE("the same bits for any number of threads, and where memory must be copied") {
  const Rows p = random_problem(5000, 17, 5);
  const std::vector<float> narrow = p.narrow();
  EigenBackend<float> serial;
  const LogisticFit alone = fit_logistic_regression(serial, view_of(narrow, p.d), p.labels);
  for (const Index threads : {2, 3}) {
    ThreadPool pool(threads);
    EigenBackend<float> parallel{ExecutorRef(pool)};
    const LogisticFit fit = fit_logistic_regression(parallel, view_of(narrow, p.d), p.labels);
    CHECK(fit.coefficients == alone.coefficients);
    CHECK(fit.intercept == alone.intercept);
    CHECK(fit.report.objective == alone.report.objective);
  }
  ReferenceBackend<double> near;
  FarBackend<double> far;
  const LogisticFit here = fit_logistic_regression(near, p.view(), p.labels);
  const LogisticFit there = fit_logistic_regression(far, p.view(), p.labels);
  CHECK(there.coefficients == here.coefficients);
  CHECK(far.copies_to_host > 0);
}

TEST_CASE("a planted direction is found") {
  const Index n = 4000;
  const Index d = 24;
  const std::vector<double> x = normal_values<double>(n * d, 21);
  const std::vector<double> direction = normal_values<double>(d, 22);
  RandomStream noise(23);
  std::vector<std::uint8_t> labels;
  for (Index i = 0; i < n; ++i) {
    double z = 0;
    for (Index j = 0; j < d; ++j) {
      z += x[static_cast<std::size_t>(i * d + j)] * direction[static_cast<std::size_t>(j)];
    }
    labels.push_back(noise.uniform() < 1 / (1 + std::exp(-z)) ? 1 : 0);
  }
  EigenBackend<double> backend;
  const LogisticFit fit = fit_logistic_regression(backend, view_of(x, d), labels);
  CHECK(cosine(fit.folded().weights, direction) > 0.99);
}

TEST_CASE("labels of one class give a constant fit that says so") {
  const Rows p = random_problem(50, 4, 6);
  ReferenceBackend<double> backend;
  const std::vector<std::uint8_t> ones(50, 1);
  const std::vector<std::uint8_t> zeros(50, 0);
  const LogisticFit high = fit_logistic_regression(backend, p.view(), ones);
  const LogisticFit low = fit_logistic_regression(backend, p.view(), zeros);
  CHECK(high.report.status == FitStatus::one_class);
  CHECK_FALSE(high.report.converged());
  CHECK(high.coefficients == std::vector<double>(4, 0.0));
  CHECK(high.intercept == std::log(50.5 / 0.5));
  CHECK(low.intercept == -high.intercept);
  CHECK(high.report.positives == 1);
  // A class without weight is no class; without any weight the labels decide.
  std::vector<double> weights(50, 0.0);
  CHECK(fit_logistic_regression(backend, p.view(), p.labels, weights).report.status ==
        FitStatus::one_class);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = p.labels[i];
  CHECK(fit_logistic_regression(backend, p.view(), p.labels, weights).report.status ==
        FitStatus::one_class);
}

TEST_CASE("constant features are reported and get no say") {
  Rows p = random_problem(200, 5, 7);
  for (Index i = 0; i < p.n; ++i) p.x[static_cast<std::size_t>(i * p.d + 2)] = 0.1;
  ReferenceBackend<double> backend;
  const LogisticFit fit = fit_logistic_regression(backend, p.view(), p.labels);
  CHECK(fit.scaling.constant_features == std::vector<Index>{2});
  CHECK(fit.scaling.scale[2] == 1);
  CHECK(std::abs(fit.coefficients[2]) < 1e-12);
  CHECK(fit.report.converged());
}

TEST_CASE("too few steps are reported, not thrown") {
  const Rows p = random_problem(300, 8, 9);
  ReferenceBackend<double> backend;
  const LogisticFit fit = fit_logistic_regression(backend, p.view(), p.labels, {},
                                                  {.tolerance = 1e-14, .max_iterations = 1});
  CHECK(fit.report.status == FitStatus::iteration_limit);
  CHECK(fit.report.iterations == 1);
  CHECK(fit.report.gradient_norm > 1e-14);
}

TEST_CASE("weights that count rows are rows repeated") {
  Rows p = random_problem(120, 6, 10);
  Rows repeated{0, p.d, {}, {}, {}};
  RandomStream stream(2);
  for (std::size_t i = 0; i < 120; ++i) {
    const std::uint64_t times = stream.below(4);
    p.weights.push_back(static_cast<double>(times));
    for (std::uint64_t k = 0; k < times; ++k) {
      const auto row = p.x.begin() + static_cast<std::ptrdiff_t>(i) * p.d;
      repeated.x.insert(repeated.x.end(), row, row + p.d);
      repeated.labels.push_back(p.labels[i]);
      ++repeated.n;
    }
  }
  // Standardisation does not see the weights; without it both problems are the same.
  ReferenceBackend<double> backend;
  const LogisticOptions options{.standardise = false, .tolerance = 1e-12};
  const LogisticFit weighted =
      fit_logistic_regression(backend, p.view(), p.labels, p.weights, options);
  const LogisticFit rows =
      fit_logistic_regression(backend, repeated.view(), repeated.labels, {}, options);
  CHECK(all_close(weighted.coefficients, rows.coefficients, 0, 1e-12 * 400 * 2));
}

TEST_CASE("bad input is refused by name") {
  const Rows p = random_problem(20, 3, 12);
  ReferenceBackend<double> backend;
  const auto fit = [&](const Rows& q, std::vector<std::uint8_t> labels, std::vector<double> weights,
                       double C = 1) {
    return error_id([&] { fit_logistic_regression(backend, q.view(), labels, weights, {.C = C}); });
  };
  CHECK(fit(p, p.labels, {}) == "");
  CHECK(fit(p, {1, 0}, {}) == "stats/length-mismatch");
  CHECK(fit(p, std::vector<std::uint8_t>(20, 2), {}) == "stats/label");
  CHECK(fit(p, p.labels, {1.0}) == "stats/length-mismatch");
  CHECK(fit(p, p.labels, std::vector<double>(20, -1.0)) == "gate/weights");
  CHECK(fit(p, p.labels, std::vector<double>(20, std::nan(""))) == "gate/weights");
  CHECK(fit(p, p.labels, {}, 0) == "gate/regularisation");
  CHECK(fit(p, p.labels, {}, std::nan("")) == "gate/regularisation");
  CHECK(fit(Rows{0, 3, {}, {}, {}}, {}, {}) == "gate/features");
  Rows broken = p;
  broken.x[7] = std::nan("");
  CHECK(fit(broken, p.labels, {}) == "gate/features");
  broken.x[7] = std::numeric_limits<double>::infinity();
  CHECK(fit(broken, p.labels, {}) == "gate/features");
}

TEST_CASE("a systematic sample estimates sums, with each row as likely as it is important") {
  RandomStream stream(31);
  std::vector<double> importance;
  double total = 0;
  for (int i = 0; i < 4000; ++i) {
    importance.push_back(stream.uniform() < 0.01 ? 50 * stream.uniform() : stream.uniform());
    total += importance.back();
  }
  const RowSample sample = systematic_sample(importance, 500);
  double estimate = 0;
  for (const double weight : sample.weights) estimate += weight;
  CHECK(std::abs(estimate / total - 1) < 0.02);
  double expected = 0;
  for (const double value : importance) expected += std::min(1.0, 500 * value / total);
  CHECK(std::abs(static_cast<double>(sample.rows.size()) - expected) <= 1);
  CHECK(std::is_sorted(sample.rows.begin(), sample.rows.end()));
  // Rows that are certain to be taken all are.
  for (std::size_t i = 0; i < importance.size(); ++i) {
    if (500 * importance[i] < total) continue;
    CHECK(std::binary_search(sample.rows.begin(), sample.rows.end(), static_cast<Index>(i)));
  }
  const std::vector<double> all_zero(10, 0.0);
  CHECK(systematic_sample(all_zero, 5).rows.empty());
}
