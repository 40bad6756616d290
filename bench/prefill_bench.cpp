// Prefill with the loss of every token of a 124M-parameter GPT-2 shape with random weights, at 512
// and at 4 × 1,024 tokens: tokens/s, GFLOP/s, its share of the best product rate measured beside
// it, and the most memory beyond the weights.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>

#include "random_weights.hpp"
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/gate/cost_model.hpp"
#include "wanamaker/nn/families.hpp"

namespace {

using namespace wanamaker_bench;
using B = BlasBackend<float>;
using Model = Transformer<B, Gpt2Block<B>>;

Model make_model(B& backend) {
  const ModelConfig c{.name = "gpt2-124m",
                      .vocabulary = 50257,
                      .width = 768,
                      .layers = 12,
                      .heads = 12,
                      .key_heads = 12,
                      .head_width = 64,
                      .hidden = 3072,
                      .positions = 1024,
                      .tied_head = true};
  RandomStream random(1);
  const auto linear = [&](Index inputs, Index outputs) {
    return random_linear(backend, inputs, outputs, random);
  };
  Model::Parts parts{.config = c,
                     .embedding = random_weights(backend, c.vocabulary, c.width, random),
                     .position_table = random_matrix(backend, c.positions, c.width, random),
                     .blocks = {},
                     .final_norm = unit_norm(backend, c.width),
                     .head = {}};
  for (Index l = 0; l < c.layers; ++l) {
    parts.blocks.emplace_back(
        unit_norm(backend, c.width),
        CausalSelfAttention<B, LearnedPositions>(linear(c.width, 3 * c.width),
                                                 linear(c.width, c.width),
                                                 AttentionShape{12, 12, 64, 0.125, 0}, {}),
        unit_norm(backend, c.width),
        DenseMlp<B, GeluTanh>(linear(c.width, c.hidden), linear(c.hidden, c.width)));
  }
  return Model(std::move(parts));
}

double best_rate(B& backend) {
  constexpr Index n = 2048;
  const auto a = make_matrix(backend, n, n);
  auto c = make_matrix(backend, n, n);
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    backend.gemm(plain(a.view()), plain(a.view()), 1.0f, 0.0f, c.view());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, 2e-9 * n * n * n / seconds.count());
  }
  return best;
}

void prefill(benchmark::State& state) {
  ThreadPool pool(2);
  B backend(pool);
  const Model model = make_model(backend);
  const Index sequences = state.range(0);
  const Index length = state.range(1);
  std::vector<TokenId> tokens;
  std::vector<Index> offsets{0};
  RandomStream random(2);
  for (Index s = 0; s < sequences; ++s) {
    for (Index i = 0; i < length; ++i) tokens.push_back(static_cast<TokenId>(random.below(50257)));
    offsets.push_back(static_cast<Index>(tokens.size()));
  }
  Workspace<B> workspace(backend);
  const PackedBatch<B> batch(backend, tokens, offsets);
  const ScoredPositions scored = all_next_tokens(batch);
  auto residual = make_matrix(backend, batch.rows(), 768);
  double seconds = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    model.forward(backend, batch, residual.view(), workspace);
    benchmark::DoNotOptimize(model.token_losses(backend, residual.view(), scored, workspace));
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  const double runs = static_cast<double>(state.iterations());
  const std::vector<Index> lengths(static_cast<std::size_t>(sequences), length);
  const double mlp = 12 * model.block(0).mlp().cost(batch.rows()).flops;
  const double flops =
      model_flops(model.config(), lengths, mlp, static_cast<Index>(scored.rows.size())).total();
  const double rate = 1e-9 * flops * runs / seconds;
  const double best = best_rate(backend);
  state.counters["tokens/s"] = static_cast<double>(batch.rows()) * runs / seconds;
  state.counters["GFLOP/s"] = rate;
  state.counters["best GFLOP/s"] = best;
  state.counters["share"] = rate / best;
  state.counters["MB beyond weights"] = peak_megabytes() - model.parameters() * 4 / 1048576;
}

BENCHMARK(prefill)->Args({1, 512})->Args({4, 1024})->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
