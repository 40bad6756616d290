// Fitting gates to 25,000 positions, the published procedure's number, of a width-768 layer.
// bench/peers.py sets it beside scikit-learn on the same numbers.
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "mixed_rows.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/core/executor.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/gate/bottleneck_training.hpp"
#include "wanamaker/gate/delta_regression.hpp"
#include "wanamaker/gate/gated_mlp.hpp"
#include "wanamaker/gate/pca_gate.hpp"
#include "wanamaker/gate/threshold.hpp"

namespace {

using namespace wanamaker;
using B = EigenBackend<float>;

constexpr Index rows = 25000;
constexpr Index width = 768;

/// δ from one direction and more noise.
struct Data {
  wanamaker_bench::MixedRows inputs{rows, width, 1};
  std::vector<double> delta{};
  DeltaLabels labels{};

  Data() {
    for (Index i = 0; i < rows; ++i) {
      double z = 0;
      for (Index j = 0; j < width; ++j) {
        z += (j % 3 == 0 ? 1 : -0.5) * static_cast<double>(view()(i, j));
      }
      delta.push_back(-0.02 * z + 0.2 * inputs.draws[static_cast<std::size_t>(i)]);
    }
    labels = published_labels(delta);
  }
  ConstMatrixView<float> view() const { return inputs.view(); }
};

const Data& data() {
  static const Data values;
  return values;
}

/// To a gradient of 10^−tolerance: 8 is the fit's own, 5 gives the objective of scikit-learn's
/// default.
void logistic(benchmark::State& state) {
  ThreadPool pool(state.range(0));
  B backend{ExecutorRef(pool)};
  const LogisticOptions options{.tolerance = std::pow(10.0, -static_cast<double>(state.range(1)))};
  FitReport report;
  const auto view = data().view();
  for (auto _ : state) {
    report = fit_logistic_gate(backend, view, data().labels.labels, {}, options).report;
  }
  state.counters["objective"] = report.objective;
  state.counters["steps"] = static_cast<double>(report.iterations);
}

void pca(benchmark::State& state) {
  ThreadPool pool(state.range(0));
  B backend{ExecutorRef(pool)};
  const std::vector<Index> counts{2, 6, 12};
  const auto view = data().view();
  for (auto _ : state) {
    const CoMoments moments = gate_moments(backend, view, data().delta);
    benchmark::DoNotOptimize(fit_pca_gates(backend, view, moments, data().labels.labels, counts));
  }
}

void delta_regression(benchmark::State& state) {
  ThreadPool pool(state.range(0));
  B backend{ExecutorRef(pool)};
  const auto view = data().view();
  for (auto _ : state) {
    const CoMoments moments = gate_moments(backend, view, data().delta);
    benchmark::DoNotOptimize(fit_delta_regression(backend, moments));
  }
}

void bottleneck(benchmark::State& state) {
  ThreadPool pool(state.range(0));
  B backend{ExecutorRef(pool)};
  const BottleneckOptions options{.units = state.range(1)};
  const auto view = data().view();
  for (auto _ : state) {
    benchmark::DoNotOptimize(fit_bottleneck_gate(backend, view, data().labels.labels, {}, options));
  }
}

/// A gated layer of GPT-2's shape on 4,096 rows, with this share of them routed (per cent).
void gated_layer(benchmark::State& state) {
  constexpr Index batch = 4096;
  B backend;
  const auto layer = [&](Index inputs, Index outputs) {
    return Linear<B>(make_matrix(backend, inputs, outputs), WeightLayout::in_out,
                     make_matrix(backend, 1, outputs));
  };
  using Mlp = DenseMlp<B, GeluTanh>;
  const ConstMatrixView<float> x = data().view().middle_rows(0, batch);
  const LogisticGate<B> direction(backend, {std::vector<double>(width, 1.0), 0});
  Workspace<B> workspace(backend);
  std::vector<double> scores(batch);
  direction.score(backend, x, {}, {scores.data(), batch}, workspace);
  const double share = 0.01 * static_cast<double>(state.range(0));
  const auto gated = GatedMlp<LogisticGate<B>, AffineMlp<B>, Mlp>::hard(
      {backend, direction.linear_score()}, AffineMlp<B>(layer(width, width)),
      Mlp(layer(width, 4 * width), layer(4 * width, width)),
      threshold_for_fraction(scores, share).threshold);
  matrix_t<B> y = make_matrix(backend, batch, width);
  for (auto _ : state) gated.forward(backend, x, {}, y.view(), workspace);
  state.counters["routed"] = gated.fraction_linear();
}

BENCHMARK(logistic)
    ->ArgNames({"threads", "tolerance"})
    ->ArgsProduct({{1, 2}, {8, 5}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(pca)->ArgName("threads")->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(delta_regression)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(bottleneck)
    ->ArgNames({"threads", "units"})
    ->ArgsProduct({{1, 2}, {1, 3, 6}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(gated_layer)->ArgName("percent")->DenseRange(0, 100, 25)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
