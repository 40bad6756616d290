// Marginal δ on a GPT-2 shape of width 256, 6 layers and 4,096 tokens of vocabulary, 8 × 256 tokens
// in float: a baseline pass (losses of the model as it is), first order for all layers, and exact
// patches of layer 3, together and one whole pass each.
#include <benchmark/benchmark.h>

#include <vector>

#include "random_weights.hpp"
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/residual/marginal_delta.hpp"
#include "wanamaker/train/initialise.hpp"
#include "wanamaker/train/model_shape.hpp"

namespace {

using namespace wanamaker_bench;
using B = BlasBackend<float>;

constexpr Index sequences = 8, length = 256, vocabulary = 4096, width = 256, layers = 6;

/// A model, a batch, and a linear map for every layer.
struct MarginalCase {
  B backend{};
  AnyTransformer<B> model = wanamaker::make_model(backend, model_config({.family = Family::gpt2,
                                                                         .vocabulary = vocabulary,
                                                                         .width = width,
                                                                         .layers = layers,
                                                                         .heads = 4,
                                                                         .positions = length}));
  Workspace<B> workspace{backend};
  RandomStream random{2};
  PackedBatch<B> batch = random_batch();
  ScoredPositions scored = all_next_tokens(batch);
  std::vector<AnyMlp<B>> maps{};

  MarginalCase() {
    initialise(backend, model, 1);
    for (Index l = 0; l < layers; ++l) {
      maps.emplace_back(AffineMlp<B>(random_linear(backend, width, width, random)));
    }
  }
  PackedBatch<B> random_batch() {
    std::vector<TokenId> tokens;
    std::vector<Index> offsets{0};
    for (Index s = 0; s < sequences; ++s) {
      for (Index i = 0; i < length; ++i) {
        tokens.push_back(static_cast<TokenId>(random.below(vocabulary)));
      }
      offsets.push_back(static_cast<Index>(tokens.size()));
    }
    return {backend, tokens, offsets};
  }
  MarginalDelta<B> marginal() {
    std::vector<LayerStandIn<B>> stand_ins;
    for (Index l = 0; l < layers; ++l) {
      stand_ins.push_back({l, &maps[static_cast<std::size_t>(l)]});
    }
    return {backend, model, stand_ins, workspace};
  }
  double forward(const PackedBatch<B>& tokens, const ScoredPositions& positions) {
    const typename Workspace<B>::Frame frame(workspace);
    const matrix_view_t<B> stream = workspace.matrix(tokens.rows(), width);
    model.forward(backend, tokens, stream, workspace);
    return model.token_losses(backend, stream, positions, workspace).front();
  }
};

void baseline(benchmark::State& state) {
  MarginalCase bench;
  for (auto _ : state) benchmark::DoNotOptimize(bench.forward(bench.batch, bench.scored));
}

void first_order_of_all_layers(benchmark::State& state) {
  MarginalCase bench;
  MarginalDelta<B> marginal = bench.marginal();
  for (auto _ : state) {
    marginal.begin(bench.batch, bench.scored);
    benchmark::DoNotOptimize(marginal.first_order(0).data());
  }
}

constexpr Index patched = 32;

void exact_patches(benchmark::State& state) {
  MarginalCase bench;
  MarginalDelta<B> marginal = bench.marginal();
  marginal.begin(bench.batch, bench.scored);
  std::vector<Index> rows;
  for (Index p = 0; p < patched; ++p) rows.push_back(p * sequences * length / patched);
  PatchWork work;
  for (auto _ : state) benchmark::DoNotOptimize(marginal.exact(3, rows, work).data());
  state.counters["s/patch"] = benchmark::Counter(
      static_cast<double>(patched),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// What each patch would take as a pass of its own over its sequence.
void naive_patches(benchmark::State& state) {
  MarginalCase bench;
  const std::vector<TokenId> tokens(bench.batch.host_tokens().begin(),
                                    bench.batch.host_tokens().begin() + length);
  const PackedBatch<B> one(bench.backend, tokens);
  const ScoredPositions scored = all_next_tokens(one);
  for (auto _ : state) {
    for (Index p = 0; p < patched; ++p) benchmark::DoNotOptimize(bench.forward(one, scored));
  }
  state.counters["s/patch"] = benchmark::Counter(
      static_cast<double>(patched),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

}  // namespace

BENCHMARK(baseline)->Unit(benchmark::kMillisecond);
BENCHMARK(first_order_of_all_layers)->Unit(benchmark::kMillisecond);
BENCHMARK(exact_patches)->Unit(benchmark::kMillisecond);
BENCHMARK(naive_patches)->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
