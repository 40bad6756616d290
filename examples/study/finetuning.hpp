// Fine-tuning experiments behind a plain interface, compiled in a source file of their own.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "engine.hpp"
#include "wanamaker/core/executor.hpp"
#include "wanamaker/core/progress.hpp"
#include "wanamaker/nn/config.hpp"
#include "wanamaker/study/finetune_result.hpp"
#include "wanamaker/study/optimise_result.hpp"
#include "wanamaker/study/splits.hpp"
#include "wanamaker/text/last_word.hpp"

namespace study {

/// In which order layers become linear.
enum class LayerOrder { given, middle, cost };

struct FinetuneTask {
  std::string command{};  ///< progressive, two-phase or control
  const wanamaker::TokenizedCorpus& corpus;
  const wanamaker::TokenizedCorpus* other = nullptr;
  const wanamaker::PassageCorpus* last_words = nullptr;
  wanamaker::Splits splits{};
  wanamaker::WindowRule rule{};
  wanamaker::Protocol protocol{};
  wanamaker::FinetuneOptions options{};  ///< no layers: all
  LayerOrder order = LayerOrder::middle;
  /// The folder to write an arm's model to; empty: none is written.
  std::function<std::filesystem::path(const std::string& arm)> folder_of{};
  wanamaker::Progress progress{};
};

struct OptimiseTask {
  LayerTask layers;
  const wanamaker::TokenizedCorpus* other = nullptr;
  wanamaker::OptimiseOptions options{};
  /// The folder to write the chosen model to.
  std::function<std::filesystem::path()> folder_of{};
};

/// A loaded model, in float with the BLAS of this build or else Eigen's products; experiments leave
/// it as it is.
class TunableModel {
 public:
  virtual ~TunableModel() = default;
  virtual const wanamaker::ModelConfig& config() const = 0;
  virtual std::string arithmetic() const = 0;
  virtual wanamaker::FinetuneResult finetune(const FinetuneTask& task,
                                             const wanamaker::FinetuneCheckpoint& checkpoint) = 0;
  virtual wanamaker::OptimiseResult optimise(const OptimiseTask& task) = 0;
};

std::unique_ptr<TunableModel> load_tunable_model(const std::filesystem::path& model,
                                                 wanamaker::ExecutorRef executor);

}  // namespace study
