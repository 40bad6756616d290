// Pretraining behind a plain function, compiled in a source file of its own.
#pragma once

#include <filesystem>
#include <string>

#include "wanamaker/core/executor.hpp"
#include "wanamaker/nn/config.hpp"
#include "wanamaker/study/budget_plans.hpp"
#include "wanamaker/study/pretrain.hpp"

namespace study {

struct PretrainTask {
  const wanamaker::TokenizedCorpus& corpus;
  wanamaker::TrainSplit train{};
  wanamaker::ModelConfig config{};
  wanamaker::PretrainOptions options{};
  std::filesystem::path checkpoints{};
  std::filesystem::path model{};  ///< folder for the trained model
  /// Documents kept apart: where the options have a plan, the model is measured on them as it is.
  wanamaker::EvaluationSet held_out{};
  wanamaker::Protocol protocol{};
  wanamaker::Progress progress{};
};

/// Trains, in float with the BLAS of this build or else Eigen's products, and writes the model
/// where files can have its MLPs.
wanamaker::PretrainResult pretrain(const PretrainTask& task, wanamaker::ExecutorRef executor);

/// What models from nothing are trained in.
std::string training_arithmetic();

struct BudgetTask {
  const wanamaker::TokenizedCorpus& corpus;
  wanamaker::Splits splits{};
  wanamaker::ModelConfig config{};
  wanamaker::BudgetPlan plan{};
  wanamaker::BudgetOptions options{};
  wanamaker::WindowRule rule{};
  wanamaker::Protocol protocol{};
  std::filesystem::path checkpoints{};
  std::filesystem::path models{};  ///< folder for the trained models; empty: they are not kept
  wanamaker::Progress progress{};
};

/// Trains and compares all models of the plan.
wanamaker::BudgetResult compare_budgets(const BudgetTask& task, wanamaker::ExecutorRef executor,
                                        const wanamaker::FinetuneCheckpoint& checkpoint);

}  // namespace study
