// Pretraining behind a plain function, compiled in a source file of its own.
#pragma once

#include <filesystem>

#include "wanamaker/core/executor.hpp"
#include "wanamaker/nn/config.hpp"
#include "wanamaker/study/pretrain.hpp"

namespace study {

struct PretrainTask {
  const wanamaker::TokenizedCorpus& corpus;
  wanamaker::TrainSplit train{};
  wanamaker::ModelConfig config{};
  wanamaker::PretrainOptions options{};
  std::filesystem::path checkpoints{};
  std::filesystem::path model{};  ///< folder for the trained model
  wanamaker::Progress progress{};
};

/// Trains, in float with the BLAS of this build or else Eigen's products, and writes the model.
wanamaker::PretrainResult pretrain(const PretrainTask& task, wanamaker::ExecutorRef executor);

}  // namespace study
