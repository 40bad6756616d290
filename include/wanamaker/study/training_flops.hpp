// What training takes: FLOPs of steps and of fits, so that arms can be given equal amounts.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "wanamaker/gate/cost_model.hpp"
#include "wanamaker/study/arm_model.hpp"
#include "wanamaker/study/windows.hpp"

namespace wanamaker::inline WANAMAKER_ABI {

/// FLOPs of one step, as the cost model counts them. The optimiser's own are left out: a few
/// operations for each parameter.
struct StepFlops {
  double forward = 0;
  double repeated = 0;          ///< forward again on the way back, with recomputation
  double input_gradients = 0;   ///< of layers, down to the lowest that is trained
  double weight_gradients = 0;  ///< of what is trained

  double total() const { return forward + repeated + input_gradients + weight_gradients; }
};

namespace detail {

/// Share of the rows that the product with this parameter is taken over.
template <class Arm, Backend B>
double share_of_rows(const Arm& arm, const Parameter<B>& p) {
  if (p.layer < 0 || p.layer >= arm.model().layers()) return 1;
  const PathShares shares = arm.training_shares(p.layer);
  if (p.name.find(".mlp.surrogate.") != p.name.npos) return shares.map;
  if (p.name.find(".mlp.affine.") != p.name.npos) return shares.map;
  if (p.name.find(".mlp.gate.") != p.name.npos) return shares.gate;
  return p.name.find(".mlp.") != p.name.npos ? shares.mlp : 1;
}

/// FLOPs of the gradients of all weights that are trained: 2 a weight and row. Looking an embedding
/// up takes none; a tied one is the head's weight, too. Biases and gains take none.
template <class Arm, Backend B>
double weight_gradient_flops(const Arm& arm, const ParameterList<B>& parameters, double rows) {
  const ModelConfig& config = arm.model().config();
  const std::string embedding = std::string(parameter_names(config.family).embedding) + ".weight";
  double flops = 0;
  for (const Parameter<B>& p : parameters) {
    const bool is_weight = p.decays || p.name.ends_with(".mlp.gate.weight");
    const bool is_table = p.layer < 0 && !(config.tied_head && p.name == embedding);
    if (p.frozen || !is_weight || is_table) continue;
    flops += 2 * static_cast<double>(p.value.size()) * rows * share_of_rows(arm, p);
  }
  return flops;
}

/// FLOPs of one token in the layer's place in training.
template <class Arm>
double layer_training_flops(const Arm& arm, Index layer) {
  const GatedCost cost = arm.cost_per_token(layer);
  const PathShares shares = arm.training_shares(layer);
  return shares.mlp * cost.mlp.flops + shares.map * cost.surrogate.flops +
         shares.gate * cost.gate.flops;
}

}  // namespace detail

/// A model every part of which is run on every row in training, as step_flops asks for it.
template <class B>
class WholeModel {
 public:
  explicit WholeModel(const AnyTransformer<B>& model) : model_(model) {}

  const AnyTransformer<B>& model() const { return model_; }
  PathShares training_shares(Index) const { return {1, 1, 1}; }
  GatedCost cost_per_token(Index layer) const { return {.mlp = model_.mlp(layer).cost(1)}; }

 private:
  const AnyTransformer<B>& model_;
};

/// One step on `sequences` windows of `window` tokens, all scored. Gradients of inputs take what
/// their products took forward; attention's scores take 5/2 of it, since they are computed again.
/// A step that trains nothing takes nothing. `arm`: an ArmModel or a WholeModel.
template <class Arm, Backend B>
StepFlops step_flops(const Arm& arm, const ParameterList<B>& parameters, Index window,
                     Index sequences, bool recompute = false) {
  Index lowest = std::numeric_limits<Index>::max();
  for (const Parameter<B>& p : parameters) {
    if (!p.frozen) lowest = std::min(lowest, p.layer);
  }
  if (lowest == std::numeric_limits<Index>::max()) return {};
  const double rows = static_cast<double>(window * sequences);
  const ModelFlops shared = model_flops(
      arm.model().config(), std::vector<Index>(static_cast<std::size_t>(sequences), window), 0,
      window * sequences);
  const double layers = static_cast<double>(arm.model().layers());
  StepFlops step{.forward = shared.head, .input_gradients = shared.head};
  for (Index l = 0; l < arm.model().layers(); ++l) {
    const double products =
        shared.attention_projections / layers + rows * detail::layer_training_flops(arm, l);
    const double scores = shared.attention_scores / layers;
    step.forward += products + scores;
    if (l < lowest) continue;
    step.input_gradients += products + 2.5 * scores;
    if (recompute) step.repeated += products + scores;
  }
  step.weight_gradients = detail::weight_gradient_flops(arm, parameters, rows);
  return step;
}

/// Fitting `maps` maps at once: one forward pass over the set, and the products XᵀX and XᵀY.
template <Backend B>
double fit_flops(const ArmModel<B>& arm, const EvaluationSet& set, Index maps) {
  std::vector<Index> lengths;
  for (const EvaluationBatch& batch : set.batches) {
    for (std::size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
      lengths.push_back(batch.offsets[s + 1] - batch.offsets[s]);
    }
  }
  const double tokens = static_cast<double>(set.tokens);
  const double width = static_cast<double>(arm.model().config().width);
  double mlps = 0;
  for (Index l = 0; l < arm.model().layers(); ++l) {
    mlps += tokens * detail::layer_training_flops(arm, l);
  }
  return model_flops(arm.model().config(), lengths, mlps, 0).total() +
         4 * width * width * tokens * static_cast<double>(maps);
}

}  // namespace wanamaker::inline WANAMAKER_ABI
