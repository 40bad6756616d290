// Pretraining: a model of a chosen shape, from initial values to its last step, on the training
// documents alone.
#pragma once

#include <bit>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "wanamaker/backend/backend.hpp"
#include "wanamaker/core/hash.hpp"
#include "wanamaker/core/progress.hpp"
#include "wanamaker/io/model_config_writing.hpp"
#include "wanamaker/nn/any_transformer.hpp"
#include "wanamaker/study/finetune_result.hpp"
#include "wanamaker/study/hard_routing.hpp"
#include "wanamaker/study/perplexity.hpp"
#include "wanamaker/study/splits.hpp"
#include "wanamaker/text/byte_pair_training.hpp"
#include "wanamaker/text/corpus.hpp"
#include "wanamaker/text/tokenized_corpus.hpp"
#include "wanamaker/train/initialise.hpp"
#include "wanamaker/train/model_loss.hpp"
#include "wanamaker/train/planned_model.hpp"
#include "wanamaker/train/trainer.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Settings of a pretraining run.
struct PretrainOptions {
  Index window = 256;      ///< tokens of a sequence
  Index sequences = 8;     ///< a batch
  TokenId separator = 0;   ///< begins each document in the stream of tokens
  std::uint64_t seed = 0;  ///< of initial values and of windows
  bool recompute = false;  ///< activations again on the way back: less memory, more time
  TrainerOptions training{};
  MlpPlan plan{};  ///< the layers' MLPs; empty: the family's
  SparsityOptions sparsity{};

  Index tokens_of_a_step() const { return window * sequences * training.accumulation; }
};

/// How a model came about, and what it says of text that it was not trained on.
struct PretrainResult {
  ModelSummary model{};
  Index documents = 0;      ///< trained on
  Index corpus_tokens = 0;  ///< of these documents, separators included
  Index tokens = 0;         ///< seen: windows overlap and repeat
  std::uint64_t seed = 0;
  std::string settings_hash{};      ///< of data, shape, seed, optimiser and schedule
  MlpPlan plan{};                   ///< empty: the family's MLPs
  std::vector<LayerState> gated{};  ///< layers that learned their routing, on the held-out text
  LossCurve curve{};
  std::optional<Resumption> resumption{};
  std::optional<PerplexityResult> held_out{};  ///< of documents kept apart
};

namespace detail {

/// The documents of a split, in its order.
inline TokenizedCorpus documents_of(const TokenizedCorpus& corpus, const TrainSplit& split) {
  TokenizedCorpus chosen{.has_text = corpus.has_text};
  for (const Index d : split.documents) {
    chosen.documents.push_back(corpus.documents[static_cast<std::size_t>(d)]);
  }
  return chosen;
}

inline std::string pretrain_hash(const PretrainOptions& options, const ModelConfig& config,
                                 const WindowSampler& windows) {
  Sha256 hash;
  hash.update_field(windows.hash()).update_field(model_config_json(config).dump());
  if (!options.plan.empty()) {
    hash.update_field(text_of(options.plan));
    hash.update_number(std::bit_cast<std::uint64_t>(options.sparsity.weight));
    hash.update_number(static_cast<std::uint64_t>(options.sparsity.warm_up));
  }
  return training_hash(options.training, hash.update_number(options.seed).hex());
}

}  // namespace detail

/// A tokenizer trained on the training documents' texts. Throws as train_byte_level_tokenizer.
inline TokenizerDefinition train_tokenizer(const Corpus& corpus, const TrainSplit& train,
                                           const BytePairTrainingOptions& options,
                                           const Progress& progress = {}) {
  WordCounts words;
  for (const Index d : train.documents) {
    const Document& document = corpus.documents[static_cast<std::size_t>(d)];
    if (document.has_text()) words.add(document.text(), document.source);
  }
  return train_byte_level_tokenizer(words, options, progress);
}

/// Gives the model, made for the options' plan, initial values, trains it on windows of the
/// training documents, and leaves it as it is after the last step. With a folder, checkpoints are
/// kept there, and a run of the same settings goes on from what is there already. Throws as Trainer
/// and WindowSampler, DataError for token ids that the model has not.
template <Backend B>
PretrainResult run_pretrain(B& backend, AnyTransformer<B>& model, const TokenizedCorpus& corpus,
                            const TrainSplit& train, const PretrainOptions& options,
                            const std::optional<std::filesystem::path>& checkpoints = {},
                            const Progress& progress = {}) {
  const TokenizedCorpus chosen = detail::documents_of(corpus, train);
  check_ids(chosen, model.config().vocabulary);
  const std::vector<TokenId> tokens = joined_documents(chosen, options.separator);
  const WindowSampler windows(tokens, options.window, options.sequences, options.seed);
  PretrainResult result{.model = summarise_model(model),
                        .documents = static_cast<Index>(chosen.documents.size()),
                        .corpus_tokens = static_cast<Index>(tokens.size()),
                        .seed = options.seed};
  result.settings_hash = detail::pretrain_hash(options, model.config(), windows);
  initialise(backend, model, options.seed);
  const Gradients<B> gradients(backend, model);
  Trainer<B> trainer(backend, parameters<B>(model, gradients), options.training);
  result.plan = options.plan;
  if (checkpoints) result.resumption = trainer.resume({*checkpoints, result.settings_hash});
  const auto batches = [&](Index n) {
    set_sparsity(model, options.sparsity.at(n / options.training.accumulation));
    return windows(n);
  };
  result.curve = trainer.run(
      batches, ModelLoss(backend, model, gradients, {.recompute = options.recompute}), progress);
  if (!result.curve.empty()) result.tokens = result.curve.back().tokens;
  return result;
}

/// Measures a model that was trained by a plan on documents kept apart, its learned gates made hard
/// from here on, and adds what is found to the result. Throws as measure_perplexity.
template <Backend B>
void measure_held_out(B& backend, AnyTransformer<B>& model, const TokenizedCorpus& corpus,
                      const EvaluationSet& set, const Protocol& protocol, PretrainResult& result,
                      const Progress& progress = {}) {
  Workspace<B> workspace(backend);
  HardRouting<B> routing(backend, model);
  const std::vector<double> losses = routing.losses(set, workspace, progress, "perplexity");
  result.held_out =
      detail::perplexity_result(losses, corpus, set, protocol, summarise_model(model));
  result.gated = routing.layers();
}

}  // namespace wanamaker::inline WANAMAKER_ABI
