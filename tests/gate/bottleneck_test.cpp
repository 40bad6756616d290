// Bottleneck gates: gradients against differences, what a linear gate cannot learn, determinism.
#include <algorithm>
#include <numeric>
#include <vector>

#include "gate/gate_testing.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/gate/bottleneck_training.hpp"
#include "wanamaker/stats/auc.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using Reference = ReferenceBackend<double>;

/// Label 1 where |planted direction·x| is large: no single direction orders these.
struct FoldedData {
  Index d = 6;
  std::vector<double> x = normal_values<double>(1500 * 6, 61);
  std::vector<std::uint8_t> labels;

  FoldedData() {
    for (std::size_t i = 0; i < 1500; ++i) {
      const double z = x[i * 6] - 0.5 * x[i * 6 + 3];
      labels.push_back(std::abs(z) > 0.75 ? 1 : 0);
    }
  }
  ConstMatrixView<double> view() const { return view_of(x, d); }
};

double auc_of(const std::vector<double>& scores, const std::vector<std::uint8_t>& labels) {
  return area_under_roc(scores, labels)->auc;
}

}  // namespace

TEST_CASE("the gradient is that of the objective") {
  const FoldedData data;
  const ConstMatrixView<double> x = data.view().middle_rows(0, 90);
  const FeatureScaling scaling = fit_feature_scaling(x);
  const StandardisedRows<double> rows(x, scaling, {});
  std::vector<double> weights = normal_values<double>(90, 62);
  for (double& w : weights) w *= w;
  const detail::BottleneckLayout layout{3, 6};
  const detail::BottleneckObjective<double> objective{
      &rows, {data.labels.data(), weights.data()}, 0.5, layout};
  const std::vector<double> point = normal_values<double>(3 * 6 + 3 + 3 + 1, 63);
  REQUIRE(layout.size() == point.size());
  std::vector<double> gradient(point.size());
  std::vector<double> unused(point.size());
  objective(point, gradient);
  for (std::size_t k = 0; k < point.size(); ++k) {
    std::vector<double> moved = point;
    const double step = 1e-6;
    moved[k] = point[k] + step;
    const double above = objective(moved, unused);
    moved[k] = point[k] - step;
    const double below = objective(moved, unused);
    CAPTURE(k);
    // Truncation step²·f''' and rounding eps·f/step, f about 100.
    CHECK(
        all_close(std::vector{gradient[k]}, std::vector{(above - below) / (2 * step)}, 1e-6, 1e-7));
  }
}

TEST_CASE("the running gate is the trained function") {
  Reference backend;
  const BottleneckScore score{{{{1, -2}, 0.5}, {{-3, 0}, 1}}, {2, -1}, 0.25};
  const BottleneckGate<Reference> gate(backend, score);
  static_assert(check_gate<BottleneckGate<Reference>, Reference>());
  const std::vector<double> x{1, 0, 0, 1, -1, -1};
  const auto expected = [&](double a, double b) {
    const double h0 = std::max(0.0, a - 2 * b + 0.5);
    const double h1 = std::max(0.0, -3 * a + 1);
    return 1 / (1 + std::exp(-(2 * h0 - h1 + 0.25)));
  };
  CHECK(all_close(scores_of(gate, backend, view_of(x, 2)),
                  std::vector{expected(1, 0), expected(0, 1), expected(-1, -1)}, 1e-15, 0));
  CHECK(gate.cost(1).parameters == 2 * 2 + 2 * 2 + 1);
  CHECK(gate.cost(3).flops == 2 * 3 * (2 * 2 + 2));
  CHECK(error_id([&] { scores_of(gate, backend, view_of(x, 3)); }) == "shape/matrix");
}

TEST_CASE("three units learn what no direction can") {
  const FoldedData data;
  EigenBackend<double> backend;
  const auto linear = fit_logistic_gate(backend, data.view(), data.labels);
  CHECK(auc_of(scores_of(linear.gate, backend, data.view()), data.labels) < 0.6);
  const auto fitted = fit_bottleneck_gate(backend, data.view(), data.labels, {},
                                          {.units = 3, .max_iterations = 200});
  const std::vector<double> fresh = normal_values<double>(1000 * 6, 64);
  std::vector<std::uint8_t> labels;
  for (std::size_t i = 0; i < 1000; ++i) {
    labels.push_back(std::abs(fresh[i * 6] - 0.5 * fresh[i * 6 + 3]) > 0.75 ? 1 : 0);
  }
  CHECK(auc_of(scores_of(fitted.gate, backend, view_of(fresh, 6)), labels) > 0.98);
}

TEST_CASE("training starts near the linear gate and only improves") {
  const FoldedData data;
  EigenBackend<double> backend;
  const auto linear = fit_logistic_gate(backend, data.view(), data.labels);
  for (const Index units : {1, 3, 6}) {
    const auto fitted =
        fit_bottleneck_gate(backend, data.view(), data.labels, {}, {.units = units});
    // One unit holds the linear gate up to the weight of out and where the unit is inactive.
    CHECK(fitted.report.objective < linear.report.objective + 1);
    CHECK(fitted.gate.cost(1).parameters == static_cast<double>(units * 6 + 2 * units + 1));
    CHECK(fitted.report.iterations <= 20);
  }
}

TEST_CASE("the same gate for a seed and any number of threads, another for another seed") {
  const FoldedData data;
  const std::vector<float> narrow(data.x.begin(), data.x.end());
  EigenBackend<float> serial;
  ThreadPool pool(3);
  EigenBackend<float> parallel{ExecutorRef(pool)};
  const auto weights_of = [&](EigenBackend<float>& backend, std::uint64_t seed) {
    return fit_bottleneck_gate(backend, view_of(narrow, 6), data.labels, {},
                               {.units = 3, .seed = seed, .max_iterations = 15})
        .gate.bottleneck_score()
        .hidden[1]
        .weights;
  };
  CHECK(weights_of(serial, 4) == weights_of(parallel, 4));
  CHECK(weights_of(serial, 4) != weights_of(serial, 5));
}

TEST_CASE("labels of one class give a constant gate that says so") {
  const FoldedData data;
  Reference backend;
  const std::vector<std::uint8_t> ones(20, 1);
  const auto fitted =
      fit_bottleneck_gate(backend, data.view().middle_rows(0, 20), ones, {}, {.units = 3});
  CHECK(fitted.report.status == FitStatus::one_class);
  for (const double g : scores_of(fitted.gate, backend, data.view().middle_rows(0, 20))) {
    CHECK(g > 0.9);
    CHECK(g < 1);
  }
}

TEST_CASE("unusable sizes are refused by name") {
  const FoldedData data;
  Reference backend;
  for (const Index units : {0, 17}) {
    CHECK(error_id([&] {
            fit_bottleneck_gate(backend, data.view(), data.labels, {}, {.units = units});
          }) == "gate/bottleneck-units");
  }
}
