// Ridge surrogates of the published procedure's size: 10,000 rows, 768 → 768, λ = 0.01, from float
// activations in memory to a map in double. bench/peers.py sets it beside NumPy's SVD.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "mixed_rows.hpp"
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/core/executor.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/surrogate/lambda_selection.hpp"
#include "wanamaker/surrogate/low_rank.hpp"
#include "wanamaker/surrogate/prediction_distance.hpp"
#include "wanamaker/surrogate/ridge.hpp"

namespace {

using namespace wanamaker;
using B = EigenBackend<float>;

constexpr Index rows = 10000;
constexpr Index width = 768;
constexpr RidgeOptions published{0.01, LambdaScale::absolute};

/// y_ij = max(x_ij, 0) − 0.5·x_i,j−1 + u/10, u uniform in ±½.
struct Data {
  wanamaker_bench::MixedRows inputs{rows, width, width};
  std::vector<float> y{};

  Data() {
    y.reserve(inputs.x.size());
    for (std::size_t i = 0; i < inputs.x.size(); ++i) {
      const float before = i % width == 0 ? 0.0F : inputs.x[i - 1];
      y.push_back(std::max(inputs.x[i], 0.0F) - 0.5F * before +
                  static_cast<float>(0.1 * inputs.draws[i]));
    }
  }
  ConstMatrixView<float> outputs() const { return {y.data(), rows, width}; }
};

const Data& data() {
  static const Data values;
  return values;
}

CoMoments collect(B& backend, GramPrecision precision) {
  CoMoments moments(width, width, precision);
  Workspace<B> workspace(backend);
  moments.add<B>(backend, data().inputs.view(), data().outputs(), workspace);
  return moments;
}

/// Co-moments and fit; `shift` is how far predictions lie from those of exact products.
void ridge(benchmark::State& state) {
  ThreadPool pool(state.range(0));
  B backend{ExecutorRef(pool)};
  const auto precision = state.range(1) != 0 ? GramPrecision::blocked : GramPrecision::exact;
  const RidgeSurrogate exact =
      RidgeSurrogate::fit(collect(backend, GramPrecision::exact), published, ExecutorRef(pool));
  AffineMap map;
  for (auto _ : state) {
    map = RidgeSurrogate::fit(collect(backend, precision), published, ExecutorRef(pool)).map();
  }
  const CoMoments moments = collect(backend, GramPrecision::exact);
  state.counters["r2"] = explained(map, moments).r2;
  state.counters["shift"] = prediction_distance(map, exact.map(), moments);
}

void co_moments(benchmark::State& state) {
  ThreadPool pool(state.range(0));
  B backend{ExecutorRef(pool)};
  const auto precision = state.range(1) != 0 ? GramPrecision::blocked : GramPrecision::exact;
  for (auto _ : state) benchmark::DoNotOptimize(collect(backend, precision));
}

/// What follows from co-moments that are there.
template <class F>
void from_moments(benchmark::State& state, F f) {
  ThreadPool pool(state.range(0));
  B backend{ExecutorRef(pool)};
  const CoMoments moments = collect(backend, GramPrecision::exact);
  for (auto _ : state) f(moments, ExecutorRef(pool));
}

void solve(benchmark::State& state) {
  from_moments(state, [](const CoMoments& moments, const ExecutorRef& executor) {
    benchmark::DoNotOptimize(RidgeSurrogate::fit(moments, published, executor));
  });
}

void cross_validation(benchmark::State& state) {
  from_moments(state, [](const CoMoments& moments, const ExecutorRef& executor) {
    benchmark::DoNotOptimize(GeneralisedCrossValidation(moments, executor).score(0.01));
  });
}

void reduced_rank(benchmark::State& state) {
  from_moments(state, [](const CoMoments& moments, const ExecutorRef& executor) {
    const RidgeSurrogate full = RidgeSurrogate::fit(moments, published, executor);
    benchmark::DoNotOptimize(ReducedRankRegression(moments, full, {}, executor).of_rank(32));
  });
}

BENCHMARK(ridge)
    ->ArgNames({"threads", "blocked"})
    ->ArgsProduct({{1, 2}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(co_moments)
    ->ArgNames({"threads", "blocked"})
    ->ArgsProduct({{1, 2}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
void by_threads(benchmark::internal::Benchmark* bench) {
  bench->ArgName("threads")->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
}
BENCHMARK(solve)->Apply(by_threads);
BENCHMARK(cross_validation)->Apply(by_threads);
BENCHMARK(reduced_rank)->Apply(by_threads);

}  // namespace

BENCHMARK_MAIN();
