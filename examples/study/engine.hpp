// The study's experiments on one backend behind a plain interface, so that each backend is compiled
// once, in a source file of its own.
#pragma once

#include <filesystem>
#include <memory>

#include "wanamaker/core/executor.hpp"
#include "wanamaker/nn/config.hpp"
#include "wanamaker/study/paper_sweep.hpp"
#include "wanamaker/study/perplexity.hpp"

namespace study {

/// A loaded model that experiments can be run on.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual const wanamaker::ModelConfig& config() const = 0;
  /// "float" or "double", and what multiplies.
  virtual std::string arithmetic() const = 0;
  virtual wanamaker::PerplexityResult perplexity(const wanamaker::TokenizedCorpus& corpus,
                                                 const wanamaker::EvaluationSet& set,
                                                 const wanamaker::Protocol& protocol,
                                                 const wanamaker::Progress& progress) = 0;
  virtual wanamaker::SweepResult sweep(const wanamaker::TokenizedCorpus& corpus,
                                       const wanamaker::Splits& splits,
                                       const wanamaker::WindowRule& rule,
                                       const wanamaker::Protocol& protocol,
                                       const wanamaker::SweepOptions& options,
                                       const wanamaker::Progress& progress,
                                       const wanamaker::SweepCheckpoint& checkpoint) = 0;
  virtual wanamaker::SweepResult paper_sweep(const wanamaker::PaperSets& sets,
                                             const wanamaker::Protocol& protocol,
                                             const wanamaker::SweepOptions& options,
                                             const wanamaker::Progress& progress) = 0;
};

using EngineMaker = std::unique_ptr<Engine> (*)(const std::filesystem::path& model,
                                                wanamaker::ExecutorRef executor);

std::unique_ptr<Engine> make_eigen_engine(const std::filesystem::path& model,
                                          wanamaker::ExecutorRef executor);
std::unique_ptr<Engine> make_blas_engine(const std::filesystem::path& model,
                                         wanamaker::ExecutorRef executor);
std::unique_ptr<Engine> make_reference_engine(const std::filesystem::path& model,
                                              wanamaker::ExecutorRef executor);

/// True where this build found a library for the BLAS backend.
bool has_blas();

}  // namespace study
