// The sweep of two layers of a model of Pythia-2.8B's shape with random 16-bit weights, on 2,000
// tokens: that it completes, how long it takes, and in how much memory. Takes minutes and 8 GB, so
// it runs only when called by its name:  build/native/bench/large_sweep [WIDTH LAYERS]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "random_weights.hpp"
#include "wanamaker/backend/blas.hpp"
#include "wanamaker/core/thread_pool.hpp"
#include "wanamaker/nn/any_transformer.hpp"
#include "wanamaker/study/sweep.hpp"

namespace {

using namespace wanamaker_bench;
using B = BlasBackend<float, half>;
using Model = Transformer<B, GptNeoXBlock<B, AnyMlp<B>>>;

ModelConfig config_of(Index width, Index layers) {
  const Index heads = width / 80;
  return {.family = Family::gpt_neox,
          .name = "pythia-2.8b-shape",
          .vocabulary = 50304,
          .width = width,
          .layers = layers,
          .heads = heads,
          .key_heads = heads,
          .head_width = 80,
          .hidden = 4 * width,
          .positions = 2048,
          .rotary_width = 20,
          .parallel_residual = true};
}

AnyTransformer<B> random_model(B& backend, const ModelConfig& c) {
  RandomStream random(1);
  Model::Parts parts{
      .config = c,
      .embedding = random_weights(backend, c.vocabulary, c.width, random),
      .position_table = {},
      .blocks = {},
      .final_norm = unit_norm(backend, c.width),
      .head = {random_weights(backend, c.vocabulary, c.width, random), WeightLayout::out_in}};
  const std::vector<double> angles(static_cast<std::size_t>(c.positions * c.rotary_width / 2));
  for (Index l = 0; l < c.layers; ++l) {
    const auto linear = [&](Index in, Index out) {
      return random_linear(backend, in, out, random);
    };
    parts.blocks.emplace_back(
        unit_norm(backend, c.width),
        CausalSelfAttention<B, RotaryPositions<B>>(
            linear(c.width, 3 * c.width), linear(c.width, c.width),
            AttentionShape{c.heads, c.heads, c.head_width, 0.11, 0},
            RotaryPositions<B>::from_angles(backend, angles, c.positions)),
        unit_norm(backend, c.width),
        AnyMlp<B>(DenseMlp<B, GeluErf>(linear(c.width, c.hidden), linear(c.hidden, c.width))));
  }
  return AnyTransformer<B>(Model(std::move(parts)));
}

// 20 documents of 100 tokens: 500 each for fit, gate, select, report.
TokenizedCorpus random_corpus(Index vocabulary) {
  TokenizedCorpus corpus;
  RandomStream random(2);
  for (Index d = 0; d < 20; ++d) {
    TokenizedDocument document{.name = "document " + std::to_string(d), .index = d};
    for (int t = 0; t < 100; ++t) {
      document.ids.push_back(
          static_cast<TokenId>(random.below(static_cast<std::uint64_t>(vocabulary))));
    }
    corpus.documents.push_back(std::move(document));
  }
  return corpus;
}

Splits four_splits() {
  Splits splits;
  for (Index d = 0; d < 20; ++d) {
    (d % 4 == 0   ? splits.fit.documents
     : d % 4 == 1 ? splits.gate.documents
     : d % 4 == 2 ? splits.select.documents
                  : splits.report.documents)
        .push_back(d);
  }
  return Splits::checked(splits);
}

}  // namespace

int main(int argc, char** argv) {
  const Index width = argc > 2 ? std::atol(argv[1]) : 2560;
  const Index layers = argc > 2 ? std::atol(argv[2]) : 32;
  ThreadPool pool(2);
  B backend(pool);
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const AnyTransformer<B> model = random_model(backend, config_of(width, layers));
  std::printf("model: %.2f billion parameters, %.0f s\n", 1e-9 * model.parameters(), seconds());
  const TokenizedCorpus corpus = random_corpus(50304);
  const Splits splits = four_splits();
  Workspace<B> workspace(backend);
  StudyInput<B> input{
      .backend = backend,
      .model = model,
      .corpus = corpus,
      .splits = splits,
      .workspace = workspace,
      .rule = {.window = 512, .stride = 512},
      .options = {.layers = {layers / 2, layers / 2 + 1}, .rhos = {1e-3}, .ladder = Ladder::quick},
      .executor = pool};
  input.progress.report = [&](std::string_view stage, Index done, Index total) {
    std::fprintf(stderr, "%6.0f s  %.*s %ld/%ld\n", seconds(), static_cast<int>(stage.size()),
                 stage.data(), static_cast<long>(done), static_cast<long>(total));
    return true;
  };
  const SweepResult result = run_sweep(input);
  for (const LayerResult& layer : result.layers) {
    std::printf("layer %ld: %zu variants, linear map %+.3f %% perplexity\n",
                static_cast<long>(layer.layer), layer.variants.size(),
                layer.variants[2].comparison.delta_percent);
  }
  std::printf("%.0f s, %.1f GB at most\n", seconds(), peak_megabytes() / 1024);
  return 0;
}
