// AdamW, clipping and schedules: a run of PyTorch's, values by hand, threads, and refusals.
#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "train/train_testing.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/backend/reference.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/io/json.hpp"
#include "wanamaker/train/adamw.hpp"
#include "wanamaker/train/gradient_norm.hpp"
#include "wanamaker/train/schedule.hpp"

using namespace wanamaker;
using namespace wanamaker_test;

namespace {

using Reference = ReferenceBackend<double>;

/// Logistic regression of tests/reference/optimiser.py.
struct LogisticProblem {
  static constexpr int samples = 40, inputs = 6, classes = 3;

  static double x(int i, int j) { return std::sin(1.7 * i + 0.9 * j * j); }
  static int y(int i) { return (7 * i + i * i / 5) % classes; }

  template <class B>
  static OwnedParameters<B> parameters(B& backend) {
    std::vector<double> weight, bias;
    for (int i = 0; i < inputs; ++i) {
      for (int j = 0; j < classes; ++j) weight.push_back(0.3 * std::cos(i + 2 * j));
    }
    for (int j = 0; j < classes; ++j) bias.push_back(0.1 * j);
    OwnedParameters<B> owned(backend);
    owned.add("weight", true, inputs, classes, weight);
    owned.add("bias", false, 1, classes, bias);
    return owned;
  }

  /// Adds gradients, returns the mean loss.
  template <class B>
  static double loss_and_gradients(const ParameterList<B>& list) {
    using T = scalar_t<B>;
    double loss = 0;
    for (int i = 0; i < samples; ++i) {
      double e[classes], sum = 0;
      for (int c = 0; c < classes; ++c) {
        double logit = static_cast<double>(list[1].value(0, c));
        for (int j = 0; j < inputs; ++j)
          logit += x(i, j) * static_cast<double>(list[0].value(j, c));
        sum += e[c] = std::exp(logit);
      }
      loss -= std::log(e[y(i)] / sum) / samples;
      for (int c = 0; c < classes; ++c) {
        const double slope = (e[c] / sum - (c == y(i) ? 1.0 : 0.0)) / samples;
        for (int j = 0; j < inputs; ++j) list[0].gradient(j, c) += static_cast<T>(slope * x(i, j));
        list[1].gradient(0, c) += static_cast<T>(slope);
      }
    }
    return loss;
  }
};

struct RecordedRun {
  std::vector<double> losses{}, norms{}, rates{};
  std::map<int, std::vector<double>> weights{};
};

template <class B>
RecordedRun run_problem(B& backend, const AdamW& rule, const LearningRateSchedule& schedule,
                        double largest_norm, int steps) {
  OwnedParameters<B> owned = LogisticProblem::parameters(backend);
  AdamW::State<B> state(backend, owned.list);
  Workspace<B> workspace(backend);
  RecordedRun run;
  for (int step = 0; step < steps; ++step) {
    clear_gradients(backend, owned.list);
    run.losses.push_back(LogisticProblem::loss_and_gradients(owned.list));
    run.norms.push_back(gradient_norms(backend, owned.list, workspace).total);
    run.rates.push_back(schedule.rate(step));
    state.update(backend, owned.list, rule, run.rates.back(),
                 clipping_factor(run.norms.back(), largest_norm));
    run.weights[step + 1] = owned.values();
  }
  return run;
}

/// Values and gradients of the same shape, drawn; first a matrix of odd shape, then a vector.
template <class B>
std::vector<double> values_after_steps(B& backend) {
  OwnedParameters<B> owned(backend);
  RandomStream random(3);
  const auto draw = [&random](std::size_t n) {
    std::vector<double> values(n);
    for (double& v : values) v = random.normal();
    return values;
  };
  owned.add("a", true, 67, 35, draw(67 * 35));
  owned.add("b", false, 1, 131, draw(131));
  AdamW::State<B> state(backend, owned.list);
  Workspace<B> workspace(backend);
  for (int step = 0; step < 3; ++step) {
    for (auto& p : owned.list) {
      for (Index i = 0; i < p.gradient.rows; ++i) {
        for (Index j = 0; j < p.gradient.cols; ++j) {
          p.gradient(i, j) = static_cast<scalar_t<B>>(random.normal());
        }
      }
    }
    const double norm = gradient_norms(backend, owned.list, workspace).total;
    state.update(backend, owned.list, {}, 0.01, clipping_factor(norm, 1.0));
  }
  return owned.values();
}

}  // namespace

TEST_CASE("fifty steps with clipping and a cosine are PyTorch's") {
  const Json record = parse_json_file(std::filesystem::path(WANAMAKER_SOURCE_DIR) /
                                      "tests/reference/optimiser.json");
  const Json& r = record.at("rule");
  const AdamW rule{.beta1 = r.at("beta1").get<double>(),
                   .beta2 = r.at("beta2").get<double>(),
                   .epsilon = r.at("epsilon").get<double>(),
                   .decay = r.at("decay").get<double>()};
  const Json& s = record.at("schedule");
  const LearningRateSchedule schedule{.peak = s.at("peak").get<double>(),
                                      .warm_up = s.at("warm_up").get<Index>(),
                                      .steps = s.at("steps").get<Index>(),
                                      .floor = s.at("floor").get<double>()};
  Reference backend;
  const RecordedRun run =
      run_problem(backend, rule, schedule, record.at("largest_norm").get<double>(), 50);
  const auto values = [&](const char* key) { return record.at(key).get<std::vector<double>>(); };
  CHECK(all_close(run.losses, values("losses"), 1e-12, 0));
  CHECK(all_close(run.norms, values("norms"), 1e-12, 0));
  CHECK(all_close(run.rates, values("rates"), 1e-14, 0));
  for (const auto& [step, weights] : record.at("weights").items()) {
    CHECK(all_close(run.weights.at(std::stoi(step)), weights.get<std::vector<double>>(), 1e-12,
                    1e-14));
  }
}

TEST_CASE("one step by hand: the first goes by the rate against the sign of the gradient") {
  Reference backend;
  OwnedParameters<Reference> owned(backend);
  owned.add("matrix", true, 1, 2, {1.0, -2.0});
  owned.add("vector", false, 1, 2, {1.0, -2.0});
  owned.add("still", true, 1, 1, {5.0}, true);
  for (std::size_t p = 0; p < 2; ++p) {
    owned.list[p].gradient(0, 0) = 3.0;
    owned.list[p].gradient(0, 1) = -0.5;
  }
  AdamW::State<Reference> state(backend, owned.list);
  state.update(backend, owned.list, {.epsilon = 1e-30, .decay = 0.5}, 0.1);
  // (1 − 0.1 · 0.5) · w − 0.1 · sign(g); without decay the vector keeps all of w.
  CHECK(all_close(owned.values(), std::vector<double>{0.85, -1.8, 0.9, -1.9, 5.0}, 1e-15, 0));
  CHECK(state.step() == 1);
}

TEST_CASE("norms are those of all gradients together, scaled, and clipping goes by them") {
  Reference backend;
  OwnedParameters<Reference> owned(backend);
  owned.add("a", true, 2, 2, {0, 0, 0, 0});
  owned.add("b", false, 1, 1, {0});
  owned.list[0].gradient(0, 0) = 2;
  owned.list[0].gradient(1, 1) = -4;
  owned.list[1].gradient(0, 0) = 4;
  Workspace<Reference> workspace(backend);
  const GradientNorms norms = gradient_norms(backend, owned.list, workspace, 0.5);
  CHECK(norms.total == 3.0);
  CHECK(all_close(norms.of_parameters, std::vector<double>{std::sqrt(5.0), 2.0}, 1e-15, 0));
  CHECK(clipping_factor(3.0, 0) == 1.0);
  CHECK(clipping_factor(3.0, 3.5) == 1.0);
  CHECK(all_close(std::vector{clipping_factor(3.0, 1.5)}, std::vector{1.5 / 3.000001}, 1e-15, 0));
  clear_gradients(backend, owned.list);
  CHECK(gradient_norms(backend, owned.list, workspace).total == 0.0);
}

TEST_CASE("steps do not depend on threads, and in float follow those in double") {
  using Float = EigenBackend<float>;
  Float alone;
  const std::vector<double> serial = values_after_steps(alone);
  ThreadPool pool(3);
  Float three{ExecutorRef(pool)};
  CHECK(values_after_steps(three) == serial);
  Reference reference;
  const std::vector<double> exact = values_after_steps(reference);
  // Each of three steps moves a value by at most about 3 · 0.01, with a dozen roundings.
  CHECK(all_close(serial, exact, 4e-7, 4e-7));
}

TEST_CASE("schedules by hand") {
  const LearningRateSchedule cosine{.peak = 2.0, .warm_up = 4, .steps = 12, .floor = 0.25};
  const std::vector<double> expected = {0.5, 1.0, 1.5, 2.0, 2.0};
  for (Index step = 0; step < 5; ++step) {
    CHECK(cosine.rate(step) == expected[static_cast<std::size_t>(step)]);
  }
  const auto close = [](double actual, double value) {
    return all_close(std::vector{actual}, std::vector{value}, 1e-15, 0);
  };
  CHECK(close(cosine.rate(8), 2.0 * (0.25 + 0.75 * 0.5)));
  CHECK(close(cosine.rate(6), 2.0 * (0.25 + 0.75 * 0.5 * (1 + std::numbers::sqrt2 / 2))));
  CHECK(cosine.rate(12) == 0.5);
  CHECK(cosine.rate(1000) == 0.5);
  const LearningRateSchedule constant{
      .shape = ScheduleShape::constant, .peak = 3.0, .warm_up = 2, .steps = 0};
  CHECK(constant.rate(0) == 1.5);
  CHECK(constant.rate(1) == 3.0);
  CHECK(constant.rate(99) == 3.0);
}

TEST_CASE("impossible settings and lists of other parameters are refused") {
  CHECK(error_id([] { check_schedule({.peak = -1.0}); }) == "training/schedule");
  CHECK(error_id([] { check_schedule({.warm_up = 20, .steps = 10}); }) == "training/schedule");
  CHECK(error_id([] { check_schedule({.floor = 1.5}); }) == "training/schedule");
  CHECK(error_id([] { check_schedule({}); }) == "");
  CHECK(error_id([] { check_optimiser({.beta2 = 1.0}); }) == "training/optimiser");
  CHECK(error_id([] { check_optimiser({.epsilon = 0.0}); }) == "training/optimiser");
  CHECK(error_id([] { check_optimiser({}); }) == "");
  Reference backend;
  OwnedParameters<Reference> owned(backend), other(backend);
  owned.add("a", true, 2, 3, std::vector<double>(6));
  other.add("a", true, 3, 2, std::vector<double>(6));
  AdamW::State<Reference> state(backend, owned.list);
  CHECK(error_id([&] { state.update(backend, other.list, {}, 0.1); }) ==
        "training/other-parameters");
  CHECK(state.step() == 0);
}
