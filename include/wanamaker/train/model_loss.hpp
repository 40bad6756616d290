// The cross-entropy of a model as the function that a Trainer asks for.
#pragma once

#include "wanamaker/backend/workspace.hpp"
#include "wanamaker/nn/backward/transformer.hpp"
#include "wanamaker/train/batches.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// Adds a batch's gradients to `gradients` and returns its mean loss in nats. Refers to all that it
/// is given, which must outlive it; the gradients were made for the model.
template <class B, class Model>
class ModelLoss {
 public:
  ModelLoss(B& backend, const Model& model, const Gradients<B>& gradients, LossOptions options = {})
      : backend_(&backend),
        model_(&model),
        gradients_(&gradients),
        options_(options),
        workspace_(backend) {}

  /// Throws as loss_and_gradients.
  double operator()(const TrainingBatch& batch) {
    const PackedBatch<B> packed(*backend_, batch.tokens, batch.offsets);
    return loss_and_gradients(*model_, *backend_, packed, batch.scored, *gradients_, workspace_,
                              options_);
  }

 private:
  B* backend_;
  const Model* model_;
  const Gradients<B>* gradients_;
  LossOptions options_;
  Workspace<B> workspace_;
};

}  // namespace wanamaker::inline WANAMAKER_ABI
