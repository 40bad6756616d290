// A tiny model with open MLPs, random documents and splits of them, for tests of experiments.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "testing.hpp"
#include "wanamaker/backend/blas.hpp"  // before names of ours hide its own
#include "wanamaker/backend/eigen.hpp"
#include "wanamaker/nn/any_transformer.hpp"
#include "wanamaker/study/layer_study.hpp"
#include "wanamaker/study/splits.hpp"
#include "wanamaker/study/sweep_result.hpp"
#include "wanamaker/text/tokenized_corpus.hpp"

namespace wanamaker_test {

using namespace wanamaker;
using B = EigenBackend<double>;

// A tiny GPT-2 whose MLPs are open: the attention is real, weights are seeded.
class PlantedModel {
 public:
  static constexpr Index width = 12;
  static constexpr Index vocabulary = 40;

  /// `context` scales what attention and positions write to the stream: with 0 everything at a
  /// position is a function of its token.
  explicit PlantedModel(B& backend, double context = 1, Index tokens = vocabulary)
      : backend_(backend), context_(context), tokens_(tokens) {}

  AnyTransformer<B> make(std::vector<AnyMlp<B>> mlps) {
    using Model = AnyTransformer<B>::Model;
    ModelConfig config{.name = "planted",
                       .vocabulary = tokens_,
                       .width = width,
                       .layers = static_cast<Index>(mlps.size()),
                       .heads = 2,
                       .key_heads = 2,
                       .head_width = 6,
                       .hidden = 24,
                       .positions = 32,
                       .tied_head = true};
    Model::Parts parts{.config = config,
                       .embedding = random(tokens_, width, 1.0),
                       .position_table = random(32, width, 0.1 * context_),
                       .blocks = {},
                       .final_norm = norm(),
                       .head = {}};
    for (AnyMlp<B>& mlp : mlps) {
      parts.blocks.emplace_back(
          norm(),
          CausalSelfAttention<B, AnyPositions<B>>(
              linear(width, 3 * width, 0.3), linear(width, width, 0.3 * context_),
              AttentionShape{2, 2, 6, 1 / std::sqrt(6.0), 0}, LearnedPositions{}),
          norm(), std::move(mlp));
    }
    return AnyTransformer<B>(Model(std::move(parts)));
  }

  matrix_t<B> random(Index rows, Index cols, double scale) {
    std::vector<double> values(static_cast<std::size_t>(rows * cols));
    for (double& v : values) v = scale * stream_.normal();
    return matrix_from_host<double>(backend_, values.data(), rows, cols);
  }
  Linear<B> linear(Index inputs, Index outputs, double scale) {
    return {random(inputs, outputs, scale), WeightLayout::in_out, random(1, outputs, scale)};
  }
  LayerNorm<B> norm() {
    const std::vector<double> ones(width, 1.0);
    return {matrix_from_host<double>(backend_, ones.data(), 1, width), random(1, width, 0.1), 1e-5};
  }

 private:
  B& backend_;
  double context_;
  Index tokens_;
  RandomStream stream_{11};
};

inline TokenizedCorpus random_corpus(Index documents, Index tokens, Index vocabulary) {
  TokenizedCorpus corpus;
  RandomStream stream(5);
  for (Index d = 0; d < documents; ++d) {
    TokenizedDocument document{.name = "document " + std::to_string(d), .index = d};
    for (Index t = 0; t < tokens; ++t) {
      document.ids.push_back(
          static_cast<TokenId>(stream.below(static_cast<std::uint64_t>(vocabulary))));
    }
    corpus.documents.push_back(std::move(document));
  }
  return corpus;
}

inline Splits some_splits(Index documents) {
  Splits splits;
  for (Index d = 0; d < documents; ++d) {
    (d % 4 == 0   ? splits.fit.documents
     : d % 4 == 1 ? splits.gate.documents
     : d % 4 == 2 ? splits.select.documents
                  : splits.report.documents)
        .push_back(d);
  }
  return Splits::checked(splits);
}

inline const VariantResult& variant(const LayerResult& layer, const std::string& name) {
  for (const VariantResult& v : layer.variants) {
    if (v.name == name) return v;
  }
  FAIL("no variant " << name);
  return layer.variants.front();
}

inline SweepOptions quick_options(Ladder ladder) {
  SweepOptions options;
  options.ladder = ladder;
  options.rhos = {1e-12};
  options.intervals.resamples = 200;
  return options;
}

/// An experiment on linear maps with windows of so many tokens. What it refers to must outlive it.
inline StudyInput<B> planted_study(B& backend, const AnyTransformer<B>& model,
                                   const TokenizedCorpus& corpus, const Splits& splits,
                                   Workspace<B>& workspace, Index window = 30,
                                   Ladder ladder = Ladder::surrogates) {
  return {.backend = backend,
          .model = model,
          .corpus = corpus,
          .splits = splits,
          .workspace = workspace,
          .rule = {.window = window, .stride = window},
          .options = quick_options(ladder),
          .executor = backend.executor()};
}

/// Documents drawn from the model itself, so that every change of the model costs, up to chance.
inline TokenizedCorpus sampled_corpus(B& backend, const AnyTransformer<B>& model, Index documents,
                                      Index tokens) {
  TokenizedCorpus corpus = random_corpus(documents, 1, PlantedModel::vocabulary);
  Workspace<B> workspace(backend);
  RandomStream stream(17);
  for (Index t = 1; t < tokens; ++t) {
    std::vector<TokenId> ids;
    std::vector<Index> offsets{0};
    for (const TokenizedDocument& d : corpus.documents) {
      ids.insert(ids.end(), d.ids.begin(), d.ids.end());
      offsets.push_back(static_cast<Index>(ids.size()));
    }
    const typename Workspace<B>::Frame frame(workspace);
    const PackedBatch<B> batch(backend, ids, offsets);
    const MatrixView<double> residual = workspace.matrix(batch.rows(), model.config().width);
    model.forward(backend, batch, residual, workspace);
    const MatrixView<double> logits = workspace.matrix(batch.rows(), model.logit_columns());
    model.logits(backend, residual, logits, workspace);
    for (std::size_t d = 0; d < corpus.documents.size(); ++d) {
      const double* row = logits.row(offsets[d + 1] - 1);
      double total = 0;
      for (Index v = 0; v < PlantedModel::vocabulary; ++v) total += std::exp(row[v]);
      double left = total * stream.uniform();
      TokenId chosen = 0;
      while (chosen + 1 < PlantedModel::vocabulary && left >= std::exp(row[chosen])) {
        left -= std::exp(row[chosen++]);
      }
      corpus.documents[d].ids.push_back(chosen);
    }
  }
  return corpus;
}

/// Dense MLPs with seeded weights.
inline std::vector<AnyMlp<B>> dense_mlps(PlantedModel& planted, int layers) {
  std::vector<AnyMlp<B>> mlps;
  for (int l = 0; l < layers; ++l) {
    mlps.emplace_back(
        DenseMlp<B, GeluTanh>(planted.linear(12, 24, 1.0), planted.linear(24, 12, 0.5)));
  }
  return mlps;
}

}  // namespace wanamaker_test
