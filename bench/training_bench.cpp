// Training steps of a GPT-2 shape of width 256, 6 layers and 4,096 tokens of vocabulary on 8 × 256
// tokens in float: loss, gradients, clipping and AdamW. Tokens/s, GFLOP/s, and the most memory.
#include <benchmark/benchmark.h>

#include <vector>

#include "random_weights.hpp"
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/train/adamw.hpp"
#include "wanamaker/train/gradient_norm.hpp"
#include "wanamaker/train/initialise.hpp"
#include "wanamaker/train/model_shape.hpp"

namespace {

using namespace wanamaker_bench;
using B = BlasBackend<float>;

constexpr Index sequences = 8, length = 256, vocabulary = 4096;

PackedBatch<B> random_batch(B& backend) {
  std::vector<TokenId> tokens;
  std::vector<Index> offsets{0};
  RandomStream random(2);
  for (Index s = 0; s < sequences; ++s) {
    for (Index i = 0; i < length; ++i) {
      tokens.push_back(static_cast<TokenId>(random.below(vocabulary)));
    }
    offsets.push_back(static_cast<Index>(tokens.size()));
  }
  return {backend, tokens, offsets};
}

/// Multiplications and additions of one step: three times those of the forward pass, in which every
/// token sees half of its sequence.
double step_flops(const ModelConfig& c, double parameters_in_products) {
  const double tokens = sequences * length;
  const double attention = 2.0 * static_cast<double>(c.layers * c.width) * length;
  return 3 * tokens * (2 * parameters_in_products + attention);
}

void training(benchmark::State& state) {
  ThreadPool pool(state.range(0));
  B backend(pool);
  const ModelConfig config = model_config({.family = Family::gpt2,
                                           .vocabulary = vocabulary,
                                           .width = 256,
                                           .layers = 6,
                                           .heads = 4,
                                           .positions = length});
  AnyTransformer<B> model = wanamaker::make_model(backend, config);
  initialise(backend, model, 1);
  const Gradients<B> gradients(backend, model);
  const ParameterList<B> list = parameters(model, gradients);
  const AdamW rule{};
  AdamW::State<B> moments(backend, list);
  const PackedBatch<B> batch = random_batch(backend);
  const ScoredPositions scored = all_next_tokens(batch);
  Workspace<B> workspace(backend);
  const LossOptions options{.recompute = state.range(1) != 0};
  double loss = 0;
  for (auto _ : state) {
    gradients.clear(backend);
    loss = loss_and_gradients(model, backend, batch, scored, gradients, workspace, options);
    const double norm = gradient_norms(backend, list, workspace, 1.0).total;
    moments.update(backend, list, rule, 1e-4, clipping_factor(norm, 1.0));
  }
  double in_products = static_cast<double>(vocabulary * config.width);  // the head
  for (const Parameter<B>& p : list) {
    if (p.decays && p.layer >= 0) in_products += static_cast<double>(p.value.size());
  }
  const double steps = static_cast<double>(state.iterations());
  state.counters["tokens/s"] =
      benchmark::Counter(steps * sequences * length, benchmark::Counter::kIsRate);
  state.counters["GFLOP/s"] = benchmark::Counter(1e-9 * steps * step_flops(config, in_products),
                                                 benchmark::Counter::kIsRate);
  state.counters["peak MB"] = peak_megabytes();
  state.counters["loss"] = loss;
}

}  // namespace

BENCHMARK(training)
    ->ArgNames({"threads", "recompute"})
    ->Args({1, 0})
    ->Args({2, 0})
    ->Args({1, 1})
    ->Args({2, 1})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
