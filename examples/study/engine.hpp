// The study's experiments on one backend behind a plain interface, so that each backend is compiled
// once, in a source file of its own.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "wanamaker/core/executor.hpp"
#include "wanamaker/nn/config.hpp"
#include "wanamaker/study/checkpoint.hpp"
#include "wanamaker/study/export_result.hpp"
#include "wanamaker/study/generate_result.hpp"
#include "wanamaker/study/paper_protocol.hpp"
#include "wanamaker/study/perplexity.hpp"
#include "wanamaker/study/splits.hpp"

namespace study {

/// What an experiment on layers is given besides the model.
struct LayerTask {
  const wanamaker::TokenizedCorpus& corpus;
  wanamaker::Splits splits{};
  wanamaker::WindowRule rule{};
  wanamaker::Protocol protocol{};
  wanamaker::SweepOptions options{};
  wanamaker::Progress progress{};
};

/// A loaded model, on some backend.
class LoadedModel {
 public:
  virtual ~LoadedModel() = default;
  virtual const wanamaker::ModelConfig& config() const = 0;
  /// "float" or "double", and what multiplies.
  virtual std::string arithmetic() const = 0;
};

/// One that the experiments on costs can be run on.
class Engine : public LoadedModel {
 public:
  /// Throws wanamaker::NumericalError where an activation is not finite.
  virtual void check_finite(const wanamaker::EvaluationSet& set,
                            const wanamaker::Progress& progress) = 0;
  virtual wanamaker::PerplexityResult perplexity(const wanamaker::TokenizedCorpus& corpus,
                                                 const wanamaker::EvaluationSet& set,
                                                 const wanamaker::Protocol& protocol,
                                                 const wanamaker::Progress& progress) = 0;
  virtual wanamaker::PerplexityResult last_words(const wanamaker::TokenizedCorpus& corpus,
                                                 std::span<const wanamaker::Index> target_tokens,
                                                 const wanamaker::EvaluationSet& set,
                                                 const wanamaker::Protocol& protocol,
                                                 const wanamaker::Progress& progress) = 0;
  virtual wanamaker::SweepResult sweep(const LayerTask& task,
                                       const wanamaker::SweepCheckpoint& checkpoint) = 0;
  virtual wanamaker::GateCurveResult gate_curve(
      const LayerTask& task, const wanamaker::CurveOptions& options,
      const wanamaker::GateCurveCheckpoint& checkpoint) = 0;
  virtual wanamaker::CompoundResult compound(const LayerTask& task,
                                             const wanamaker::CompoundOptions& options,
                                             const wanamaker::CompoundCheckpoint& checkpoint) = 0;
  virtual wanamaker::GenerateResult generate(const LayerTask& task,
                                             std::span<const wanamaker::TokenId> prompt,
                                             const wanamaker::GenerateOptions& options,
                                             const wanamaker::OnWritten& on_written) = 0;
  /// Writes the model with maps or gates in the chosen layers to the folder; this engine has them
  /// from then on, too.
  virtual wanamaker::ExportResult export_model(const LayerTask& task,
                                               const wanamaker::ExportOptions& options,
                                               const std::filesystem::path& folder) = 0;
  /// Puts the gates that the folder has before the model's MLPs.
  virtual void install_gates(const std::filesystem::path& folder) = 0;
  /// −log p of ids[1], ids[2], … in nats, each given all before it.
  virtual std::vector<double> sequence_losses(std::span<const wanamaker::TokenId> ids) = 0;
  virtual wanamaker::SweepResult paper_sweep(const wanamaker::PaperSets& sets,
                                             const wanamaker::Protocol& protocol,
                                             const wanamaker::SweepOptions& options,
                                             const wanamaker::Progress& progress,
                                             const wanamaker::SweepCheckpoint& checkpoint) = 0;
};

using EngineMaker = std::unique_ptr<Engine> (*)(const std::filesystem::path& model,
                                                wanamaker::ExecutorRef executor);

/// What --backend may name: the engines that this build has (WANAMAKER_STUDY_BACKENDS).
inline std::map<std::string, EngineMaker>& engines() {
  static std::map<std::string, EngineMaker> by_name;
  return by_name;
}

/// An object of static storage beside an engine makes it known.
struct EngineRegistration {
  EngineRegistration(const char* name, EngineMaker maker) { engines()[name] = maker; }
};

/// True where this build found a library for the BLAS backend.
bool has_blas();

}  // namespace study
