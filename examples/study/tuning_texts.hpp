// Texts of the commands that train a model further, or change it for good: those to work on, and
// those of another domain to measure on.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "inputs.hpp"
#include "options.hpp"
#include "wanamaker/nn/config.hpp"

namespace study {

/// Documents as they were read, to be encoded for each model.
struct TuningTexts {
  wanamaker::Corpus trained;
  std::optional<wanamaker::Corpus> other;
  std::optional<wanamaker::Corpus> passages;
};

/// Without --text the technical corpus is the other domain.
TuningTexts read_tuning_texts(const Options& options);

/// As many documents as --report-tokens allows.
std::vector<wanamaker::Index> some_documents(const wanamaker::TokenizedCorpus& corpus,
                                             const Options& options);

wanamaker::TokenizedCorpus chosen_documents(const wanamaker::TokenizedCorpus& corpus,
                                            const std::vector<wanamaker::Index>& documents);

/// Documents as the model's tokens. Throws wanamaker::DataError where its tokenizer and its
/// vocabulary disagree.
Texts encode_for(const wanamaker::ModelConfig& config, const std::filesystem::path& model,
                 const wanamaker::Corpus& corpus, wanamaker::ExecutorRef executor,
                 const wanamaker::Progress& progress);

/// A token that separates texts in training. Throws wanamaker::DataError where the model names
/// none.
wanamaker::TokenId separator_of(const wanamaker::ModelConfig& config,
                                const std::filesystem::path& model);

/// Tokens of a training sequence. Throws wanamaker::ProtocolError.
wanamaker::Index training_window(const Options& options, const wanamaker::ModelConfig& config);

}  // namespace study
