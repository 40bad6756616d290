// Engine for any backend.
#pragma once

#include <string>
#include <utility>

#include "engine.hpp"
#include "wanamaker/io/model_loader.hpp"
#include "wanamaker/study/compound.hpp"
#include "wanamaker/study/export_model.hpp"
#include "wanamaker/study/finite_check.hpp"
#include "wanamaker/study/gate_curve.hpp"
#include "wanamaker/study/generate_study.hpp"
#include "wanamaker/study/paper_sweep.hpp"

namespace study {

template <class B>
class EngineOn final : public Engine {
 public:
  EngineOn(B backend, const std::filesystem::path& model, wanamaker::ExecutorRef executor,
           std::string arithmetic)
      : backend_(std::move(backend)),
        executor_(executor),
        arithmetic_(std::move(arithmetic)),
        model_(wanamaker::load_model(backend_, model)),
        workspace_(backend_) {}

  const wanamaker::ModelConfig& config() const override { return model_.config(); }
  std::string arithmetic() const override { return arithmetic_; }

  void check_finite(const wanamaker::EvaluationSet& set,
                    const wanamaker::Progress& progress) override {
    wanamaker::check_finite_activations(backend_, model_, set, workspace_, progress);
  }

  wanamaker::PerplexityResult perplexity(const wanamaker::TokenizedCorpus& corpus,
                                         const wanamaker::EvaluationSet& set,
                                         const wanamaker::Protocol& protocol,
                                         const wanamaker::Progress& progress) override {
    return wanamaker::measure_perplexity(backend_, model_, corpus, set, protocol, workspace_,
                                         progress);
  }

  wanamaker::PerplexityResult last_words(const wanamaker::TokenizedCorpus& corpus,
                                         std::span<const wanamaker::Index> target_tokens,
                                         const wanamaker::EvaluationSet& set,
                                         const wanamaker::Protocol& protocol,
                                         const wanamaker::Progress& progress) override {
    return wanamaker::measure_last_words(backend_, model_, corpus, target_tokens, set, protocol,
                                         workspace_, progress);
  }

  wanamaker::SweepResult sweep(const LayerTask& task,
                               const wanamaker::SweepCheckpoint& checkpoint) override {
    return wanamaker::run_sweep(input(task), checkpoint);
  }

  wanamaker::GateCurveResult gate_curve(const LayerTask& task,
                                        const wanamaker::CurveOptions& options,
                                        const wanamaker::GateCurveCheckpoint& checkpoint) override {
    return wanamaker::run_gate_curve(input(task), options, checkpoint);
  }

  wanamaker::CompoundResult compound(const LayerTask& task,
                                     const wanamaker::CompoundOptions& options,
                                     const wanamaker::CompoundCheckpoint& checkpoint) override {
    return wanamaker::run_compound(input(task), options, checkpoint);
  }

  wanamaker::GenerateResult generate(const LayerTask& task,
                                     std::span<const wanamaker::TokenId> prompt,
                                     const wanamaker::GenerateOptions& options,
                                     const wanamaker::OnWritten& on_written) override {
    return wanamaker::run_generate(input(task), prompt, options, on_written);
  }

  wanamaker::ExportResult export_model(const LayerTask& task,
                                       const wanamaker::ExportOptions& options,
                                       const std::filesystem::path& folder) override {
    return wanamaker::run_export(input(task), model_, options, folder);
  }

  void install_gates(const std::filesystem::path& folder) override {
    wanamaker::install_gates(backend_, model_, wanamaker::read_gated_layers(folder));
  }

  std::vector<double> sequence_losses(std::span<const wanamaker::TokenId> ids) override {
    return wanamaker::sequence_losses(backend_, model_, ids, {}, workspace_);
  }

  wanamaker::SweepResult paper_sweep(const wanamaker::PaperSets& sets,
                                     const wanamaker::Protocol& protocol,
                                     const wanamaker::SweepOptions& options,
                                     const wanamaker::Progress& progress,
                                     const wanamaker::SweepCheckpoint& checkpoint) override {
    return wanamaker::run_paper_sweep(backend_, model_, sets, wanamaker::PaperFigures{}, protocol,
                                      options, executor_, workspace_, progress, checkpoint);
  }

 private:
  wanamaker::StudyInput<B> input(const LayerTask& task) {
    return {backend_,  model_,        task.corpus,  task.splits, workspace_,
            task.rule, task.protocol, task.options, executor_,   task.progress};
  }

  B backend_;
  wanamaker::ExecutorRef executor_;
  std::string arithmetic_;
  wanamaker::AnyTransformer<B> model_;
  wanamaker::Workspace<B> workspace_;
};

}  // namespace study
