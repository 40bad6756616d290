// What commands that train models from nothing have in common.
#pragma once

#include <filesystem>
#include <string>

#include "options.hpp"
#include "wanamaker/nn/config.hpp"
#include "wanamaker/study/pretrain.hpp"
#include "wanamaker/text/tokenizer.hpp"

namespace study {

/// Deals documents to training, to fitting maps where `fit_tokens` > 0, and to measuring, before
/// there is a tokenizer: by bytes, about four a token.
wanamaker::Splits deal_documents(const wanamaker::Corpus& corpus, const Options& options,
                                 wanamaker::Index fit_tokens = 0);

/// FOLDER/tokenizer.json, given or trained.
void prepare_tokenizer(const Options& options, const wanamaker::Corpus& corpus,
                       const wanamaker::TrainSplit& train, const std::filesystem::path& folder,
                       const wanamaker::Progress& progress);
void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to);

wanamaker::ModelConfig config_of(const Options& options, const wanamaker::Tokenizer& tokenizer);

/// All but the layers' MLPs.
wanamaker::PretrainOptions training_of(const Options& options,
                                       const wanamaker::Tokenizer& tokenizer);

/// Hours of training are not overwritten because a flag was forgotten. Throws
/// wanamaker::ProtocolError.
void check_fresh_or_resumed(const Options& options, const std::filesystem::path& checkpoints);

}  // namespace study
