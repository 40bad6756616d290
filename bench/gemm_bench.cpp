// Rates of the products of a 124M-parameter GPT-2 at 512 tokens, per backend, beside a square
// product as the best rate of this machine. Counter: GFLOP/s.
#include <benchmark/benchmark.h>

#include <array>
#include <utility>

#include "wanamaker/backend/blas.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/core/thread_pool.hpp"

namespace {

using namespace wanamaker;

template <class B>
void product(benchmark::State& state) {
  ThreadPool pool(state.range(3));
  B backend(pool);
  const Index m = state.range(0);
  const Index k = state.range(1);
  const Index n = state.range(2);
  auto a = make_matrix(backend, m, k);
  auto b = make_matrix(backend, k, n);
  auto c = make_matrix(backend, m, n);
  RandomStream random(1);
  for (Index i = 0; i < a.size(); ++i) a.data()[i] = static_cast<float>(random.normal());
  for (Index i = 0; i < b.size(); ++i) b.data()[i] = static_cast<float>(random.normal());
  for (auto _ : state) {
    backend.gemm(plain(a.view()), plain(b.view()), 1.0f, 0.0f, c.view());
    benchmark::DoNotOptimize(c.data());
  }
  state.counters["GFLOP/s"] = benchmark::Counter(
      2e-9 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n),
      benchmark::Counter::kIsIterationInvariantRate);
}

void shapes(benchmark::internal::Benchmark* bench) {
  for (const int threads : {1, 2}) {
    for (const auto& [m, k, n] : {std::array<int, 3>{2048, 2048, 2048},
                                  {512, 768, 2304},
                                  {512, 768, 768},
                                  {512, 768, 3072},
                                  {512, 3072, 768},
                                  {128, 768, 50257}}) {
      bench->Args({m, k, n, threads});
    }
  }
  bench->UseRealTime()->Unit(benchmark::kMillisecond);
}

/// A weight's gradient, xᵀ·dy of 2,048 rows, 1,024 and 256 wide, with `range(0)` floats from row to
/// row of x. 1,024 put a column into a few sets of the cache (backend/row_stride.hpp).
template <class B>
void weight_gradient(benchmark::State& state) {
  B backend;
  const Index rows = 2048, inputs = 1024, outputs = 256;
  auto x = make_matrix(backend, rows, state.range(0));
  auto dy = make_matrix(backend, rows, outputs);
  auto gradient = make_matrix(backend, inputs, outputs);
  RandomStream random(1);
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(random.normal());
  for (Index i = 0; i < dy.size(); ++i) dy.data()[i] = static_cast<float>(random.normal());
  const ConstMatrixView<float> used = std::as_const(x).view().middle_cols(0, inputs);
  for (auto _ : state) {
    backend.gemm(transposed(used), plain(std::as_const(dy).view()), 1.0f, 0.0f, gradient.view());
    benchmark::DoNotOptimize(gradient.data());
  }
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * static_cast<double>(rows * inputs * outputs),
                         benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(weight_gradient<BlasBackend<float>>)
    ->ArgName("stride")
    ->Arg(1024)
    ->Arg(1040)
    ->UseRealTime();

BENCHMARK(product<EigenBackend<float>>)->Apply(shapes);
BENCHMARK(product<BlasBackend<float>>)->Apply(shapes);

}  // namespace

BENCHMARK_MAIN();
