// Rates of the products of a 124M-parameter GPT-2 at 512 tokens, per backend, beside a square
// product as the best rate of this machine. Counter: GFLOP/s.
#include <benchmark/benchmark.h>

#include <array>

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

BENCHMARK(product<EigenBackend<float>>)->Apply(shapes);
BENCHMARK(product<BlasBackend<float>>)->Apply(shapes);

}  // namespace

BENCHMARK_MAIN();
