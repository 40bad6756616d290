// A model from scratch as it is run: gates that it learned made hard, and their routes counted.
#pragma once

#include <string>
#include <vector>

#include "wanamaker/study/finetune_result.hpp"
#include "wanamaker/study/losses.hpp"
#include "wanamaker/study/routed_counts.hpp"
#include "wanamaker/train/planned_model.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Refers to a model, which must outlive it and stay where it is while it lives.
template <Backend B>
class HardRouting {
 public:
  /// Makes the model's gates hard.
  HardRouting(B& backend, AnyTransformer<B>& model)
      : backend_(backend), model_(model), counts_(backend, model.layers()) {
    harden_gates(model, [this](Index layer, ConstVectorView<TokenId> choices) {
      counts_.add(layer, choices);
    });
  }
  ~HardRouting() {
    for_each_routing(model_, [](Index, LearnedRouting<B>& routing) { routing.set_listener({}); });
  }
  HardRouting(const HardRouting&) = delete;
  HardRouting& operator=(const HardRouting&) = delete;

  /// Losses of the set's scored tokens. Throws as run_losses.
  std::vector<double> losses(const EvaluationSet& set, Workspace<B>& workspace,
                             const Progress& progress, const std::string& stage) {
    counts_.reset();
    std::vector<double> losses =
        run_losses_with(backend_, model_, MlpOverrides<B>{}, set, workspace, progress, stage,
                        [this](const EvaluationBatch& batch) { counts_.set_batch(&batch); });
    counts_.set_batch(nullptr);
    scored_ = static_cast<double>(set.scored());
    return losses;
  }

  /// Layers that learned their routing, with the share of positions that `losses` last sent to
  /// maps.
  std::vector<LayerState> layers() const {
    std::vector<LayerState> states;
    for_each_routing(model_, [&](Index layer, LearnedRouting<B>&) {
      states.push_back({.layer = layer,
                        .form = LayerForm::hard_gate,
                        .fraction_linear = static_cast<double>(counts_.routed(layer)) / scored_});
    });
    return states;
  }

 private:
  B& backend_;
  AnyTransformer<B>& model_;
  RoutedCounts<B> counts_;
  double scored_ = 1;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
