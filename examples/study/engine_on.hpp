// Engine for any backend.
#pragma once

#include <string>
#include <utility>

#include "engine.hpp"
#include "wanamaker/io/model_loader.hpp"

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

  wanamaker::PerplexityResult perplexity(const wanamaker::TokenizedCorpus& corpus,
                                         const wanamaker::EvaluationSet& set,
                                         const wanamaker::Protocol& protocol,
                                         const wanamaker::Progress& progress) override {
    return wanamaker::measure_perplexity(backend_, model_, corpus, set, protocol, workspace_,
                                         progress);
  }

  wanamaker::SweepResult sweep(const wanamaker::TokenizedCorpus& corpus,
                               const wanamaker::Splits& splits, const wanamaker::WindowRule& rule,
                               const wanamaker::Protocol& protocol,
                               const wanamaker::SweepOptions& options,
                               const wanamaker::Progress& progress,
                               const wanamaker::SweepCheckpoint& checkpoint) override {
    return wanamaker::run_sweep(backend_, model_, corpus, splits, rule, protocol, options,
                                executor_, workspace_, progress, checkpoint);
  }

  wanamaker::SweepResult paper_sweep(const wanamaker::PaperSets& sets,
                                     const wanamaker::Protocol& protocol,
                                     const wanamaker::SweepOptions& options,
                                     const wanamaker::Progress& progress) override {
    return wanamaker::run_paper_sweep(backend_, model_, sets, wanamaker::PaperFigures{}, protocol,
                                      options, executor_, workspace_, progress);
  }

 private:
  B backend_;
  wanamaker::ExecutorRef executor_;
  std::string arithmetic_;
  wanamaker::AnyTransformer<B> model_;
  wanamaker::Workspace<B> workspace_;
};

}  // namespace study
