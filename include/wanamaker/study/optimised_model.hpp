// A model with the policies that a search chose as a model of its own: to be trained, and to be
// written for other runtimes.
#pragma once

#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "wanamaker/nn/backward/transformer.hpp"
#include "wanamaker/study/export_arm.hpp"
#include "wanamaker/study/measured_costs.hpp"
#include "wanamaker/train/model_copy.hpp"
#include "wanamaker/train/model_loss.hpp"
#include "wanamaker/train/planned_model.hpp"
#include "wanamaker/train/trainer.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

namespace detail {

template <Backend B>
Linear<B> linear_copy(B& backend, const Linear<B>& layer) {
  const AffineMap map = map_of(backend, layer);
  return linear_from_host(backend, map.weight, map.inputs, map.outputs,
                          layer.has_bias() ? map.bias : std::vector<double>{});
}

/// `policy` as one that gradients flow through, with memory of its own; a gate before `mlp`.
template <Backend B>
AnyMlp<B> trainable_copy(B& backend, const AnyMlp<B>& policy, AnyMlp<B> mlp) {
  if (const auto* low_rank = policy.template get<LowRankMlp<B>>()) {
    return AnyMlp<B>(LowRankMlp<B>(linear_copy(backend, low_rank->down()),
                                   linear_copy(backend, low_rank->up())));
  }
  const auto* gate = policy.template get<SearchedGate<B>>();
  const AnyMlp<B>& map = gate == nullptr ? policy : gate->surrogate().policy();
  AffineMlp<B> affine(linear_copy(backend, map.template get<AffineMlp<B>>()->map()));
  if (gate == nullptr) return AnyMlp<B>(std::move(affine));
  // g > ½ where the score is above 0.
  return trainable_mlp<B>(LearnedRouting<B>::hard({backend, gate->gate().linear_score()},
                                                  std::move(affine), std::move(mlp), 0.5));
}

}  // namespace detail

/// A copy of the model with affine and low-rank policies and gates of a search in it; gates can be
/// trained, straight through. Throws as copy_model.
template <Backend B>
AnyTransformer<B> model_with(B& backend, const AnyTransformer<B>& model,
                             const MlpOverrides<B>& policies) {
  AnyTransformer<B> own = copy_model(backend, model);
  for (Index l = 0; l < own.layers(); ++l) {
    if (const AnyMlp<B>* policy = policies.at(l)) {
      AnyMlp<B> mlp = std::move(own.mlp(l));
      own.mlp(l) = detail::trainable_copy(backend, *policy, std::move(mlp));
    }
  }
  return own;
}

/// Trains all of `student` to give what `teacher` gives: the divergence of its next tokens from the
/// teacher's over windows of `tokens`, AdamW with a cosine. Throws as Trainer and WindowSampler.
template <Backend B>
LossCurve distil(B& backend, AnyTransformer<B>& student, const AnyTransformer<B>& teacher,
                 std::span<const TokenId> tokens, const HealOptions& options,
                 const Progress& progress = {}) {
  const WindowSampler windows(tokens, options.window, options.sequences, options.seed);
  const Gradients<B> gradients(backend, student);
  Workspace<B> workspace(backend);
  TrainerOptions training{.steps = options.steps()};
  training.schedule.peak = options.rate;
  training.schedule.steps = options.steps();
  training.schedule.warm_up = options.steps() / 10;
  Trainer<B> trainer(backend, parameters<B>(student, gradients), training);
  const ops::DistillationMix all_divergence{.share = 1};
  return trainer.run(
      windows,
      [&](const TrainingBatch& batch) {
        const PackedBatch<B> packed(backend, batch.tokens, batch.offsets);
        return distillation_loss_and_gradients(student, teacher, backend, packed, batch.scored,
                                               gradients, workspace, all_divergence)
            .divergence;
      },
      progress);
}

/// Writes such a model, weights as the backend's scalar: FOLDER/config.json, model.safetensors,
/// wanamaker_check.json for `ids`, and wanamaker_gates.safetensors where layers have gates. The
/// family's own MLPs act as the maps, so that stock runtimes load the folder where there is no
/// gate. Returns the largest difference in nats between the model's losses and those of what was
/// written. Throws what act_as and write_model throw.
template <Backend B>
double export_optimised(B& backend, AnyTransformer<B>& model, std::vector<TokenId> ids,
                        const std::filesystem::path& folder, Workspace<B>& workspace) {
  return detail::export_changed(backend, model, std::move(ids), folder, workspace);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
