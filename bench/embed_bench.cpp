// What a host program's buffers cost beside the library's own, at 256 tokens × 768 with a hidden
// width of 3,072: a map, and a gated MLP that routes half of the rows. The two are run in turn, so
// that load which comes and goes meets both. Counter: percent by which the foreign path is slower.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <type_traits>
#include <vector>

#include "wanamaker/backend/blas.hpp"
#include "wanamaker/core/random.hpp"
#include "wanamaker/embed.hpp"

namespace {

using namespace wanamaker;
using B = BlasBackend<float>;

constexpr Index tokens = 256, width = 768, hidden = 3072;

std::vector<float> normal_numbers(std::uint64_t seed, Index count, double scale) {
  RandomStream random(seed);
  std::vector<float> values;
  for (Index i = 0; i < count; ++i) values.push_back(static_cast<float>(scale * random.normal()));
  return values;
}

Linear<B> random_linear(B& backend, std::uint64_t seed, Index inputs, Index outputs) {
  const auto weight = normal_numbers(seed, inputs * outputs, 0.03);
  const auto bias = normal_numbers(seed + 100, outputs, 0.03);
  return {matrix_from_host<float>(backend, weight.data(), inputs, outputs), WeightLayout::in_out,
          matrix_from_host<float>(backend, bias.data(), 1, outputs)};
}

using Map = AffineMlp<B>;
using Gated = GatedMlp<LinearGate<B, IdentityLink>, Map, DenseMlp<B, GeluTanh>>;

template <class Policy>
Policy random_policy(B& backend) {
  if constexpr (std::is_same_v<Policy, Map>) {
    return Map(random_linear(backend, 1, width, width));
  } else {
    const auto w = normal_numbers(4, width, 1);
    return Gated::hard(
        {backend, {{w.begin(), w.end()}, 0}}, random_policy<Map>(backend),
        {random_linear(backend, 2, width, hidden), random_linear(backend, 3, hidden, width)}, 0);
  }
}

// Of processor time, which other load disturbs less; one thread computes.
double seconds_of(auto&& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

// T: the foreign elements. Float rows are 832 apart, not 768: nobody else's buffer is ours.
template <class Policy, class T>
void foreign_beside_own(benchmark::State& state) {
  B backend;
  Workspace<B> workspace(backend);
  const Policy policy = random_policy<Policy>(backend);
  const std::vector<float> own_x = normal_numbers(9, tokens * width, 1);
  std::vector<float> own_y(own_x.size());
  constexpr Index stride = width + 64;
  std::vector<T> x(static_cast<std::size_t>(tokens * stride)), y(x.size());
  for (Index i = 0; i < tokens * width; ++i) {
    x[static_cast<std::size_t>(i / width * stride + i % width)] =
        T(own_x[static_cast<std::size_t>(i)]);
  }
  const auto own = [&] {
    policy.forward(backend, ConstMatrixView<float>(own_x.data(), tokens, width), RowContext<B>{},
                   MatrixView<float>(own_y.data(), tokens, width), workspace);
  };
  const auto foreign = [&] {
    run_foreign(backend, policy, ConstMatrixView<T>(x.data(), tokens, width, stride),
                MatrixView<T>(y.data(), tokens, width, stride), workspace);
  };
  std::vector<double> ratios, times;
  for (auto _ : state) {
    const bool own_first = ratios.size() % 2 == 0;
    double before = own_first ? seconds_of(own) : 0;
    const double theirs = seconds_of(foreign);
    if (!own_first) before = seconds_of(own);
    ratios.push_back(theirs / before);
    times.push_back(before);
  }
  state.counters["slower_percent"] = 100 * (median(ratios) - 1);
  state.counters["own_ms"] = 1e3 * median(times);
}

BENCHMARK_TEMPLATE(foreign_beside_own, Map, float);
BENCHMARK_TEMPLATE(foreign_beside_own, Map, half);
BENCHMARK_TEMPLATE(foreign_beside_own, Gated, float);
BENCHMARK_TEMPLATE(foreign_beside_own, Gated, half);
BENCHMARK_TEMPLATE(foreign_beside_own, Gated, bfloat16);

}  // namespace

BENCHMARK_MAIN();
